"""Verdicts as text: a printed table beside ours, for readers and in LaTeX for a paper; all tables in Markdown."""

import html
import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from nlstm_lab import parameters, paths
from nlstm_lab.errors import UsageError
from nlstm_lab.runs.records import commit
from nlstm_lab.settings import METRIC_LABELS
from nlstm_lab.statistics import holm
from nlstm_lab.targets.entries import NOT_RUN, load
from nlstm_lab.targets.verdicts import ENOUGH, SMALLER, UNJUDGED, Runs, discriminations, frame, judge, printed_numbers

MADE_WITH = "% made with "  # how the last line of a LaTeX table begins

OURS = "ours [95 % interval]"
RIGHT = ("parameters", "printed", OURS, "seeds")  # columns of a LaTeX table whose numbers end at the right
SIGNS = {"−": "$-$", "×": r"$\times$", "†": r"$^\dagger$", "“": "``", "”": "''", "’": "'"}
SPLITS = {"valid": "validation", "test": "test", "": "probes"}
OUTCOMES = {  # column of the report: the verdicts that it counts, worded as they are counted
    "replicated or close": {"match": "match", "close": "close", "holds": "hold"},
    "not replicated": {"differs": "differ", "fails": "fail"},
    "inconclusive": {"inconclusive": "inconclusive", UNJUDGED: UNJUDGED},
    "not run": {NOT_RUN: "not run", SMALLER: "only at smaller scale", "few": "with too few seeds"},
}
STATEMENT = ["where", "says", "note", "metric", "split", "scale", "setting"]  # what one line of claims is about
READING = (
    "Numbers are judged at paper scale; of two in a cell, the first is for validation and the second for the test set. "
    "Orderings and claims are judged by 95 % intervals over seeds at the scale shown, on the splits that the claim is "
    "about. A row with several comparisons shows the smallest difference (“smallest”) and counts the verdicts."
)
Cells = list[dict[Hashable, Any]]


@dataclass(frozen=True)
class Comparison:
    """A table of a document beside our runs.

    Args:
        title, note: What stands above and below it.
        frame: One row a number (and ordering), metric and split, with the columns of `entries.Row`.
    """

    target: str
    title: str
    note: str
    frame: pd.DataFrame

    def save(self) -> list[Path]:
        """Write `<document>_<table>.csv` (every column) and `.tex` (for a paper) among the figures.

        They go into `workspaces/figures` where other parameters made those that are there.

        Returns:
            Both paths.
        """
        tex = paths.figures() / f"{self.target.replace('.', '_')}.tex"
        _, named, made_with = _text(tex).rstrip().rpartition(f"\n{MADE_WITH}")
        tex = parameters.output_path(tex, json.loads(made_with) if named else {})
        lines = [*below(self.frame), f"made with {json.dumps(parameters.current(), ensure_ascii=False)}"]
        made, before = booktabs(self.frame) + "".join(f"% {line}\n" for line in lines), _text(tex)
        same = before.partition("\n")[2] == made.partition("\n")[2]  # but for the commit that made it first
        paths.write(tex, before if same else made)
        csv = tex.with_suffix(".csv")
        paths.write(csv, self.frame.to_csv(index=False, float_format="%.7g", lineterminator="\n"))
        return [csv, tex]

    def _repr_html_(self) -> str:
        table = shown(self.frame).to_html(index=False, border=0, escape=True)
        remarks = [self.note] * bool(self.note) + below(self.frame)
        return f"<h4>{html.escape(self.title)}</h4>{table}" + "".join(f"<p>{html.escape(one)}</p>" for one in remarks)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def compare(target: str, table: pd.DataFrame) -> Comparison:
    """Set a printed table beside our runs.

    Raises:
        UsageError: No document has that table, or the frame is no table of runs.

    >>> import nlstm_lab as lab
    >>> comparison = lab.targets.compare("nested_lstm.table1", lab.runs.table("ptb_char_*"))
    >>> comparison.frame.as_printed.tolist()[:2]
    ['1.489', '1.451']
    """
    name, _, place = str(target).partition(".")
    document = load(name)
    if place not in document.places:
        known = ", ".join(f"{name}.{known}" for known in document.places)
        raise UsageError(f"there is no target {target!r}; there are {known}")
    entries = document.places[place]
    title = f"{document.title} ({document.authors} {document.year}), {entries.where}: {entries.caption}"
    return Comparison(target, title, entries.note, frame(judge(entries, Runs(table))))


