"""The verdicts as Markdown and in groups: counted, all of them, and what the rest would take."""

from collections.abc import Hashable, Iterator
from typing import Any

import pandas as pd

from nlstm_lab.statistics import holm
from nlstm_lab.targets.comparison import digits, notes, number, shown
from nlstm_lab.targets.entries import load
from nlstm_lab.targets.evidence import ENOUGH, discriminations
from nlstm_lab.targets.verdicts import printed_numbers

SPLITS = {"valid": "validation", "test": "test", "": "probes"}

OUTCOMES = {  # column of the report: the verdicts that it counts, worded as they are counted
    "replicated or close": {"match": "match", "close": "close", "holds": "hold"},
    "not replicated": {"differs": "differ", "fails": "fail"},
    "inconclusive": {"inconclusive": "inconclusive", "cannot be judged": "cannot be judged"},
    "not run": {"not run": "not run", "smaller scale": "only at smaller scale", "few": "with too few seeds"},
}

COLUMNS = ["verdict", "", "metric", "split", "printed", "ours", "95 % interval", "scale"]
STATEMENT = ["where", "says", "note", "metric", "split", "scale", "setting"]  # what one line of claims is about
READING = (
    "Numbers are judged at paper scale; of two in a cell, the first is for validation and the second for the test set. "
    "Orderings and claims are judged by 95 % intervals over seeds at the scale shown, on the splits that the claim is "
    "about. A row with several comparisons shows the smallest difference (“smallest”) and counts the verdicts."
)
Rows = list[dict[Hashable, Any]]


def report(frame: pd.DataFrame) -> str:
    """Write the whole frame of `verdicts` as a small Markdown table, with the commands that run what lacks runs."""
    counted = frame[frame["anchor"]]
    few = counted["verdict"].eq("inconclusive") & counted["seeds"].lt(ENOUGH)
    counted = counted.assign(verdict=counted["verdict"].mask(few, "few"))
    lines = ["| | on | " + " | ".join(OUTCOMES) + " |", "|---" * (len(OUTCOMES) + 2) + "|"]
    for label, rows in _families(counted):
        parts = {split: part for split in SPLITS if len(part := rows[rows["split"] == split])}
        lines += [_line("" if k else label, *one) for k, one in enumerate(parts.items())]
    lacking = counted["verdict"].isin(OUTCOMES["not run"]) & counted["kind"].ne("claim")
    corrected = "In brackets: how many remain after Holm's correction at 5 % for the comparisons in their row."
    return "\n".join([*lines, "", corrected, "", *_rest(counted[lacking])]) + "\n"


