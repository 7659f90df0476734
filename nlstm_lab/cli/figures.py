"""`nlstm-lab figures` and `nlstm-lab table`: from records to pictures and verdicts."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nlstm_lab import paths
from nlstm_lab.cli import tables
from nlstm_lab.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from nlstm_lab.notebooks import Outcome

COLOURS = {"done": "green", "unchanged": "dim green", "runs": "bold blue", "waits": "dim", "failed": "bold red"}


def figures(
    notebooks: Annotated[
        list[str] | None, typer.Argument(help="Notebooks by number, name or path; all when none is named.")
    ] = None,
    parameters: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="name=value, for the notebooks that have it.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Execute also what has not changed since.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace committed figures that were drawn with other parameters.")
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Notebooks at a time; one a processor.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that one cell may take.")] = 600.0,
) -> None:
    """Execute the notebooks that changed; each draws its figures from committed records.

    A figure that is committed is replaced by one of the same parameters; others go to `workspaces/figures`.
    Exit code 0 when every notebook is executed or unchanged, 1 when one failed, 2 for misuse, 130 after Ctrl-C.
    """
    from rich.live import Live

    from nlstm_lab.notebooks import plan

    jobs = plan(notebooks or [], _parameters(parameters or []), replace)
    from nlstm_lab.notebooks import execute_all  # after the plan: papermill takes seconds to import

    before = set(_elsewhere())
    console, last = tables.console(stderr=True), list["Outcome"]()
    with Live(console=console, auto_refresh=False, transient=True) as live:

        def watch(outcomes: "list[Outcome]") -> None:
            last[:] = outcomes
            if console.is_terminal:
                live.update(_shown(outcomes, workers), refresh=True)

        try:
            execute_all(jobs, workers=workers, timeout=timeout, everything=everything, watch=watch)
        finally:
            live.update("", refresh=True)
            if last:
                tables.console().print(_shown(last, workers))
    failed = [outcome for outcome in last if outcome.status == "failed"]
    for outcome in failed:
        typer.echo(f"nlstm-lab: {outcome.error}", err=True)
    if drawn := {path.stem for path, _ in set(_elsewhere()) - before}:
        typer.echo(f"with other parameters than those committed: {', '.join(sorted(drawn))}, in {paths.trials()}")
    if failed:
        raise typer.Exit(1)


def _parameters(given: list[str]) -> dict[str, Any]:
    """Values by their names, as text, of what is given as name=value."""
    values = {}
    for parameter in given:
        name, separator, value = parameter.partition("=")
        if not separator:
            raise UsageError(f"a parameter is written name=value, not {parameter!r}")
        values[name] = value
    return values


def _elsewhere() -> list[tuple[Path, int]]:
    """What was made with other parameters than what is committed, and when."""
    return [(path, path.stat().st_mtime_ns) for path in paths.trials().glob("[!.]*") if path.name != "manifest.json"]


def _shown(outcomes: "list[Outcome]", workers: int | None) -> "Table":
    """A row for each notebook; below, how many stand how, and the time that is left."""
    from rich.table import Table
    from rich.text import Text

    from nlstm_lab import cluster
    from nlstm_lab.notebooks import time_left

    counts = [f"{sum(each.status == status for each in outcomes)} {status}" for status in COLOURS]
    caption = ", ".join(count for count in counts if not count.startswith("0 "))
    if left := time_left(outcomes, cluster.workers_for(len(outcomes), workers)):
        caption += f"; {left // 60:.0f}:{left % 60:02.0f} left"
    table = Table("notebook", "", "cells", "seconds", "parameters", caption=caption, box=None)
    for each in outcomes:
        given = " ".join(f"{name}={value}" for name, value in each.job.parameters.items())
        cells = f"{each.executed}/{each.cells}" if each.status == "runs" else ""
        seconds = f"{each.seconds:.1f}" if each.seconds else ""
        table.add_row(each.job.name, Text(each.status, COLOURS[each.status]), cells, seconds, given)
    return table


def table() -> None:
    """Every printed number and claim beside ours, with its verdict; in a pipe or a file as Markdown."""
    from nlstm_lab import probes, runs, targets

    frame = targets.verdicts(runs.table(), probes.measured_claims())
    if sys.stdout.isatty():
        from rich.markdown import Markdown

        tables.console().print(Markdown(targets.readme_block(frame).replace("<br>", " ")))
    else:
        typer.echo(targets.readme_block(frame))
