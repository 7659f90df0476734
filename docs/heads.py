"""The first cell of every notebook: what was found stands under its title, a caption under each of its pictures.

These lines are generated (`make pages`); all others are written by hand in the notebook.
"""

import re
from pathlib import Path

import catalogue
import nbformat

from nlstm_lab import execute

VERDICT = "**Verdict.** "
FOUND = re.compile(rf"^{re.escape(VERDICT)}.*\n\n", re.MULTILINE)
PICTURE = re.compile(r"^(!\[[^\]]*\]\(\.\./figures/(\w+)\.png\))(?:\n\n\*[^\n]*\*$)?", re.MULTILINE)


def heads() -> dict[Path, str]:
    """Every notebook with its first cell as it should be."""
    captions = {record["name"]: record["caption"] for record in catalogue.manifest()}
    found = {}
    for name in execute.names():
        notebook = execute.Job(name).read()
        first = notebook.cells[0]
        first.source = head(first.source, verdict(name), captions)
        found[execute.Job(name).source] = nbformat.writes(notebook) + "\n"
    return found


def verdict(name: str) -> str:
    """The findings of a notebook, one sentence each, and how often each verdict falls there."""
    lines = [one.line for one in catalogue.findings() if one.notebook == name]
    counts = catalogue.tally(name)
    judged = f"Judged here: {counts}."
    return " ".join([*lines, *([f"({judged})" if lines else judged] if counts else [])])


def head(source: str, verdict: str, captions: dict[str, str]) -> str:
    """A first cell with these generated lines in place of those that it has."""
    title, _, rest = FOUND.sub("", source).partition("\n\n")
    rest = PICTURE.sub(lambda picture: f"{picture[1]}\n\n*{captions[picture[2]]}*", rest)
    return "\n\n".join([title, *([VERDICT + verdict] if verdict else []), rest])


def without_generated(source: str) -> str:
    """A first cell as it is written by hand."""
    return PICTURE.sub(r"\1", FOUND.sub("", source))
