"""`figures/index.html`: every saved figure on one page that needs no network."""

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from nlstm_lab import paths
from nlstm_lab.errors import LabError
from nlstm_lab.figures.saving import manifest, read_text

FEW = 4  # groups of runs that a card lists without being asked
SUFFIXES = ("pdf", "svg", "png", "csv")

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>nlstm_lab: figures</title>
<style>
{css}</style>
</head>
<body>
<header>
<h1>Figures</h1>
<p>{count}, each with the notebook, the runs and the seeds that made it.</p>
<input type="search" placeholder="Find: name, caption, run" aria-label="Find a figure">
</header>
<main>
{cards}
</main>
<script>
{js}</script>
</body>
</html>
"""

CARD = """<article id="{name}">
<a href="{name}.svg"><img src="{name}.png" alt="{alt}" loading="lazy"></a>
<h2>{name}</h2>
{about}
<p class="files">{links}</p>
</article>"""


def gallery() -> Path:
    """Write `figures/index.html` from the sidecars and the notebooks; returns its path.

    A page that would not change is not written. LabError: the folder cannot be written.
    """
    made_in = notebooks_by_figure()
    records = manifest()
    cards = "\n".join(_card(record, made_in.get(record["name"], "")) for record in records)
    count = f"{len(records)} figure" + ("s" if len(records) != 1 else "")
    css, js = (read_text(paths.PACKAGE / "figures" / f"index.{kind}") for kind in ("css", "js"))
    page = PAGE.format(count=count, cards=cards, css=css, js=js)
    target = paths.figures() / "index.html"
    if read_text(target) != page:
        try:
            with paths.atomic(target) as partial:
                partial.write_text(page, encoding="utf-8")
        except OSError as error:
            raise LabError(f"cannot write {target}: {error.strerror or error}") from error
    return target


def notebooks_by_figure() -> dict[str, str]:
    """Which notebook saves which figure, read from the notebooks: they name what they save literally."""
    saved = re.compile(r"figures\.save\(\s*\w+,\s*\\\"(\w+)\\\"")
    return {
        name: notebook.name
        for notebook in sorted(paths.notebooks().glob("*.ipynb"))
        for name in saved.findall(notebook.read_text(encoding="utf-8"))
    }


def grouped(runs: Sequence[str]) -> list[str]:
    """Runs of one experiment and scale together, with their seeds.

    >>> grouped(["a/small-seed0", "b/small-seed3", "a/small-seed1"])
    ['a/small, seeds 0, 1', 'b/small, seed 3']
    """
    seeds: dict[str, list[str]] = {}
    for run in runs:
        name, _, seed = run.rpartition("-seed")
        seeds.setdefault(name, []).append(seed)
    return [f"{name}, seed{'s' if len(each) > 1 else ''} {', '.join(each)}" for name, each in seeds.items()]


def _card(record: dict[str, Any], notebook: str) -> str:
    name, caption = escape(record["name"]), escape(record["caption"])
    about = [f"<p>{caption}</p>"] if caption else []
    if notebook:
        about.append(f'<p class="made">notebook <a href="../notebooks/{escape(notebook)}">{escape(notebook)}</a></p>')
    if record["runs"]:
        groups = [escape(group) for group in grouped(record["runs"])]
        count = f"{len(record['runs'])} runs of {len(groups)} experiments"
        listed = "<br>".join(groups)
        about.append(
            f'<p class="made">{listed}</p>'
            if len(groups) <= FEW
            else f'<details class="made"><summary>{count}</summary>{listed}</details>'
        )
    links = " · ".join(f'<a href="{name}.{suffix}" download>{suffix}</a>' for suffix in SUFFIXES)
    return CARD.format(name=name, alt=caption or name, about="\n".join(about), links=links)
