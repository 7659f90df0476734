"""The verdicts as Markdown."""

from collections.abc import Hashable
from typing import Any

import pandas as pd

from nlstm_lab.targets.comparison import digits, notes, number
from nlstm_lab.targets.entries import load
from nlstm_lab.targets.tolerances import discriminations

STATEMENT = ["where", "says", "note", "metric", "split", "scale", "setting"]  # what one line of claims is about
READING = (
    "Numbers are judged at paper scale; of two in a cell, the first is for validation and the second for the test set. "
    "Orderings and claims are judged by 95 % intervals over seeds at the scale shown, on the splits that the claim is "
    "about. A row with several comparisons shows the smallest difference (“smallest”) and counts the verdicts."
)
Rows = list[dict[Hashable, Any]]


def readme_block(frame: pd.DataFrame) -> str:
    """The whole frame of `verdicts` as Markdown: for each document its numbers and its claims.

    A table of which nothing was run takes one line. Cells show validation / test where both are printed. Below a
    document's numbers stands how many wrong rows would pass.
    """
    frame = frame.assign(digits=digits(frame))
    lines = [READING, ""]
    for name in dict.fromkeys(frame["document"]):
        document, mine = load(name), frame[(frame["document"] == name) & ~frame["own"]]
        lines += [f"**{document.title}** ({document.authors}, {document.year})", ""]
        lines += [
            "| where | row | printed | ours | seeds | scale | verdict |",
            "|---|---|---|---|---|---|---|",
        ]
        for place, rows in mine[mine["kind"] == "number"].groupby("place", sort=False):
            caption = document.places[str(place)].caption
            lines += _numbers(rows, caption) if rows["seeds"].any() else [_silent(rows, caption)]
        remarks = [f"{document.places[one.place].where}, {one}." for one in discriminations(mine) if one.our_pairs]
        remarks += notes(mine[(mine["seeds"] > 0) & (mine["kind"] == "number")])
        lines += ["", *("\n\n".join(remarks).splitlines()), "", *_statements(mine), ""]
    if frame["own"].any():
        lines += ["**Questions of our own**", "", *_statements(frame[frame["own"]]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _line(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _silent(rows: pd.DataFrame, caption: str) -> str:
    printed = rows[rows["setting"] == "as printed"]
    return _line(rows["where"].iloc[0], caption, f"{len(printed)} numbers", "", "", "", "not run")


def _numbers(rows: pd.DataFrame, caption: str) -> list[str]:
    lines = [_line(rows["where"].iloc[0], caption, "", "", "", "", "")]
    for (subject, setting, metric), row in rows.groupby(["subject", "setting", "metric"], sort=False):
        if setting != "as printed" and not row["seeds"].any():
            continue  # neither printed nor run
        cells: Rows = row.to_dict("records")
        mark = "†" if cells[0]["note"] else ""
        label = f"{subject}, {metric}" + ("" if setting == "as printed" else f", {setting}") + mark
        printed = " / ".join(cell["as_printed"] for cell in cells if cell["as_printed"])
        ours = " / ".join(_spread(cell) for cell in cells if cell["seeds"])
        verdict = " / ".join(cell["verdict"] for cell in cells if cell["verdict"])
        lines.append(_line("", label, printed, ours, cells[0]["seeds"] or "", cells[0]["scale"], verdict))
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
        lines.append(_line(where, said, split, ours, seeds, f"{scale}, {text}" if text else scale, verdict))
    return lines
