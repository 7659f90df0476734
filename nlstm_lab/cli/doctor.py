"""`nlstm-lab doctor`: what works on this machine, and what each lack costs; `pip check` compares the versions."""

import shutil
import tempfile

import typer

from nlstm_lab import paths
from nlstm_lab.cli import tables

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def doctor() -> None:
    """Say what works here (folders, records, GPU, compiler, data, browser) and what each lack costs."""
    rows, broken = [], []
    for name, check in (("folder", folder), ("records", records), ("torch", accelerator), ("data", data_sets)):
        try:
            rows.append((name, check()))
        except Exception as error:  # whatever it is, the reader is to know it
            rows.append((name, f"fails: {type(error).__name__}: {error}"))
            broken.append(name)
    browser = next((name for name in BROWSERS if shutil.which(name)), "no Chromium: the tests of widgets are skipped")
    tables.show(("", ""), [*rows, ("browser", browser)])
    if broken:
        typer.echo(f"\nTo be repaired first: {', '.join(broken)}.")
        raise typer.Exit(1)
    typer.echo("\nEverything essential works.")


def folder() -> str:
    """Whether runs, figures and the cache can be written."""
    for target in (paths.runs(), paths.figures(), paths.cache()):
        tempfile.TemporaryFile(dir=next(each for each in (target, *target.parents) if each.exists())).close()
    return f"runs and figures go to {paths.root()}"


def records() -> str:
    """Whether the committed records are whole, and of today's experiments."""
    from nlstm_lab import runs

    table = runs.table()
    count = len(table[["experiment", "scale", "seed"]].drop_duplicates())
    return f"{count} runs of {table.experiment.nunique()} experiments, all current" if count else "none in this folder"


def accelerator() -> str:
    """The GPU, and whether the pointwise loops can be compiled."""
    import torch

    from nlstm_lab.cells.fast.compiling import lacking

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU: most paper-scale runs take days"
    lack = lacking("cuda" if torch.cuda.is_available() else "cpu")
    return f"{torch.__version__}; {gpu}; {f'{lack}: long trainings run uncompiled' if lack else 'compiler found'}"


def data_sets() -> str:
    """The data sets that are here, and those that are absent or damaged."""
    from nlstm_lab.datasets import registry

    states = registry.status()
    here = [row.name for row in states if row.state == "present"]
    lacks = [f"{row.name} ({row.state})" for row in states if row.state != "present"]
    how = f"; not {', '.join(lacks)}: `nlstm-lab data fetch NAME`, or import NAME PATH" if lacks else ""
    return f"{', '.join([*here, 'python_docs'])}{how}"
