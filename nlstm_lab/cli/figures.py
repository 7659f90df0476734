"""`nlstm-lab figures` and `nlstm-lab table`: from records to pictures and verdicts."""

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlstm_lab import paths
from nlstm_lab.cli import tables
from nlstm_lab.errors import UsageError

if TYPE_CHECKING:
    from nlstm_lab.notebooks import Outcome


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
    from nlstm_lab.notebooks import plan

    pairs = [given.partition("=") for given in parameters or []]
    if wrong := [name for name, separator, _ in pairs if not separator]:
        raise UsageError(f"a parameter is written name=value, not {wrong[0]!r}")
    jobs = plan(notebooks or [], {name: value for name, _, value in pairs}, replace)
    from nlstm_lab.notebooks import execute_all  # after the plan: papermill takes seconds to import

    before = set(_elsewhere())
    outcomes = execute_all(jobs, workers=workers, timeout=timeout, everything=everything, tell=_tell)
    counts = Counter(outcome.status for outcome in outcomes)
    typer.echo(", ".join(f"{counts[status]} {status}" for status in ("done", "unchanged", "failed") if counts[status]))
    if drawn := {path.stem for path, _ in set(_elsewhere()) - before}:
        typer.echo(f"with other parameters than those committed: {', '.join(sorted(drawn))}, in {paths.trials()}")
    if counts["failed"]:
        raise typer.Exit(1)


def _tell(outcome: "Outcome") -> None:
    """A line of a notebook that is over."""
    given = "".join(f" {name}={value}" for name, value in outcome.job.parameters.items())
    took = f", {outcome.seconds:.1f} s" if outcome.seconds else ""
    typer.echo(f"{outcome.job.name}{given}: {outcome.status}{took}")
    if outcome.error:
        typer.echo(f"nlstm-lab: {outcome.error}", err=True)


def _elsewhere() -> list[tuple[Path, int]]:
    """What was made with other parameters than what is committed, and when."""
    return [(path, path.stat().st_mtime_ns) for path in paths.trials().glob("[!.]*") if path.name != "manifest.json"]


def table() -> None:
    """Every printed number and claim beside ours, with its verdict; in a pipe or a file as Markdown."""
    from nlstm_lab import probes, runs, targets

    frame = targets.verdicts(runs.table(), probes.measured_claims())
    if sys.stdout.isatty():
        from rich.markdown import Markdown

        tables.console().print(Markdown(targets.readme_block(frame).replace("<br>", " ")))
    else:
        typer.echo(targets.readme_block(frame))
