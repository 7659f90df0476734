"""The shortest answer to "does it hold?": a line for each document, and what the rest would take."""

from collections.abc import Iterator

import pandas as pd

from nlstm_lab.statistics import holm
from nlstm_lab.targets.documents import load
from nlstm_lab.targets.evidence import ENOUGH
from nlstm_lab.targets.verdicts import printed_numbers

SPLITS = {"valid": "validation", "test": "test", "": "probes"}

OUTCOMES = {  # column of the report: the verdicts that it counts, worded as they are counted
    "replicated or close": {"match": "match", "close": "close", "holds": "hold"},
    "not replicated": {"differs": "differ", "fails": "fail"},
    "inconclusive": {"inconclusive": "inconclusive"},
    "not run": {"not run": "not run", "smaller scale": "only at smaller scale", "few": "with too few seeds"},
}


def report(frame: pd.DataFrame) -> str:
    """The whole frame of `verdicts` as a small Markdown table, and the commands that run what lacks runs.

    >>> import nlstm_lab as lab
    >>> print(lab.targets.report(lab.targets.verdicts(lab.runs.table())).splitlines()[0])
    | | on | replicated or close | not replicated | inconclusive | not run |
    """
    counted = frame[frame["anchor"]]
    few = counted["verdict"].isin(OUTCOMES["inconclusive"]) & counted["seeds"].lt(ENOUGH)
    counted = counted.assign(verdict=counted["verdict"].mask(few, "few"))
    lines = ["| | on | " + " | ".join(OUTCOMES) + " |", "|---" * (len(OUTCOMES) + 2) + "|"]
    for label, rows in _families(counted):
        lines += [_line("" if k else label, split, part) for k, (split, part) in enumerate(_of_splits(rows))]
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


def _of_splits(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each split that has some: validation, test, then what probes measured, which has none."""
    for split in ("valid", "test", ""):
        if len(part := rows[rows["split"] == split]):
            yield split, part


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
