"""RunBrowser: which runs are recorded, how they learned, what made them; picks runs for the other widgets."""

import re
from collections.abc import Iterable
from dataclasses import fields
from itertools import pairwise
from typing import Any

import ipywidgets
import pandas as pd
from matplotlib.figure import Figure
from traitlets import List, Unicode

from nlstm_lab import runs
from nlstm_lab.errors import MissingRun, UsageError
from nlstm_lab.figures.plots import subplots
from nlstm_lab.figures.saving import attach
from nlstm_lab.figures.style import look
from nlstm_lab.runs import Run
from nlstm_lab.runs.run import is_known, or_left_out, seeds_of
from nlstm_lab.runs.tables import run_columns
from nlstm_lab.settings import METRIC_LABELS, METRICS
from nlstm_lab.widgets.base import LabWidget

DASHES: tuple[Any, ...] = ("-", (0, (3.5, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2)))


class RunBrowser(LabWidget):
    """A table of runs, recorded or under way, the learning curves of those that are picked, and the provenance of one.

    Runs that are not done are shown as far as they are, and are offered to no widget before they are recorded. A
    browser may be handed to another widget instead of runs: it then offers what is picked here, also later on.
    `chosen()` gives the picked runs; `figure()` draws a line for each of them.

    Args:
        pattern, scale: Which runs, as in `lab.runs.table`; those of a cell type of one's own only where it is
            imported, those of an experiment of one's own never.
        pick: Names of runs picked at first; None for the first.

    Raises:
        MissingRun: No run matches.
        UsageError: A picked run is not among them.
    """

    title = "Run browser"
    caption = "Learning curves ({metric}) of {picked}."
    snippet = "lab.widgets.RunBrowser(pick={picked}).figure()"
    scripts = ("runs.js",)
    looks = ("run", "picked", "metric")

    picked = List(Unicode())
    run, metric = Unicode(), Unicode()  # whose provenance is shown, and of what the curves are

    def __init__(self, pattern: str = "*", *, scale: str | None = None, pick: list[str] | None = None) -> None:
        found = runs.table(pattern, scale)[["experiment", "seed", "scale"]].drop_duplicates().astype(object)
        listed = [runs.load(*row) for row in found.itertuples(index=False) if is_known(row[0])]
        begun = (run for run in runs.unfinished(pattern, scale) if run.progress.epoch)
        listed += [run for run in begun if run.seed not in seeds_of(run.experiment)]
        shown, self._runs = dict[str, dict[str, Any]](), dict[str, Run]()
        for run in listed:
            with or_left_out():  # a history may be damaged
                shown[run.name], self._runs[run.name] = _row(run), run
        if not shown:
            raise MissingRun(f"no run of {pattern!r} is recorded; train one with `nlstm-lab train NAME`")
        picked = list(self._runs)[:1] if pick is None else pick
        if unknown := [name for name in picked if name not in self._runs]:
            raise UsageError(f"there is no run {unknown[0]!r} here; there is {', '.join(self._runs)}")
        first = shown[picked[0] if picked else next(iter(shown))]
        metric = next(iter(first["metrics"]), "")
        super().__init__(rows=[*shown.values()], picked=picked, run=first["name"], metric=metric)

    def chosen(self) -> list[Run]:
        """The runs that are picked, in the order in which they were."""
        return [self._runs[name] for name in self.picked if name in self._runs]

    def draw(self) -> Figure:
        rows = {row["name"]: row for row in self.rows}
        points = [
            (run.name, rows[run.name]["unit"], update, value)
            for run in self.chosen()
            for update, value in rows[run.name]["curves"].get(self.metric, {"valid": []})["valid"]
        ]
        if not points:
            known = ", ".join(METRICS)
            raise UsageError(f"no run with a curve of {self.metric!r} is picked: pick one, or a metric of {known}")
        frame = pd.DataFrame(points, columns=["run", "model", "update", "value"])
        labels = shortened(frame["run"].unique())
        figure, axes = subplots(height=2.2 + 0.13 * len(labels))
        for place, (name, curve) in enumerate(frame.groupby("run", sort=False)):
            along = curve.sort_values("update")[["update", "value"]].to_numpy().T
            style = {"linestyle": DASHES[place % len(DASHES)], "color": look(curve["model"].iloc[0]).colour}
            axes[0, 0].plot(*along, label=labels[str(name)], **style)
        axes[0, 0].set(xlabel="updates", ylabel=f"{METRIC_LABELS[self.metric]}, validation")
        axes[0, 0].grid(axis="y")
        figure.legend(loc="outside lower center", fontsize=6)
        return attach(figure, frame)


