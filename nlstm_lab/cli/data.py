"""`nlstm-lab data`: which data sets are here, and how to get the others."""

from pathlib import Path
from typing import Annotated

import typer

from nlstm_lab.cli import tables

app = typer.Typer(help="Data sets: what is here, fetch, import, check.", invoke_without_command=True)

Name = Annotated[str, typer.Argument(help="A data set, as `nlstm-lab data` lists it.")]


@app.callback()
def status(context: typer.Context) -> None:
    """List every data set with its state."""
    if context.invoked_subcommand is None:
        from nlstm_lab.datasets import registry

        tables.show(("", "", ""), [(row.name, row.state, row.detail) for row in registry.status()])


@app.command()
def fetch(name: Name) -> None:
    """Download a data set and verify it."""
    from nlstm_lab.datasets import storing

    for path in storing.fetch(name):
        typer.echo(f"{name}: {path}")


@app.command("import")
def import_(name: Name, path: Annotated[Path, typer.Argument(help="A file, an archive or a folder of yours.")]) -> None:
    """Take a copy of a data set that you already have."""
    from nlstm_lab.datasets import storing

    for taken in storing.import_(name, path):
        typer.echo(f"{name}: {taken}")


@app.command()
def check(
    name: Annotated[str | None, typer.Argument(help="A data set; all that are here when none is named.")] = None,
) -> None:
    """Read every byte again and compare it with what was published."""
    from nlstm_lab.datasets import registry

    damaged = False
    for each in [row.name for row in registry.status() if row.state != "absent"] if name is None else [name]:
        row = registry.check(each)
        typer.echo(f"{row.name}: {row.state}, {row.detail}")
        damaged = damaged or row.state != "present"
    if damaged:
        raise typer.Exit(1)
