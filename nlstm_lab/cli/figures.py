"""`nlstm-lab figures` and `nlstm-lab table`: from records to pictures and verdicts."""

import sys
from typing import Annotated

import typer

from nlstm_lab import paths
from nlstm_lab.errors import UsageError


def figures(
    notebooks: Annotated[
        list[str] | None, typer.Argument(help="Notebooks by number, name or path; all when none is named.")
    ] = None,
    parameters: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="name=value, for the notebooks that have it.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Notebooks side by side; 0 for one a core.")] = 0,
    timeout: Annotated[float, typer.Option(help="Seconds that one cell may take.")] = 600.0,
) -> None:
    """Execute notebooks with papermill; each draws its figures from committed records."""
    from nlstm_lab.notebooks import execute_all, plan, summary

    given = {}
    for parameter in parameters or []:
        name, separator, value = parameter.partition("=")
        if not separator:
            raise UsageError(f"a parameter is written name=value, not {parameter!r}")
        given[name] = value
    outcomes = execute_all(plan(notebooks or [], given), workers=workers, timeout=timeout)
    typer.echo(summary(outcomes))
    if any(outcome.error for outcome in outcomes):
        sys.exit(1)


def table(
    as_json: Annotated[bool, typer.Option("--json", help="The whole frame as JSON, for programs.")] = False,
    readme: Annotated[bool, typer.Option("--readme", help="Renew the README's block of verdicts.")] = False,
) -> None:
    """Every printed number and claim beside ours, with its verdict."""
    from nlstm_lab import probes, runs, targets

    frame = targets.verdicts(runs.table(), probes.claims())
    if as_json:
        typer.echo(frame.to_json(orient="records", indent=1))
    elif readme:
        changed = targets.update_readme(paths.root() / "README.md", frame)
        typer.echo("README.md renewed" if changed else "README.md was fresh")
    else:
        typer.echo(targets.readme_block(frame))
