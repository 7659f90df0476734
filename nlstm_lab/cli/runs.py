"""`nlstm-lab experiments` and `nlstm-lab runs`: what can be trained; what is recorded, under way, and failed."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlstm_lab.cli import tables
from nlstm_lab.errors import UsageError

if TYPE_CHECKING:
    from nlstm_lab.runs import PartialRun

Pattern = Annotated[str, typer.Argument(help="Experiments by a shell pattern in quotes, such as 'ptb_char_*'.")]


def experiments(pattern: Pattern = "*") -> None:
    """List the experiments: task, cell type, sizes, parameters beside the printed ones, scales, printed table."""
    from nlstm_lab.experiments import get, names, parameters, scales

    if not (matching := names(pattern)):
        raise UsageError(f"no experiment matches {pattern!r}: see nlstm-lab experiments for those there are")
    rows = []
    for name in matching:
        largest = get(name, scales(name)[-1])
        corpus, size = getattr(largest.task, "corpus", ""), f"{largest.model.num_layers} x {largest.model.hidden_size}"
        task, count = f"{type(largest.task).__name__} {corpus}".rstrip(), f"{parameters(largest):,}"
        printed = largest.printed_parameters or "", " ".join(scales(name)), largest.printed or ""
        rows.append((name, task, largest.model.cell_type, size, count, *printed))
    tables.show(("name", "task", "cell type", "layers x units", "parameters", "printed", "scales", "row of"), rows)


def runs(
    pattern: Pattern = "*",
    scale: Annotated[str | None, typer.Option(help="smoke, small or paper; all where none is named.")] = None,
) -> None:
    """List the runs that are recorded, those that are under way or were stopped, and those that failed.

    Scores are the best on validation. Hours left are those to the last epoch, at the pace so far.
    """
    from nlstm_lab import runs as records

    table = records.table(pattern, scale)
    valid = table[table["split"] == "valid"]
    recorded = [_recorded(rows) for _, rows in valid.groupby(["experiment", "scale"], sort=False)]
    failed = [
        [experiment, at, f"seed {seed}", f"the {what} was not finite by update {update}"]
        for experiment, at, seed, what, update in records.failures(pattern, scale).to_numpy()
    ]
    _show("recorded", recorded)
    _show("under way", [_partial(run) for run in records.unfinished(pattern, scale)])
    _show("failed", failed)


def _recorded(rows: Any) -> list[str]:
    metric = _metric(rows["metric"])
    runs_of = rows[rows["metric"] == metric].drop_duplicates("seed").sort_values("seed")
    ended = [f"seed {run.seed}: {run.state}" for run in runs_of.itertuples() if run.state != "done"]
    seeds, scores = ", ".join(map(str, runs_of["seed"])), ", ".join(f"{score:.4g}" for score in runs_of["value"])
    return [rows["experiment"].iloc[0], rows["scale"].iloc[0], f"seed {seeds}", f"{metric} {scores}", *ended]


def _partial(run: "PartialRun") -> list[str]:
    name = [run.experiment.name, run.experiment.scale, f"seed {run.seed}"]
    if not run.saved:
        return [*name, "no history yet"]
    best = {row["metric"]: row for row in run.result["metrics"] if row["split"] == "valid"}
    metric = _metric(best)
    left = run.hours_left
    return [
        *name,
        run.state.partition(",")[0],
        f"{metric} {best[metric]['value']:.4g} (epoch {best[metric]['epoch']})" if best else "no score yet",
        f"{run.progress.seconds / 3600:.1f} h gone",
        f"{left:.1f} h left" if left == left else "hours left unknown",
        f"saved {(time.time() - run.saved) / 60:.0f} min ago",
    ]


def _metric(names: Any) -> str:
    """The metric by which a run is listed; "" where it has none."""
    from nlstm_lab.settings import METRICS

    return next((name for name in METRICS if name in set(names)), "")


def _show(title: str, lines: list[list[str]]) -> None:
    """A title with the number of lines, and the lines, whose cells stand below each other."""
    typer.echo(f"{title}: {len(lines) or 'none'}")
    if lines:
        tables.show([""] * max(map(len, lines)), lines)
