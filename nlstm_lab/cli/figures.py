"""`nlstm-lab figures` and `nlstm-lab table`: from records to pictures and verdicts."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nlstm_lab import paths
from nlstm_lab.cli import tables
from nlstm_lab.errors import UsageError

if TYPE_CHECKING:
    from nlstm_lab.execute import Job


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
    timeout: Annotated[int, typer.Option(min=1, help="Seconds that one cell may take.")] = 600,
) -> None:
    """Execute the notebooks that changed; each draws its figures from committed records.

    A figure that is committed is replaced by one of the same parameters; others go to `workspaces/figures`.
    Exit code 0 when every notebook is executed or unchanged, 1 when one failed, 2 for misuse, 130 after Ctrl-C.
    """
    from tqdm import tqdm

    from nlstm_lab import execute

    given = dict(_pair(parameter) for parameter in parameters or [])
    jobs = execute.plan(notebooks or [], given, replace)
    workers = min(workers or os.cpu_count() or 1, len(jobs))
    before = set(_elsewhere())
    with tqdm(total=sum(len(job.code) for job in jobs), unit="cell", leave=False, disable=None) as bar:

        def tell(job: "Job") -> None:
            if job.status == "runs":
                bar.set_postfix_str(job.name, refresh=False)
                bar.update()
            else:
                values = "".join(f" {name}={value}" for name, value in job.parameters.items())
                took = f", {job.seconds:.0f} s" if job.seconds else ""
                bar.write(f"{job.name}: {job.status}{took}{values}", file=sys.stdout)
                bar.update(len(job.code) if job.status == "unchanged" else 0)

        bar.refresh()
        try:
            execute.execute_all(jobs, workers=workers, timeout=timeout, everything=everything, tell=tell)
        finally:
            bar.close()
            stand = [job.status for job in jobs]
            typer.echo(", ".join(f"{stand.count(status)} {status}" for status in dict.fromkeys(stand)))
    for job in jobs:
        if job.error:
            typer.echo(f"nlstm-lab: {job.error}", err=True)
    if drawn := {path.stem for path, _ in set(_elsewhere()) - before}:
        typer.echo(f"with other parameters than those committed: {', '.join(sorted(drawn))}, in {paths.trials()}")
    if any(job.error for job in jobs):
        raise typer.Exit(1)


def _pair(parameter: str) -> tuple[str, str]:
    name, separator, value = parameter.partition("=")
    if not separator:
        raise UsageError(f"a parameter is written name=value, not {parameter!r}")
    return name, value


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
