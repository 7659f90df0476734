"""`nlstm-lab doctor`: what works on this machine, and what each lack costs."""

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

import typer

from nlstm_lab import paths
from nlstm_lab.cli import tables

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DISPENSABLE = ("captum", "papermill", "ipykernel", "jupyterlab", "ipywidgets", "anywidget", "distributed", "pooch")


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str
    state: str
    cost: str = ""  # of its lack
    essential: bool = False


def doctor() -> None:
    """Say what works here (packages, GPU, compiler, data, browser) and what each lack costs."""
    from rich.table import Table
    from rich.text import Text

    findings = list(examine())
    table = Table("", "part", "here", "what the lack costs", box=None, pad_edge=False)
    for each in findings:
        how = ("broken", "bold red") if each.essential else ("lacks", "yellow")
        table.add_row(Text(*how if each.cost else ("ok", "green")), each.name, each.state, each.cost)
    tables.console().print(table)
    if broken := [each.name for each in findings if each.essential and each.cost]:
        typer.echo(f"\nTo be repaired first: {', '.join(broken)}.")
        raise typer.Exit(1)
    typer.echo("\nEverything essential works.")


def examine() -> Iterator[Finding]:
    """Every finding, the essential first; a check that fails is a finding, too."""
    yield from packages()
    for name, check in (("folder", folder), ("records", records)):
        try:
            yield Finding(name, check(), essential=True)
        except Exception as error:  # whatever it is, the reader is to know it
            yield Finding(name, "fails", f"{type(error).__name__}: {error}", essential=True)
    if "torch" in sys.modules:
        yield gpu()
        yield compiler()
    yield from data_sets()
    found = next((name for name in BROWSERS if shutil.which(name)), "")
    yield Finding("browser", found or "no Chromium", "" if found else "the tests of widgets are skipped")


def packages() -> Iterator[Finding]:
    """The packages that the project asks for: absent, or of a version outside the range that it names."""
    from packaging.requirements import Requirement

    try:
        lines = metadata.requires("nlstm_lab") or []
    except metadata.PackageNotFoundError:  # a checkout that Python finds by its path
        yield Finding("packages", "not installed", "versions are not checked; `pip install -e .` installs the project")
        return
    asked = [Requirement(line) for line in lines if "extra ==" not in line]
    good = {}
    for requirement in asked:
        name = requirement.name
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            essential = name not in DISPENSABLE
            cost = "nothing can be trained, probed or drawn" if essential else "what needs it says so; all else works"
            yield Finding(name, "absent", cost, essential)
            continue
        if requirement.specifier.contains(version, prereleases=True):
            good[name] = version
        else:
            yield Finding(name, version, f"not tried: the project asks for {requirement.specifier}")
    torch = f", torch {good['torch']}" if "torch" in good else ""
    yield Finding("packages", f"{len(good)} of {len(asked)} as asked for{torch}")


def folder() -> str:
    """Runs and figures can be written."""
    import tempfile

    for target in (paths.runs(), paths.figures(), paths.cache()):
        tempfile.TemporaryFile(dir=next(each for each in (target, *target.parents) if each.exists())).close()
    return f"runs and figures go to {paths.root()}"


def records() -> str:
    """The committed records are whole, and of today's experiments."""
    from nlstm_lab import runs

    table = runs.table()
    count = len(table[["experiment", "scale", "seed"]].drop_duplicates())
    return f"{count} runs of {table.experiment.nunique()} experiments, all current" if count else "none in this folder"


def gpu() -> Finding:
    """A CUDA device that torch can use."""
    import torch

    if not torch.cuda.is_available():
        return Finding("GPU", "none", "most runs at paper scale take hours or days")
    properties = torch.cuda.get_device_properties(0)
    return Finding("GPU", f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB")


def compiler() -> Finding:
    """What inductor needs to compile the pointwise loops."""
    import torch

    from nlstm_lab.cells.fast.compiling import lacking

    if not (lack := lacking("cuda" if torch.cuda.is_available() else "cpu")):
        return Finding("compiler", "found")
    return Finding("compiler", lack, "long trainings run uncompiled, and slower")


def data_sets() -> Iterator[Finding]:
    """The data sets that are here, each damaged one, and those that are absent."""
    from nlstm_lab.datasets import registry

    states = registry.status()
    here = [row.name for row in states if row.state == "present"]
    yield Finding("data", ", ".join([*here, "python_docs (in every Python)"]))
    for row in states:
        if row.state == "damaged":
            yield Finding("data", f"{row.name} is damaged", row.detail)
    if absent := ", ".join(row.name for row in states if row.state == "absent"):
        cost = "no runs on them; `nlstm-lab data fetch NAME`, or import NAME PATH"
        yield Finding("data", f"absent: {absent}", cost)
