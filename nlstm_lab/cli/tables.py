"""`nlstm-lab experiments`, `runs`, `table`, `audit`: what can be trained and is recorded; how tables are printed."""

import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from nlstm_lab import paths
from nlstm_lab.errors import UsageError
from nlstm_lab.settings import METRICS, choice

if TYPE_CHECKING:
    from nlstm_lab.runs import PartialRun, Run

Pattern = Annotated[str, typer.Argument(help="A shell pattern of experiments, in quotes, such as 'ptb_char_*'.")]
UNBROKEN = 10_000  # characters: what a program reads is not folded
ROW = ["kind", "subject", "setting", "metric", "split", "says"]  # what a row of a table is about


def console(stderr: bool = False) -> Console:
    """Standard output, as wide as the terminal or `$COLUMNS` says, or standard error; no text in it is markup."""
    known = stderr or sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=None if known else UNBROKEN)


def show(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; cells that are too wide are folded. Rows may be shorter than the heads."""
    table = Table(*heads, box=None, pad_edge=False, show_header=any(heads))
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*row)
    console().print(table)


def experiments(pattern: Pattern = "*") -> None:
    """List the experiments: task, cell type, sizes, parameters beside the printed ones, scales, printed table."""
    from nlstm_lab.experiments import get, names, parameters, scales
    from nlstm_lab.targets import DOCUMENTS, load

    places = [place for one in DOCUMENTS for place in load(one).places.values()] if paths.targets().is_dir() else []
    numbers = [row for place in places for row in place.numbers if row.as_printed]
    printed = {row.experiment.partition("+")[0]: (row.parameters, f"{row.document}.{row.place}") for row in numbers}
    rows = []
    for name in names(pattern):
        largest = get(name, scales(name)[-1])
        model, corpus = largest.model, getattr(largest.task, "corpus", "")
        task, size = f"{type(largest.task).__name__} {corpus}".rstrip(), f"{model.num_layers} x {model.hidden_size}"
        count, place = printed.get(name, ("", ""))
        trained = f"{parameters(largest):,}", count, " ".join(scales(name)), place
        rows.append((name, task, model.cell_type, size, *trained))
    if not rows:
        raise UsageError(f"no experiment matches {pattern!r}: see nlstm-lab experiments for those there are")
    show(("name", "task", "cell type", "layers x units", "parameters", "printed", "scales", "row of"), rows)


def runs(
    pattern: Pattern = "*",
    scale: Annotated[str | None, typer.Option(help="smoke, small or paper; all when none is named.")] = None,
) -> None:
    """List recorded, running, stopped and failed runs.

    Scores are the best on validation. Hours left are those to the last epoch, at the pace so far.
    """
    from nlstm_lab import runs as records

    table = records.table(pattern, scale)
    valid = table[table["split"] == "valid"]
    listed = {
        "recorded": [_recorded(rows) for _, rows in valid.groupby(["experiment", "scale"], sort=False)],
        "under way": [_partial(run) for run in records.unfinished(pattern, scale)],
        "failed": [
            [experiment, at, f"seed {seed}", f"the {what} was not finite by update {update}"]
            for experiment, at, seed, what, update in records.failures(pattern, scale).to_numpy()
        ],
    }
    for title, lines in listed.items():
        typer.echo(f"{title}: {len(lines) or 'none'}")
        if lines:
            show([""] * max(map(len, lines)), lines)


def _recorded(rows: Any) -> list[str]:
    metric = next(name for name in METRICS if name in set(rows["metric"]))
    runs_of = rows[rows["metric"] == metric].sort_values("seed", kind="stable").drop_duplicates("seed")
    ended = [f"seed {run.seed}: {run.state}" for run in runs_of.itertuples() if run.state != "done"]
    seeds, scores = ", ".join(map(str, runs_of["seed"])), ", ".join(f"{score:.4g}" for score in runs_of["value"])
    return [rows["experiment"].iloc[0], rows["scale"].iloc[0], f"seed {seeds}", f"{metric} {scores}", *ended]


def _partial(run: "PartialRun") -> list[str]:
    name = [run.experiment.name, run.experiment.scale, f"seed {run.seed}"]
    if not run.saved:
        return [*name, "no history yet"]
    scores = {row["metric"]: row for row in run.result["metrics"] if row["split"] == "valid"}
    best, left = next((scores[name] for name in METRICS if name in scores), None), run.hours_left
    return [
        *name,
        run.state.partition(",")[0],
        f"{best['metric']} {best['value']:.4g} (epoch {best['epoch']})" if best else "no score yet",
        f"{run.progress.seconds / 3600:.1f} h gone",
        f"{left:.1f} h left" if left == left else "hours left unknown",
        f"saved {(time.time() - run.saved) / 60:.0f} min ago",
    ]


def table() -> None:
    """Print every printed number and claim beside ours, with its verdict, as Markdown."""
    from nlstm_lab import probes, runs, targets

    typer.echo(targets.readme_block(targets.verdicts(runs.table(), probes.measured_claims())))


def audit(
    names: Annotated[list[str] | None, typer.Argument(metavar="[TABLES]...", help="All when none is named.")] = None,
    weights: Annotated[bool, typer.Option(help="Evaluate the committed weights again, which takes minutes.")] = True,
) -> None:
    """Recompute tables, such as nested_lstm.table1: results from histories, scores from weights, verdicts from both.

    A line a table says what was recomputed, and what could not be for lack of weights or data; records that are
    damaged, misplaced or copied from another seed are named. Exit code 1 where something does not agree. The last line
    says what is not checked.
    """
    from nlstm_lab import runs, targets
    from nlstm_lab.probes.records import damaged
    from nlstm_lab.runs.tables import audit as recompute

    documents = [targets.load(name) for name in targets.DOCUMENTS]
    places = {f"{document.name}.{place.name}": place for document in documents for place in document.places.values()}
    with warnings.catch_warnings(record=True) as left_out:
        warnings.simplefilter("always")
        table = runs.table()
    wrong, done = [*(str(one.message) for one in left_out if one.category is UserWarning), *damaged()], {}
    for target in names or places:
        rows = [*places[choice(target, "table", places)].numbers, *places[target].orderings]
        named = {name for row in rows for name in (row.experiment, row.better, row.worse)}
        named |= {f"{name}+corpus={places[target].substitute}" for name in named}
        chosen = table[table["experiment"].isin(named)][["experiment", "seed", "scale"]].drop_duplicates()
        recorded = [runs.load(str(name), int(seed), str(scale)) for name, seed, scale in chosen.itertuples(index=False)]
        for run in recorded:
            if run.name not in done:  # a row of two tables is recomputed once
                done[run.name] = recompute(run, weights)
        audited = [done[run.name] for run in recorded]
        verdicts, differences = _verdicts(target, recorded)
        differences = [sentence for one in audited for sentence in one.wrong] + differences
        scores = sum(one.recomputed for one in audited)
        line = [f"{len(audited)} results from histories", f"{scores} scores from weights", f"{verdicts} verdicts"]
        lacking = Counter(one.lacking for one in audited if one.lacking)
        line += [f"{count} without scores ({why})" for why, count in lacking.items()]
        typer.echo(f"{target}: {', '.join(line)}: {'DOES NOT AGREE' if differences else 'agrees'}")
        wrong += differences
    for sentence in dict.fromkeys(wrong):
        typer.echo(f"  {sentence}")
    typer.echo("not checked: other epochs than the best in histories, values of probe records, the printed numbers")
    if wrong:
        raise typer.Exit(1)


def _verdicts(target: str, recorded: "list[Run]") -> tuple[int, list[str]]:
    """How many verdicts the histories give and a committed table has, and those that it has otherwise."""
    import pandas as pd

    from nlstm_lab import targets
    from nlstm_lab.runs.tables import from_histories

    frame = targets.compare(target, from_histories(recorded)).frame
    file = paths.figures() / f"{target.replace('.', '_')}.csv"
    if not file.is_file():
        return 0, []
    theirs = pd.read_csv(file, keep_default_na=False).set_index(ROW)["verdict"].to_dict()
    return len(frame), [
        f"{file.name} says {theirs.get(tuple(row), '')!r} of {row[1]} ({row[3]}, {row[4]}), its histories {ours!r}"
        for *row, ours in frame[[*ROW, "verdict"]].itertuples(index=False)
        if theirs.get(tuple(row)) != ours
    ]