def shortened(names: Iterable[str]) -> dict[str, str]:
    """By name what a run is called beside the others: without the flags ("+epochs=8") that all of them have."""
    flags = {name: name.rpartition("/")[0].split("+")[1:] for name in names}
    common = "|".join(map(re.escape, set.intersection(*map(set, flags.values())))) if flags else ""
    return {name: re.sub(rf"\+({common})(?=[+/])", "", name) if common else name for name in flags}


def _row(run: Run) -> dict[str, Any]:
    """What the browser shows of a run."""
    result, task = run.result, run.experiment.task
    history = run.history[~run.history["metric"].str.contains("/")]
    metrics: dict[str, dict[str, float]] = {}
    for row in reversed(result["metrics"]):  # of the evaluations, the one that the table names first
        metrics.setdefault(row["metric"], {})[row["split"]] = row["value"]
    known = [name for name in METRICS if name in metrics]
    settings = (f"{field.name.replace('_', ' ')} {getattr(task, field.name)}" for field in fields(task))
    made = ("best_epoch", "tokens_per_second", "device", "precision", "commit", "config_digest", "data_sha256")
    about = {"trained on": f"{type(task).__name__}: {', '.join(settings)}"}
    about |= {name.replace("_", " "): result[name] for name in made if name in result}
    if result.get("dirty"):
        about["commit"] += " (with changes that were not committed)"
    if "versions" in result:  # as in what is recorded, and not of a run under way
        about["versions"] = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return {
        "name": run.name,
        "unit": run_columns(run)["model"],
        "parameters": result["parameters"],
        "layers": f"{run.experiment.model.num_layers} × {run.experiment.model.hidden_size}",
        "epochs": int(history["epoch"].max()),
        "state": run.state,
        "seconds": result["seconds"],
        "weights": run.has_weights,
        "metrics": {name: metrics[name] for name in known},
        "curves": {name: _curves(history[history["metric"] == name]) for name in known},
        "provenance": about,
    }


def _curves(history: pd.DataFrame) -> dict[str, list[list[float]]]:
    """[update, value] of training, in blocks as they were trained on or as means over epochs, and of validation."""

    def points(split: str) -> Any:
        rows = history[history["split"] == split]
        rows = rows[rows["evaluation"].isin(rows["evaluation"][:1])]
        return rows[["update", "value"]].sort_values("update").to_numpy().tolist()

    return {"valid": points("valid"), "training": points("early") or points("train")}


class Dashboard(ipywidgets.VBox):  # type: ignore[misc]
    """Widgets that share run, text, unit and position: what is chosen in one is chosen in all.

    Args:
        widgets: From top to bottom; at first the lower one's value counts.
    """

    def __init__(self, *widgets: LabWidget) -> None:
        super().__init__(widgets)
        for name in ("run", "text", "unit", "step", "at"):
            having = [each for each in widgets if each.has_trait(name) and not isinstance(each, RunBrowser)]
            for one, other in pairwise(having):
                ipywidgets.link((other, name), (one, name))

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widgets, and for who cannot run them the picture or page of the first."""
        data, metadata = self.children[0]._repr_mimebundle_(**options)
        return {**data, **(super()._repr_mimebundle_(**options) or {})}, metadata