def _families(counted: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """What is counted together, with its name: numbers, orderings and claims of a document, questions of ours."""
    numbers, own = printed_numbers(counted), counted["own"]
    for name in dict.fromkeys(counted["document"]):
        mine, title = (counted["document"] == name) & ~own, load(str(name)).title
        yield f"**{title}**, printed numbers", counted[mine & numbers]
        yield f"**{title}**, orderings and claims", counted[mine & ~numbers]
    if own.any():
        yield "**Questions of our own**", counted[own]


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
    return f"| {label} | {SPLITS[split]} | " + " | ".join(cells) + " |"


def _rest(lacking: pd.DataFrame) -> list[str]:
    """What it would take: the experiments of tables that were not run in full, as patterns of one command."""
    patterns = []
    for document, place in dict.fromkeys(zip(lacking["document"], lacking["place"], strict=True)):
        table = load(str(document)).places[str(place)]
        names = [one.experiment or "" for one in table.numbers]
        names += [name for one in table.orderings for name in (one.better, one.worse)]
        patterns += [f"`{name.split('_')[0]}_*`" for name in names if name]
    if not patterns:
        return ["Everything was run."]
    return [
        "Orderings and claims are judged by intervals over seeds, also at small scale, and by their direction, not by "
        "the printed margin; printed numbers only at the paper's own scale. What was not run, or with too few seeds "
        "for an interval, needs a GPU, or days on a processor, and one command per task: `nlstm-lab sweep PATTERN "
        "--scale paper --seeds 0-4`, where the pattern is one of "
        f"{', '.join(dict.fromkeys(patterns))}."
    ]


def grouped(verdicts: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Split the frame of `verdicts` into tables, in its order, for `lab.figures.folded`.

    Returns:
        Tables of text, the verdict first, by their title: how often each verdict falls, where it is printed, and the
        sentence that they judge.
    """
    sentences = verdicts["says"].where(~verdicts["kind"].isin(["number", "reference"]), "")
    tables = {}
    for (document, where, sentence), rows in verdicts.groupby(["document", "where", sentences], sort=False):
        source = "Our own question" if rows["own"].all() else load(str(document)).title
        counts = rows.loc[rows["verdict"] != "", "verdict"].value_counts()
        falls = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        tables[": ".join(filter(None, (falls, f"{source}, {where}", str(sentence))))] = shown(rows)[COLUMNS]
    return tables


def readme_block(frame: pd.DataFrame) -> str:
    """Write the whole frame of `verdicts` as Markdown: for each document its numbers and its claims.

    A table of which nothing was run takes one line. Cells show validation / test where both are printed. Below a
    document's numbers stands how often another row's number would also match, and what is not printed in our copy.
    """
    frame = frame.assign(digits=digits(frame))
    lines = [READING, ""]
    for name in dict.fromkeys(frame["document"]):
        document, mine = load(name), frame[(frame["document"] == name) & ~frame["own"]]
        lines += [f"**{document.title}** ({document.authors}, {document.year})", ""]
        lines += ["| where | row | printed | ours | seeds | scale | verdict |", "|---|---|---|---|---|---|---|"]
        for place, rows in mine[mine["kind"] == "number"].groupby("place", sort=False):
            caption = document.places[str(place)].caption
            lines += _numbers(rows, caption)
        if len(blank := mine[mine["kind"] == "from memory"]):
            lines.append(_cells("", "**Not printed in our copy, so in no total; the value is from memory**", *[""] * 5))
            for _, rows in blank.groupby("place", sort=False):
                lines += _numbers(rows, document.places[str(rows["place"].iloc[0])].caption)
        remarks = [f"{document.places[one.place].where}, {one}." for one in discriminations(mine) if one.our_pairs]
        remarks += notes(mine[(mine["seeds"] > 0) & mine["kind"].isin(["number", "from memory"])])
        lines += ["", *("\n\n".join(remarks).splitlines()), "", *_statements(mine), ""]
    if frame["own"].any():
        lines += ["**Questions of our own**", "", *_statements(frame[frame["own"]]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _cells(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _numbers(rows: pd.DataFrame, caption: str) -> list[str]:
    if not rows["seeds"].any():
        count = rows["setting"].eq("as printed").sum()
        printed = f"{count} number" + ("" if count == 1 else "s")
        return [_cells(rows["where"].iloc[0], caption, printed, "", "", "", "not run")]
    lines = [_cells(rows["where"].iloc[0], caption, "", "", "", "", "")]
    for (subject, setting, metric), row in rows.groupby(["subject", "setting", "metric"], sort=False):
        if setting != "as printed" and not row["seeds"].any():
            continue  # neither printed nor run
        cells: Rows = row.to_dict("records")
        mark = "†" if cells[0]["note"] else ""
        label = f"{subject}, {metric}" + ("" if setting == "as printed" else f", {setting}") + mark
        printed = " / ".join(cell["as_printed"] for cell in cells if cell["as_printed"])
        ours = " / ".join(_spread(cell) for cell in cells if cell["seeds"])
        verdict = " / ".join(cell["verdict"] for cell in cells if cell["verdict"])
        lines.append(_cells("", label, printed, ours, cells[0]["seeds"] or "", cells[0]["scale"], verdict))
    return lines


def _spread(cell: dict[Hashable, Any]) -> str:
    """A mean with half the width of its interval."""
    mean, half = cell["ours"], (cell["high"] - cell["low"]) / 2
    return number(mean, cell["digits"]) + ("" if pd.isna(half) else f" ± {number(half, cell['digits'])}")


def _statements(frame: pd.DataFrame) -> list[str]:
    """Claims, and orderings with one line a sentence of the document, metric, split and scale."""
    stated = frame[frame["kind"].isin(["ordering", "claim"]) & (frame["anchor"] | frame["split"].eq(""))]
    lines = ["| where | claim | split | ours | seeds | scale | verdict |", "|---|---|---|---|---|---|---|"]
    for (where, says, note, metric, split, scale, text), rows in stated.groupby(STATEMENT, sort=False):
        cells: Rows = rows.to_dict("records")
        ours = seeds = ""
        if scale:
            least = min(cells, key=lambda cell: float(cell["ours"]))
            ours = f"{_spread(least)} {metric}".rstrip() + (" (smallest)" if len(cells) > 1 else "")
            seeds = str(rows["seeds"].min())
        tally = rows["verdict"].value_counts(sort=False)
        verdict = ", ".join(f"{count} {name}" for name, count in tally.items()) if len(cells) > 1 else tally.index[0]
        said = f"{says}<br>*{note}*" if note else says
        lines.append(_cells(where, said, split, ours, seeds, f"{scale}, {text}" if text else scale, verdict))
    return lines
