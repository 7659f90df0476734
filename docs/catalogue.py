"""What the pages are about: findings with their claims, notebooks in reading order, figures with their notebooks."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import numbers_of as numbers
import pandas as pd
import yaml

import nlstm_lab as lab
from nlstm_lab import execute, paths
from nlstm_lab.figures import saving
from nlstm_lab.settings import METRIC_LABELS

DOCS = Path(__file__).resolve().parent
NEXT = re.compile(r"\*\*Next:\*\* \[notebook \d+\]\((\w+)\.ipynb\)")
NAMES = {name: getattr(numbers, name) for name in dir(numbers) if not name.startswith("_")}
JINJA = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)
SENTENCE = ["says", "metric", "split"]  # one or more comparisons
STATEMENT = [*SENTENCE, "note", "scale", "setting"]  # what one row of claims is about


@dataclass(frozen=True)
class Statement:
    """What a document says (or we ask), beside what was measured of it."""

    document: str
    where: str
    says: str
    note: str
    measure: str
    verdict: str  # one word where there is one comparison, else how many have which
    worst: str  # of the comparisons' verdicts
    ours: str  # a number with its interval
    seeds: int
    scale: str

    @property
    def runs(self) -> str:
        return f"{self.seeds} seeds, {self.scale} scale" if self.scale else "none"


@dataclass(frozen=True)
class Finding:
    """One finding: its prose with today's numbers, and what it rests on."""

    slug: str
    title: str
    line: str
    believe: str  # what to believe of its document, of the finding to know first
    body: str
    statements: tuple[Statement, ...]
    figures: tuple[str, ...]
    notebook: str


def rendered(text: str, **names: Any) -> str:
    """A template with today's numbers."""
    return JINJA.from_string(text).render(**NAMES, **names)


@cache
def findings() -> list[Finding]:
    """All findings, in the order of their files. Untrue: a sentence is no longer what the records say."""
    return [_finding(path) for path in sorted((DOCS / "findings").glob("*.md"))]


def _finding(path: Path) -> Finding:
    _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    about = yaml.safe_load(head)
    return Finding(
        slug=path.stem.partition("_")[2],
        title=about["title"],
        line=rendered(about["line"]),
        believe=rendered(about.get("believe", "")),
        body=rendered(body).strip(),
        statements=tuple(one for name in about["claims"] for one in statements(name)),
        figures=tuple(about["figures"]),
        notebook=execute.resolve(str(about["notebook"])),
    )


def said(name: str) -> pd.DataFrame:
    """The rows of a claim, or of a table's orderings, by its whole name; "place#0" is the first sentence of a place."""
    whole, _, which = name.partition("#")
    rows = numbers.of(whole)
    rows = rows[(rows["kind"].eq("ordering") & rows["anchor"]) | rows["kind"].eq("claim")]
    return rows[rows["says"].eq(rows["says"].unique()[int(which)])] if which else rows


def statements(name: str) -> list[Statement]:
    """What `said` finds, a row for each pair of rows that is compared."""
    chosen = said(name)
    if chosen.empty:
        raise numbers.Untrue(f"no document says {name!r}")
    whole_sentences = {key: len(rows) for key, rows in chosen.groupby(SENTENCE)}
    groups = (group for _, group in chosen.groupby(STATEMENT, sort=False))
    return [_statement(group, whole_sentences[tuple(group[SENTENCE].iloc[0])]) for group in groups]


def worst(found: Iterable[str]) -> str:
    """The verdict on a sentence by those of its comparisons: it holds against all rivals, and fails against one."""
    found = [*found]
    return next(one for one in ("fails", "inconclusive", "not run", *found) if one in found)


def shown(rows: pd.DataFrame) -> "pd.Series[Any]":
    """Of a sentence's comparisons, the smallest of those that have its verdict."""
    return rows[rows["verdict"].eq(worst(rows["verdict"]))].sort_values("ours", kind="stable").iloc[0]


