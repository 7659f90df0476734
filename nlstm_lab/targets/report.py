"""The shortest answer to "does it hold?": a line for each document, and what the rest would take."""

from collections.abc import Iterator

import pandas as pd

from nlstm_lab.statistics import holm
from nlstm_lab.targets.comparison import shown
from nlstm_lab.targets.entries import load
from nlstm_lab.targets.evidence import ENOUGH
from nlstm_lab.targets.verdicts import printed_numbers

SPLITS = {"valid": "validation", "test": "test", "": "probes"}

OUTCOMES = {  # column of the report: the verdicts that it counts, worded as they are counted
    "replicated or close": {"match": "match", "close": "close", "holds": "hold"},
    "not replicated": {"differs": "differ", "fails": "fail"},
    "inconclusive": {"inconclusive": "inconclusive"},
    "not run": {"not run": "not run", "smaller scale": "only at smaller scale", "few": "with too few seeds"},
}

COLUMNS = ["verdict", "", "metric", "split", "printed", "ours", "95 % interval", "scale"]


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

    >>> import nlstm_lab as lab
    >>> tables = lab.targets.grouped(lab.targets.verdicts(lab.runs.table("ptb_char_*")))
    >>> any("Nested LSTMs, Table 1" in name for name in tables)
    True
    """
    sentences = verdicts["says"].where(~verdicts["kind"].isin(["number", "reference"]), "")
    tables = {}
    for (document, where, sentence), rows in verdicts.groupby(["document", "where", sentences], sort=False):
        source = "Our own question" if rows["own"].all() else load(str(document)).title
        counts = rows.loc[rows["verdict"] != "", "verdict"].value_counts()
        falls = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        tables[": ".join(filter(None, (falls, f"{source}, {where}", str(sentence))))] = shown(rows)[COLUMNS]
    return tables
