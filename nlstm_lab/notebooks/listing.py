"""`notebooks/README.md`: every notebook with its figure, its verdicts and the time that it takes."""

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from nlstm_lab import paths
from nlstm_lab.figures.index import notebooks_by_figure, tally
from nlstm_lab.notebooks.inputs import stamped
from nlstm_lab.notebooks.jobs import Job, names

HEAD = """# Notebooks

One notebook is one figure or table; the tens digit is the document: 0 overview, 1 Nested LSTMs, 2 Hierarchical
Multiscale RNNs, 3 Exploration of Recurrent Units, 9 questions and instruments of our own. `make lab` opens them in
JupyterLab, and `nlstm-lab figures 12` executes one, in about the seconds shown (from committed records, on two cores;
nothing is trained, except by 01). Verdicts are counted over the printed numbers and claims that a notebook judges.
`nlstm-lab table --readme` renews this page.

| notebook | figure | seconds | verdicts |
|---|---|---|---|
"""
LINE = re.compile(r"^\| \[(\w+)\].*\| (\d*) \|[^|]*\|$", re.MULTILINE)  # the seconds of each notebook, as they stand


def update_listing(verdicts: pd.DataFrame) -> bool:
    """Write the page from the notebooks and the frame of `targets.verdicts`; returns whether anything changed.

    Seconds come from executed copies; those that stand there stay while they are right within a factor of two, since no
    two machines and no two days agree.
    """
    standing = _standing()
    for name in names():
        measured, stated = float(stamped(Job(name)).get("seconds", 0)), standing.get(name, 0)
        if measured and not measured / 2 <= stated <= measured * 2:
            standing[name] = max(1, round(measured))
    return paths.write(_page(), render(verdicts, standing))


def listing_is_fresh(verdicts: pd.DataFrame) -> bool:
    """Whether the page is what `update_listing` would write, whatever it takes to execute the notebooks here."""
    return _page().is_file() and _page().read_text(encoding="utf-8") == render(verdicts, _standing())


def render(verdicts: pd.DataFrame, seconds: Mapping[str, int]) -> str:
    """The page as Markdown."""
    made_in = notebooks_by_figure()
    lines = []
    for name in names():
        own = (figure for figure, notebook in made_in.items() if notebook == f"{name}.ipynb")
        shown = [figure for figure in own if (paths.figures() / f"{figure}.png").is_file()]
        picture = (
            f'<a href="{name}.ipynb"><img src="../figures/{shown[0]}.png" width="240" alt=""></a>' if shown else ""
        )
        counts = ", ".join(f"{count} {verdict}" for verdict, count in tally(f"{name}.ipynb", verdicts).items())
        linked = f"[{name}]({name}.ipynb)<br>{_title(name)}"
        lines.append(f"| {linked} | {picture} | {seconds.get(name, '')} | {counts} |\n")
    return HEAD + "".join(lines)


def _title(name: str) -> str:
    first: str = Job(name).read().cells[0].source.splitlines()[0]
    return first.removeprefix("# ").replace("|", "\\|")


def _standing() -> dict[str, int]:
    text = _page().read_text(encoding="utf-8") if _page().is_file() else ""
    return {name: int(seconds) for name, seconds in LINE.findall(text) if seconds}


def _page() -> Path:
    return paths.notebooks() / "README.md"