def shown(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Write a frame of verdicts as text for readers, with the digits of the document and one more for ours."""
    rows = _worded(verdicts)
    ours, low, high = ([*map(_number, rows[name], rows["digits"])] for name in ("ours", "low", "high"))
    setting = (", " + rows["setting"]).mask(rows["setting"].isin(["", "as printed"]), "")
    text = {
        "": rows["subject"] + setting + rows["note"].ne("").map({True: "†", False: ""}),
        **{name: rows[name] for name in ("parameters", "metric", "split")},
        "printed": rows["as_printed"],
        "ours": ours,
        "95 % interval": [
            f"{first} to {last}" if first and last else "" for first, last in zip(low, high, strict=True)
        ],
        "seeds": rows["seeds"].astype(str),
        "each seed": rows["values"],
        **{name: rows[name] for name in ("scale", "verdict")},
    }
    return pd.DataFrame(text)


def _worded(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Metrics and splits in words; `digits`: the printed number that sets them, a row's own or its table's."""
    alike = verdicts.groupby(["document", "place", "metric"])["as_printed"].transform("first")
    words = {"metric": METRIC_LABELS, "split": {"valid": "validation"}}
    return verdicts.replace(words).assign(digits=verdicts["as_printed"].where(verdicts["as_printed"].ne(""), alike))


def _number(value: float, as_printed: str) -> str:
    """`value` with one digit more than the printed number, four significant ones where nothing is printed."""
    if pd.isna(value):
        return ""
    return f"{value:.{len(as_printed.partition('.')[2]) + 1}f}" if as_printed else f"{value:.4g}"


def booktabs(verdicts: pd.DataFrame) -> str:
    """Write a frame of verdicts as a LaTeX table, below a comment on what it needs and what made it."""
    text = shown(verdicts)
    between = text.pop("95 % interval").str.replace(" to ", ", ")
    text["ours"] += between.where(between.eq(""), " [" + between + "]")
    text = text.drop(columns="each seed").rename(columns={"ours": OURS}).loc[:, lambda table: table.ne("").any()]
    for name in text.columns.intersection(list(RIGHT)):
        text[name] = text[name].str.replace("-", "−")
    sides = "".join("r" if name in RIGHT else "l" for name in text)
    table = str(text.to_latex(index=False, escape=True, column_format=sides))
    for sign, written in SIGNS.items():
        table = table.replace(sign, written)
    made_by = f"Made by nlstm_lab {version('nlstm-lab')} at commit {commit()[:10]}."
    return rf"% Needs \usepackage{{booktabs}}. {made_by}" + "\n" + table


def below(verdicts: pd.DataFrame) -> list[str]:
    """What stands below a table: what its tolerances distinguish, then its notes."""
    return [f"{one}." for one in discriminations(_worded(verdicts))] + _notes(verdicts)


def _notes(verdicts: pd.DataFrame) -> list[str]:
    """The notes that a dagger refers to, each with the rows that it is about."""
    return [
        f"† {note} ({'; '.join(dict.fromkeys(about['where'] + ', ' + about['subject']))})."
        for note, about in verdicts[verdicts["note"].ne("")].groupby("note", sort=False)
    ]


def report(verdicts: pd.DataFrame) -> str:
    """Write the whole frame of `verdicts` as a small Markdown table, with the commands that run what lacks runs."""
    counted = verdicts[verdicts["anchor"]]
    few = counted["verdict"].eq("inconclusive") & counted["seeds"].lt(ENOUGH)
    counted = counted.assign(verdict=counted["verdict"].mask(few, "few"))
    lines = ["| | on | " + " | ".join(OUTCOMES) + " |", "|---" * (len(OUTCOMES) + 2) + "|"]
    numbers, own = printed_numbers(counted), counted["own"]
    families = {}  # what is counted together
    for name in dict.fromkeys(counted["document"]):
        mine, title = (counted["document"] == name) & ~own, load(str(name)).title
        families[f"**{title}**, printed numbers"] = counted[mine & numbers]
        families[f"**{title}**, orderings and claims"] = counted[mine & ~numbers]
    families["**Questions of our own**"] = counted[own]
    for label, rows in families.items():
        parts = {split: part for split in SPLITS if len(part := rows[rows["split"] == split])}
        lines += [_line("" if k else label, *one) for k, one in enumerate(parts.items())]
    lacking = counted["verdict"].isin(OUTCOMES["not run"]) & counted["kind"].ne("claim")
    corrected = "In brackets: how many remain after Holm's correction at 5 % for the comparisons in their row."
    return "\n".join([*lines, "", corrected, "", _rest(counted[lacking])]) + "\n"


def _line(label: str, split: str, rows: pd.DataFrame) -> str:
    corrected = rows[holm(rows["p"])]["verdict"].tolist()
    verdicts, cells = rows["verdict"].tolist(), []
    for worded in OUTCOMES.values():
        counts = []
        for verdict, word in worded.items():
            if count := verdicts.count(verdict):
                after = f" ({corrected.count(verdict)})" if verdict in ("holds", "fails") else ""
                counts.append(f"{count} {word}{after}" if len(worded) > 1 else str(count))
        cells.append(", ".join(counts) or "0")
    return _cells(label, SPLITS[split], *cells)


def _rest(lacking: pd.DataFrame) -> str:
    """What it would take: the experiments of tables that were not run in full, as patterns of one command."""
    patterns = []
    for document, place in dict.fromkeys(zip(lacking["document"], lacking["place"], strict=True)):
        table = load(str(document)).places[str(place)]
        names = [row.experiment for row in table.numbers]
        names += [name for row in table.orderings for name in (row.better, row.worse)]
        patterns += [f"`{name.split('_')[0]}_*`" for name in names if name]
    if not patterns:
        return "Everything was run."
    return (
        "Orderings and claims are judged by intervals over seeds, also at small scale, and by their direction, not by "
        "the printed margin; printed numbers only at the paper's own scale. What was not run, or with too few seeds "
        "for an interval, needs a GPU, or days on a processor, and one command per task: `nlstm-lab sweep PATTERN "
        f"--scale paper --seeds 0-4`, where the pattern is one of {', '.join(dict.fromkeys(patterns))}."
    )


def readme_block(verdicts: pd.DataFrame) -> str:
    """Write the whole frame of `verdicts` as Markdown: for each document its numbers and its claims."""
    verdicts = _worded(verdicts)
    lines = [READING, ""]
    for name in dict.fromkeys(verdicts["document"]):
        document, mine = load(name), verdicts[(verdicts["document"] == name) & ~verdicts["own"]]
        lines += [f"**{document.title}** ({document.authors}, {document.year})", ""]
        lines += ["| where | row | printed | ours | seeds | scale | verdict |", "|---|---|---|---|---|---|---|"]
        lines += _numbers(mine[mine["kind"] == "number"])
        if len(blank := mine[mine["kind"] == "from memory"]):
            lines.append(_cells("", "**Not printed in our copy, so in no total; the value is from memory**", *[""] * 5))
            lines += _numbers(blank)
        remarks = [f"{document.places[one.place].where}, {one}." for one in discriminations(mine) if one.ours[1]]
        remarks += _notes(mine[(mine["seeds"] > 0) & mine["kind"].isin(["number", "from memory"])])
        lines += ["", *("\n\n".join(remarks).splitlines()), "", *_statements(mine), ""]
    if verdicts["own"].any():
        lines += ["**Questions of our own**", "", *_statements(verdicts[verdicts["own"]]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _cells(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _numbers(numbers: pd.DataFrame) -> Iterator[str]:
    for (document, place), rows in numbers.groupby(["document", "place"], sort=False):
        where, caption = rows["where"].iloc[0], load(str(document)).places[str(place)].caption
        if not rows["seeds"].any():
            count = rows["setting"].eq("as printed").sum()
            yield _cells(where, caption, f"{count} number{'' if count == 1 else 's'}", "", "", "", NOT_RUN)
            continue
        yield _cells(where, caption, "", "", "", "", "")
        for (subject, setting, metric), row in rows.groupby(["subject", "setting", "metric"], sort=False):
            if setting != "as printed" and not row["seeds"].any():
                continue  # neither printed nor run
            cells: Cells = row.to_dict("records")
            label = f"{subject}, {metric}" + ("" if setting == "as printed" else f", {setting}")
            printed = " / ".join(filter(None, row["as_printed"]))
            ours = " / ".join(_spread(cell) for cell in cells if cell["seeds"])
            verdict = " / ".join(filter(None, row["verdict"]))
            label, seeds = label + "†" * bool(cells[0]["note"]), cells[0]["seeds"] or ""
            yield _cells("", label, printed, ours, seeds, cells[0]["scale"], verdict)


def _spread(cell: dict[Hashable, Any]) -> str:
    """A mean with half the width of its interval."""
    mean, half = cell["ours"], (cell["high"] - cell["low"]) / 2
    return _number(mean, cell["digits"]) + ("" if pd.isna(half) else f" ± {_number(half, cell['digits'])}")


def _statements(frame: pd.DataFrame) -> list[str]:
    """Claims, and orderings with one line a sentence of the document, metric, split and scale."""
    stated = frame[frame["kind"].isin(["ordering", "claim"]) & (frame["anchor"] | frame["split"].eq(""))]
    lines = ["| where | claim | split | ours | seeds | scale | verdict |", "|---|---|---|---|---|---|---|"]
    for (where, says, note, metric, split, scale, text), rows in stated.groupby(STATEMENT, sort=False):
        cells: Cells = rows.to_dict("records")
        ours = seeds = ""
        if scale:
            least = min(cells, key=lambda cell: float(cell["ours"]))
            ours = f"{metric}: {_spread(least)}".removeprefix(": ") + " (smallest)" * (len(cells) > 1)
            seeds = str(rows["seeds"].min())
        tally = rows["verdict"].value_counts(sort=False)
        verdict = ", ".join(f"{count} {name}" for name, count in tally.items()) if len(cells) > 1 else tally.index[0]
        said = f"{says}<br>*{note}*" if note else says
        lines.append(_cells(where, said, split, ours, seeds, f"{scale}, {text}" if text else scale, verdict))
    return lines
