"""The verdicts as Markdown."""

from collections.abc import Hashable, Iterable
from typing import Any

import pandas as pd

from nlstm_lab.targets.comparison import digits, notes, number
from nlstm_lab.targets.documents import load
from nlstm_lab.targets.verdicts import printed_numbers

STATEMENT = ["where", "says", "note", "metric", "scale", "setting"]  # what one line of claims is about
Rows = list[dict[Hashable, Any]]


def readme_block(frame: pd.DataFrame) -> str:
    """The whole frame of `verdicts` as Markdown: counts, then for each document its numbers and its claims.

    A table of which nothing was run takes one line. Cells show validation / test where both are printed.
    """
    frame = frame.assign(digits=digits(frame))
    lines = [*_counts(frame[~frame["own"]]), ""]
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
        if remarks := notes(mine[mine["seeds"] > 0]):
            lines += ["", "\n\n".join(f"† {note}" for note in remarks)]
        lines += ["", *_statements(mine), ""]
    if frame["own"].any():
        lines += ["**Questions of our own**", "", *_statements(frame[frame["own"]]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _counts(frame: pd.DataFrame) -> list[str]:
    counted, references = frame[frame["anchor"]], int(frame["kind"].eq("reference").sum())
    printed = printed_numbers(counted)
    numbers, claims = counted[printed]["verdict"], counted[~printed]["verdict"]
    return [
        f"{len(numbers)} printed numbers, judged at paper scale, on validation where it is printed: "
        f"{_tally(numbers, ('match', 'close', 'differs', 'smaller scale', 'not run'))}. "
        f"({references} more are cited by the documents from others, and not run here.)",
        "",
        f"{len(claims)} orderings and claims, judged by 95 % intervals over seeds at the scale shown: "
        f"{_tally(claims, ('holds', 'fails', 'undecided', 'not run'))}. A row that stands for several comparisons "
        "shows the smallest of their differences (“at the least”), and how many have which verdict.",
    ]


def _tally(verdicts: Iterable[str], order: Iterable[str]) -> str:
    marker = list(verdicts)
    return ", ".join(f"{marker.count(verdict)} {verdict}" for verdict in order)


def _line(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _silent(rows: pd.DataFrame, caption: str) -> str:
    printed = rows[rows["setting"] == "as printed"]
    return _line(rows["where"].iloc[0], caption, f"{len(printed)} numbers", "", "", "", "not run")


def _numbers(rows: pd.DataFrame, caption: str) -> list[str]:
    lines = [_line(rows["where"].iloc[0], caption, "", "", "", "", "")]
    for (subject, setting, metric), row in rows.groupby(["subject", "setting", "metric"], sort=False):
        if setting != "as printed" and not row["seeds"].any():
            continue  # nobody printed it and nobody ran it
        cells: Rows = row.to_dict("records")
        mark = "†" if cells[0]["says"] else ""
        label = f"{subject}, {metric}" + ("" if setting == "as printed" else f", {setting}") + mark
        printed = " / ".join(cell["as_printed"] for cell in cells if cell["as_printed"])
        ours = " / ".join(_spread(cell) for cell in cells if cell["seeds"])
        verdict = cells[0]["verdict"]
        if others := [f"{cell['split']}: {cell['verdict']}" for cell in cells[1:] if cell["verdict"] != verdict]:
            verdict += f" ({', '.join(others)})"
        lines.append(_line("", label, printed, ours, cells[0]["seeds"] or "", cells[0]["scale"], verdict))
    return lines


def _spread(cell: dict[Hashable, Any]) -> str:
    """A mean with half the width of its interval."""
    mean, half = cell["ours"], (cell["high"] - cell["low"]) / 2
    return number(mean, cell["digits"]) + ("" if pd.isna(half) else f" ± {number(half, cell['digits'])}")


def _statements(frame: pd.DataFrame) -> list[str]:
    """Claims, and orderings with one line a sentence of the document, metric and scale; anchoring split."""
    stated = frame[frame["anchor"] & frame["kind"].isin(["ordering", "claim"])]
    lines = ["| where | what is said | ours | seeds | scale | verdict |", "|---|---|---|---|---|---|"]
    for (where, says, note, metric, scale, text), rows in stated.groupby(STATEMENT, sort=False):
        cells: Rows = rows.to_dict("records")
        ours = seeds = ""
        if scale:
            least = min(cells, key=lambda cell: float(cell["ours"]))
            ours = f"{_spread(least)} {metric}".rstrip() + (" at the least" if len(cells) > 1 else "")
            seeds = str(rows["seeds"].min())
        tally = rows["verdict"].value_counts(sort=False)
        verdict = ", ".join(f"{count} {name}" for name, count in tally.items()) if len(cells) > 1 else tally.index[0]
        said = f"{says}<br>*{note}*" if note else says
        lines.append(_line(where, said, ours, seeds, f"{scale}, {text}" if text else scale, verdict))
    return lines
