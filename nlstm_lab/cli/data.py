"""`nlstm-lab data` and `nlstm-lab doctor`: which data sets are here and how to get the others; what works here."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from nlstm_lab import datasets, paths
from nlstm_lab.cli import tables

app = typer.Typer(help="Data sets: what is here, fetch, import, check.", invoke_without_command=True)
Name = Annotated[str, typer.Argument(help="A data set, as `nlstm-lab data` lists it.")]


@app.callback()
def status(context: typer.Context) -> None:
    """List every data set with its state."""
    if context.invoked_subcommand is None:
        tables.show(("", "", ""), [(name, *datasets.registry.status(name)) for name in datasets.registry.DATASETS])


@app.command()
def fetch(name: Name) -> None:
    """Download a data set and verify it."""
    for path in datasets.registry.fetch(name):
        typer.echo(f"{name}: {path}")


@app.command("import")
def import_(name: Name, path: Annotated[Path, typer.Argument(help="A file, an archive or a folder of yours.")]) -> None:
    """Import your own copy of a data set."""
    for taken in datasets.registry.import_(name, path):
        typer.echo(f"{name}: {taken}")


@app.command()
def check(
    name: Annotated[str | None, typer.Argument(help="A data set; all that are here when none is named.")] = None,
) -> None:
    """Re-read every byte and compare it with what was published."""
    states = set()
    for each in [name] if name else datasets.registry.DATASETS:
        if name or datasets.registry.status(each)[0] != "absent":
            state, detail = datasets.registry.status(each, whole=True)
            typer.echo(f"{each}: {state}, {detail}")
            states.add(state)
    if states - {"present"}:
        raise typer.Exit(1)


def doctor() -> None:
    """Say what works here (folders, records, GPU, compiler, data) and what each gap costs."""
    rows, broken = [], []
    for name, look in (("folder", folder), ("records", records), ("torch", accelerator), ("data", data_sets)):
        try:
            rows.append((name, look()))
        except Exception as error:  # whatever it is, the reader is to know it
            rows.append((name, f"fails: {type(error).__name__}: {error}"))
            broken.append(name)
    tables.show(("", ""), rows)
    typer.echo(f"\nFix first: {', '.join(broken)}." if broken else "\nEverything essential works.")
    if broken:
        raise typer.Exit(1)


def folder() -> str:
    for target in (paths.runs(), paths.figures(), paths.cache()):
        tempfile.TemporaryFile(dir=next(each for each in (target, *target.parents) if each.exists())).close()
    return f"runs go to {paths.runs()}, figures to {paths.figures()}"


def records() -> str:
    from nlstm_lab import runs

    table = runs.table()[["experiment", "scale", "seed"]].drop_duplicates()
    return f"{len(table)} runs of {table['experiment'].nunique()} experiments" if len(table) else "none in this folder"


def accelerator() -> str:
    import torch

    from nlstm_lab.cells.fast import lacking

    here = torch.cuda.is_available()
    gpu = torch.cuda.get_device_name() if here else "no GPU: most paper-scale runs take days"
    lack = lacking("cuda" if here else "cpu")
    return f"{torch.__version__}; {gpu}; {f'{lack}: long trainings run uncompiled' if lack else 'compiler found'}"


def data_sets() -> str:
    found = ", ".join(f"{name} ({datasets.registry.status(name)[0]})" for name in datasets.registry.DATASETS)
    return f"{found}: `nlstm-lab data fetch NAME`, or import NAME PATH"
