"""`figures/index.html`: every saved figure on one page that needs no network."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from nlstm_lab import paths
from nlstm_lab.figures import style
from nlstm_lab.figures.saving import manifest

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
<p>{count}, each with the notebook, the runs and the seeds that made it, and the verdicts of its notebook on what the
documents print.</p>
<input type="search" placeholder="Find: name, caption, run, verdict" aria-label="Find a figure">
</header>
<main>
{cards}
</main>
{tables}
<script>
{js}</script>
<script src="pages/here.js"></script>
</body>
</html>
"""

TABLES = """<h2>Tables</h2>
<p>Every number of a document's table beside ours, with its interval and verdict; LaTeX is ready for a paper.</p>
<ul class="tables">
{lines}
</ul>"""

CARD = """<article id="{name}">
<a href="{name}.svg"><img src="{name}.png" alt="{alt}" loading="lazy"></a>
<h2>{name}</h2>
{about}
<p class="files">{links}</p>
</article>"""


def gallery(verdicts: pd.DataFrame | None = None) -> Path:
    """Write `figures/index.html` from the sidecars and the notebooks; returns its path.

    verdicts: the frame of `lab.targets.verdicts(...)`, for the verdicts on what a figure's notebook compares and notes.
    Where the notebooks were exported as pages, the cards link to them, too: the page finds out when it is opened.
    A page that would not change is not written. LabError: the folder cannot be written.
    """
    made_in = notebooks_by_figure()
    records = manifest()
    tallies = {notebook: tally(notebook, verdicts) for notebook in set(made_in.values())}
    cards = "\n".join(
        _card(record, notebook := made_in.get(record["name"], ""), tallies.get(notebook, {})) for record in records
    )
    count = f"{len(records)} figure" + ("s" if len(records) != 1 else "")
    folder = paths.PACKAGE / "figures"
    css, js = ((folder / f"index.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    page = PAGE.format(count=count, cards=cards, tables=_tables(), css=css, js=js)
    target = paths.figures() / "index.html"
    paths.write(target, page)
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


def tally(notebook: str, verdicts: pd.DataFrame | None) -> dict[str, int]:
    """How often each verdict falls on the tables and claims that a notebook calls by their name."""
    if verdicts is None:
        return {}
    named = set(re.findall(r'\\"([\w.]+)\\"', (paths.notebooks() / notebook).read_text(encoding="utf-8")))
    whole, claim = verdicts["document"] + "." + verdicts["place"], verdicts["kind"] == "claim"
    mine = verdicts["anchor"] & (whole.isin(named) | (claim & verdicts["place"].isin(named)))
    counts = verdicts.loc[mine, "verdict"].value_counts()
    return {name: int(counts[name]) for name in style.VERDICTS if name in counts}


def _tables() -> str:
    """Links to what comparisons saved beside the figures."""
    stems = [path.stem for path in sorted(paths.figures().glob("*.tex"))]
    links = {
        stem: " · ".join(f'<a href="{stem}.{suffix}" download>{suffix}</a>' for suffix in ("csv", "tex"))
        for stem in stems
    }
    lines = "\n".join(f"<li>{stem}: {link}</li>" for stem, link in links.items())
    return TABLES.format(lines=lines) if lines else ""


def _card(record: dict[str, Any], notebook: str, verdicts: Mapping[str, int]) -> str:
    name, caption = escape(record["name"]), escape(record["caption"])
    about = [f"<p>{caption}</p>"] if caption else []
    if notebook:
        source, page = f"../notebooks/{escape(notebook)}", f"pages/{escape(notebook.removesuffix('.ipynb'))}.html"
        also = f'<span hidden>, <a href="{page}">as a page</a></span>'
        about.append(f'<p class="made">notebook <a href="{source}">{escape(notebook)}</a>{also}</p>')
    if verdicts:
        looks = [(style.VERDICTS[each].colour, f"{count} {each}") for each, count in verdicts.items()]
        chips = " ".join(f'<span class="verdict" style="background:{colour}">{text}</span>' for colour, text in looks)
        about.append(f'<p class="verdicts">{chips}</p>')
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