def _statement(rows: pd.DataFrame, comparisons: int) -> Statement:
    least = shown(rows)
    found = rows["verdict"].value_counts(sort=False)
    ours = ""
    if least["scale"]:
        digits = len(least["as_printed"].partition(".")[2]) + 1 if least["as_printed"] else 3
        ours = numbers.ci(numbers.Interval(least["ours"], least["low"], least["high"]), digits)
        ours = f"{METRIC_LABELS.get(least['metric'], '')}: {ours}".removeprefix(": ")
        ours += " (smallest)" if len(rows) > 1 else ""
    split = {"valid": "validation"}.get(least["split"], least["split"])
    part = f"{len(rows)} of {comparisons} comparisons" if len(rows) < comparisons else ""
    return Statement(
        document="" if least["own"] else lab.targets.load(least["document"]).title,
        where=", ".join(filter(None, [least["where"], split, part])),
        says=least["says"],
        note=least["note"],
        measure=least["subject"] if least["kind"] == "claim" else "",
        verdict=str(found.index[0]) if len(found) == 1 else ", ".join(f"{n} {name}" for name, n in found.items()),
        worst=worst(found.index),
        ours=ours,
        seeds=int(rows["seeds"].min()),
        scale=least["scale"],
    )


def reading_order() -> list[str]:
    """Every notebook, as the last lines of each lead on from the cell types, and those that none leads to."""
    order: list[str] = []
    following: list[str] = [execute.resolve("10")]
    while following and following[0] not in order:
        order.append(following[0])
        following = NEXT.findall(execute.Job(order[-1]).read().cells[-1].source)
    return [*order, *(name for name in execute.names() if name not in order)]


def title(name: str) -> str:
    """A notebook's title."""
    first: str = execute.Job(name).read().cells[0].source.splitlines()[0]
    return first.removeprefix("# ")


@cache
def notebooks_by_figure() -> dict[str, str]:
    """Which notebook saves which figure, read from the notebooks: they name what they save literally."""
    saved = re.compile(r"figures\.save\(\s*\w+,\s*\\\"(\w+)\\\"")
    return {
        figure: path.stem
        for path in sorted(paths.notebooks().glob("*.ipynb"))
        for figure in saved.findall(path.read_text(encoding="utf-8"))
    }


def compared(source: str) -> list[str]:
    """The printed tables that a notebook sets beside ours."""
    return re.findall(r'targets\.compare\(\\"([\w.]+)', source)


def tally(name: str) -> str:
    """How often each verdict falls on the tables and claims that a notebook names, also as f"name_{part}"."""
    source = (paths.notebooks() / f"{name}.ipynb").read_text(encoding="utf-8")
    named = re.sub(r"\{\w+\}", r"\\w+", "|".join(re.findall(r'\\"(\w[\w.{}]*)\\"', source)))
    frame = numbers.verdicts()
    whole, claims = frame["document"] + "." + frame["place"], frame["kind"].eq("claim")
    mine = frame["anchor"] & (whole.str.fullmatch(named) | (claims & frame["place"].str.fullmatch(named)))
    mine = frame[mine & frame["verdict"].ne("")]
    several = {"holds": "hold", "fails": "fail", "differs": "differ", "smaller scale": "at smaller scale only"}
    counts = []
    for own, of in ((False, ""), (True, "of our own questions ")):
        found = mine.loc[mine["own"].eq(own), "verdict"].value_counts(sort=False)
        said = ", ".join(f"{n} {several.get(word, word) if n > 1 else word}" for word, n in found.items())
        counts += [of + said] if said else []
    return "; ".join(counts)


@cache
def manifest() -> list[dict[str, Any]]:
    """What is known of each saved figure."""
    return saving.manifest()


def grouped(runs: Iterable[str]) -> list[str]:
    """Runs of one experiment and scale together, with their seeds: "a/small, seeds 0, 1"."""
    seeds: dict[str, list[str]] = {}
    for run in runs:
        name, _, seed = run.rpartition("-seed")
        seeds.setdefault(name, []).append(seed)
    return [f"{name}, seed{'s' * (len(each) > 1)} {', '.join(each)}" for name, each in seeds.items()]
