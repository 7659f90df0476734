"""`nlstm-lab audit`: are the verdicts what the records, and the records what the networks say?"""

import warnings
from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import pandas as pd

    from nlstm_lab.runs import Run
    from nlstm_lab.targets.entries import Place

UNCHECKED = "other epochs than the best in histories, probe records, the printed numbers themselves"
ROW = ["kind", "subject", "setting", "metric", "split", "says"]  # what a row of a table is about


def audit(
    tables: Annotated[
        list[str] | None, typer.Argument(help="Tables such as nested_lstm.table1; all when none is named.")
    ] = None,
    weights: Annotated[bool, typer.Option(help="Evaluate the committed weights anew, which takes minutes.")] = True,
) -> None:
    """Recompute tables: every result from its history, every score from committed weights, every verdict from both.

    A line a table says what was recomputed, and what could not be for lack of weights or data; records that are
    damaged, misplaced or copied from another seed are named. Exit code 1 where something does not agree. The last line
    says what is not checked.
    """
    from nlstm_lab import runs, targets
    from nlstm_lab.errors import UsageError
    from nlstm_lab.runs.audit import Audited
    from nlstm_lab.runs.audit import audit as recompute

    documents = [targets.load(name) for name in targets.DOCUMENTS]
    places = {f"{document.name}.{place.name}": place for document in documents for place in document.places.values()}
    with warnings.catch_warnings(record=True) as left_out:
        warnings.simplefilter("always")
        table = runs.table()
    wrong, done = [str(one.message) for one in left_out], dict[str, Audited]()
    for target in tables or places:
        if target not in places:
            raise UsageError(f"there is no table {target!r}; there are {', '.join(places)}")
        recorded = _runs(places[target], table)
        for run in recorded:
            if run.name not in done:  # a row of two tables is recomputed once
                done[run.name] = recompute(run, weights)
        audited = [done[run.name] for run in recorded]
        verdicts, differing = _verdicts(target, recorded)
        differences = [sentence for one in audited for sentence in one.wrong] + differing
        scores = sum(one.recomputed for one in audited)
        line = [f"{len(audited)} results from histories", f"{scores} scores from weights", f"{verdicts} verdicts"]
        lacking = Counter(one.lacking for one in audited if one.lacking)
        line += [f"{count} without scores ({why})" for why, count in lacking.items()]
        typer.echo(f"{target}: {', '.join(line)}: {'DOES NOT AGREE' if differences else 'agrees'}")
        wrong += differences
    for sentence in dict.fromkeys(wrong):
        typer.echo(f"  {sentence}")
    typer.echo(f"not checked: {UNCHECKED}")
    if wrong:
        raise typer.Exit(1)


def _runs(place: "Place", table: "pd.DataFrame") -> "list[Run]":
    """The recorded runs of all experiments that a table names, on its substitute text as well."""
    from nlstm_lab import runs

    names = [one.experiment for one in place.numbers if one.experiment]
    names += [name for one in place.orderings for name in (one.better, one.worse)]
    names += [f"{name}+corpus={place.substitute}" for name in names if place.substitute]
    chosen = table[table["experiment"].isin(names)][["experiment", "seed", "scale"]].drop_duplicates()
    return [runs.load(str(name), int(seed), str(scale)) for name, seed, scale in chosen.itertuples(index=False)]


def _verdicts(target: str, recorded: "list[Run]") -> tuple[int, list[str]]:
    """How many verdicts follow from the histories, and those that the committed table has otherwise."""
    import pandas as pd

    from nlstm_lab import paths, targets
    from nlstm_lab.runs.audit import from_histories

    frame = targets.compare(target, from_histories(recorded)).frame
    file = paths.figures() / f"{target.replace('.', '_')}.csv"
    if not file.is_file():
        return len(frame), []
    ours, theirs = _by_row(frame), _by_row(pd.read_csv(file, keep_default_na=False))
    return len(ours), [
        f"{file.name} says {theirs.get(row, 'nothing')!r} of {row[1]} ({row[3]}, {row[4]}), its histories {verdict!r}"
        for row, verdict in ours.items()
        if theirs.get(row) != verdict
    ]


def _by_row(frame: "pd.DataFrame") -> dict[tuple[str, ...], str]:
    return {tuple(row): verdict for *row, verdict in frame[[*ROW, "verdict"]].itertuples(index=False)}
