"""`nlstm-lab data` and `nlstm-lab doctor`: which data sets are here and how to get the others; what works here."""

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from nlstm_lab import paths
from nlstm_lab.cli import tables

app = typer.Typer(help="Data sets: what is here, fetch, import, check.", invoke_without_command=True)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
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
    from nlstm_lab.datasets import registry

    for path in registry.fetch(name):
        typer.echo(f"{name}: {path}")


@app.command("import")
def import_(name: Name, path: Annotated[Path, typer.Argument(help="A file, an archive or a folder of yours.")]) -> None:
    """Take a copy of a data set that you already have."""
    from nlstm_lab.datasets import registry

    for taken in registry.import_(name, path):
        typer.echo(f"{name}: {taken}")


@app.command()
def check(
    name: Annotated[str | None, typer.Argument(help="A data set; all that are here when none is named.")] = None,
) -> None:
    """Read every byte again and compare it with what was published."""
    from nlstm_lab.datasets import registry

    names = [name] if name else [row.name for row in registry.status() if row.state != "absent"]
    rows = [registry.check(each) for each in names]
    for row in rows:
        typer.echo(f"{row.name}: {row.state}, {row.detail}")
    if any(row.state != "present" for row in rows):
        raise typer.Exit(1)


def doctor() -> None:
    """Say what works here (folders, records, GPU, compiler, data, browser) and what each lack costs."""
    rows, broken = [], []
    for name, look in (("folder", folder), ("records", records), ("torch", accelerator), ("data", data_sets)):
        try:
            rows.append((name, look()))
        except Exception as error:  # whatever it is, the reader is to know it
            rows.append((name, f"fails: {type(error).__name__}: {error}"))
            broken.append(name)
    browser = next((name for name in BROWSERS if shutil.which(name)), "no Chromium: the tests of widgets are skipped")
    tables.show(("", ""), [*rows, ("browser", browser)])
    typer.echo(f"\nTo be repaired first: {', '.join(broken)}." if broken else "\nEverything essential works.")
    if broken:
        raise typer.Exit(1)


def folder() -> str:
    for target in (paths.runs(), paths.figures(), paths.cache()):
        tempfile.TemporaryFile(dir=next(each for each in (target, *target.parents) if each.exists())).close()
    return f"runs and figures go to {paths.root()}"


def records() -> str:
    from nlstm_lab import runs

    table = runs.table()[["experiment", "scale", "seed"]].drop_duplicates()
    recorded = f"{len(table)} runs of {table['experiment'].nunique()} experiments, all current"
    return recorded if len(table) else "none in this folder"


def accelerator() -> str:
    import torch

    from nlstm_lab.cells.fast.computing import lacking

    here = torch.cuda.is_available()
    gpu = torch.cuda.get_device_name() if here else "no GPU: most paper-scale runs take days"
    lack = lacking("cuda" if here else "cpu")
    return f"{torch.__version__}; {gpu}; {f'{lack}: long trainings run uncompiled' if lack else 'compiler found'}"


def data_sets() -> str:
    from nlstm_lab.datasets import registry

    states = registry.status()
    here = [row.name for row in states if row.state == "present"]
    lacks = ", ".join(f"{row.name} ({row.state})" for row in states if row.state != "present")
    how = f"; not {lacks}: `nlstm-lab data fetch NAME`, or import NAME PATH" if lacks else ""
    return f"{', '.join([*here, 'python_docs'])}{how}"
