"""RunBrowser: which runs are recorded, how they learned, what made them; picks runs for the other widgets."""

from contextlib import suppress
from dataclasses import fields
from itertools import pairwise
from typing import Any

import ipywidgets
import pandas as pd
import traitlets
from matplotlib.figure import Figure

from nlstm_lab import runs
from nlstm_lab.errors import LabError, MissingRun, UsageError
from nlstm_lab.figures.learning import run_curves
from nlstm_lab.runs import Run
from nlstm_lab.runs.run import is_known
from nlstm_lab.runs.tables import begun, run_columns
from nlstm_lab.settings import METRICS
from nlstm_lab.widgets.base import LabWidget

TRAINING = ("early", "train")  # splits of a history: blocks as they were trained on, or means over epochs


class RunBrowser(LabWidget):
    """A table of runs, recorded or under way, the learning curves of those that are picked, and the provenance of one.

    Runs that are not done are shown as they go on, and are offered to no widget before they are recorded. A browser may
    be handed to another widget instead of runs: it then offers what is picked here, also later on. `chosen()` gives the
    picked runs; `figure()` is `lab.figures.run_curves` of them.

    Args:
        pattern, scale: Which runs, as in `lab.runs.table`; those of a unit or an experiment of one's own only where it
            is imported or registered.
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

    rows = traitlets.List(traitlets.Dict()).tag(sync=True)  # one a run; see `_row`
    picked = traitlets.List(traitlets.Unicode()).tag(sync=True)
    run = traitlets.Unicode().tag(sync=True)  # whose provenance is shown
    metric = traitlets.Unicode().tag(sync=True)

    def __init__(self, pattern: str = "*", *, scale: str | None = None, pick: list[str] | None = None) -> None:
        recorded = runs.table(pattern, scale)[["experiment", "scale", "seed"]].drop_duplicates()
        known = recorded[recorded["experiment"].map(is_known).astype(bool)]
        listed = [runs.load(name, seed, at) for name, at, seed in known.itertuples(index=False)]
        listed += begun(pattern, scale)
        if not listed:
            raise MissingRun(f"no run of {pattern!r} is recorded; train one with `nlstm-lab train NAME`")
        self._which = pattern, scale
        self._runs = {run.name: run for run in listed}
        picked = list(self._runs)[:1] if pick is None else pick
        if unknown := [name for name in picked if name not in self._runs]:
            raise UsageError(f"there is no run {unknown[0]!r} here; there is {', '.join(self._runs)}")
        rows = {run.name: _row(run) for run in listed}
        first = picked[0] if picked else listed[0].name
        metric = next(iter(rows[first]["metrics"]), "")
        super().__init__(rows=[*rows.values()], picked=picked, run=first, metric=metric)

    def look(self) -> None:
        """Show what has been trained since: the epochs of runs that are not done, and the records of those that are."""
        now = {run.name: run for run in begun(*self._which)}
        for name, run in self._runs.items():
            if isinstance(run, runs.PartialRun) and name not in now:
                with suppress(LabError):  # it failed, or was begun anew
                    now[name] = runs.load(run.experiment, run.seed)
        if changed := {name: run for name, run in now.items() if self._runs.get(name) != run}:
            self._runs |= changed
            rows = {row["name"]: row for row in self.rows} | {name: _row(run) for name, run in changed.items()}
            self.rows = list(rows.values())

    def _on_message(self, widget: Any, content: Any, buffers: Any) -> None:
        if content == "look":
            self.look()
        else:
            super()._on_message(widget, content, buffers)

    def chosen(self) -> list[Run]:
        """The runs that are picked, in the order in which they were."""
        return [self._runs[name] for name in self.picked if name in self._runs]

    def draw(self) -> Figure:
        rows = {row["name"]: row for row in self.rows}
        drawn = [run for run in self.chosen() if self.metric in rows[run.name]["curves"]]
        if not drawn:
            known = ", ".join(METRICS)
            raise UsageError(f"no run with a curve of {self.metric!r} is picked: pick one, or a metric of {known}")
        frame = pd.DataFrame(
            [(run.name, run_columns(run)["model"], update, value)
             for run in drawn for update, value in rows[run.name]["curves"][self.metric]["valid"]],
            columns=["run", "model", "update", "value"],
        )  # fmt: skip
        return run_curves(frame, self.metric)


def _row(run: Run) -> dict[str, Any]:
    """What the browser shows of a run."""
    result, model, task = run.result, run.experiment.model, run.experiment.task
    settings = [f"{field.name.replace('_', ' ')} {getattr(task, field.name)}" for field in fields(task)]
    history = run.history[~run.history["metric"].str.contains("/")]
    metrics = [name for name in METRICS if name in {row["metric"] for row in result["metrics"]}]
    summary: dict[str, dict[str, float]] = {metric: {} for metric in metrics}
    first: dict[str, str] = {}  # of the evaluations, the one that the table names first
    for row in result["metrics"]:
        if row["metric"] in summary and row["evaluation"] == first.setdefault(row["metric"], row["evaluation"]):
            summary[row["metric"]][row["split"]] = row["value"]
    made = {}
    if "commit" in result:  # it is recorded where and with what it was made
        made = {
            "device": result["device"],
            "precision": result.get("precision", "fp32"),
            "commit": result["commit"] + (" (with changes that were not committed)" if result["dirty"] else ""),
            "versions": ", ".join(f"{name} {version}" for name, version in result["versions"].items()),
            "configuration": result["config_digest"],
            "data": f"sha256 {result['data_sha256']}",
        }
    return {
        "name": run.name,
        "unit": run_columns(run)["model"],
        "parameters": result["parameters"],
        "layers": f"{model.num_layers} × {model.hidden_size}",
        "epochs": int(history["epoch"].max()),
        "state": run.state,
        "seconds": result["seconds"],
        "weights": run.has_weights,
        "metrics": summary,
        "curves": {metric: _curves(history[history["metric"] == metric]) for metric in metrics},
        "provenance": {
            "trained on": f"{type(task).__name__}: {', '.join(settings)}",
            "size": f"{model.num_layers} × {model.hidden_size}, {result['parameters']:,} parameters",
            "time": f"{result['seconds']:,.0f} s for {int(history['epoch'].max())} epochs",
            **({} if run.state == "done" else {"state": run.state}),
            "best epoch": result["best_epoch"],
            "tokens a second": result["tokens_per_second"],
            **made,
        },
    }


def _curves(history: Any) -> dict[str, list[list[float]]]:
    """[update, value] of training and of validation."""
    valid = history[history["split"] == "valid"]
    valid = valid[valid["evaluation"] == valid["evaluation"].iloc[0]] if len(valid) else valid
    training = next((rows for split in TRAINING if len(rows := history[history["split"] == split])), valid[:0])
    curves = {"valid": valid, "training": training}
    return {name: rows[["update", "value"]].sort_values("update").to_numpy().tolist() for name, rows in curves.items()}


SHARED = ("run", "text", "unit", "step", "at")  # what widgets that have it share


class Dashboard(ipywidgets.VBox):  # type: ignore[misc]
    """Widgets that share run, text, unit and position: what is chosen in one is chosen in all.

    At first the lower widget's value counts.

    Args:
        widgets: The widgets, from top to bottom.
    """

    def __init__(self, *widgets: LabWidget) -> None:
        super().__init__(widgets)
        for name in SHARED:
            having = [each for each in widgets if each.has_trait(name) and not isinstance(each, RunBrowser)]
            for one, other in pairwise(having):
                ipywidgets.link((other, name), (one, name))

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widgets, and for who cannot run them the picture or page of the first."""
        data, metadata = self.children[0]._repr_mimebundle_(**options)
        return {**data, **(super()._repr_mimebundle_(**options) or {})}, metadata
