"""The shortest answer to "does it hold?": a line for each document, and what the rest would take."""

from collections.abc import Iterable

import pandas as pd

from nlstm_lab.targets.documents import load
from nlstm_lab.targets.verdicts import ENOUGH, printed_numbers

OUTCOMES = {  # column of the report: the verdicts that it counts, worded as they are counted
    "replicated or close": {"match": "match", "close": "close", "holds": "hold"},
    "not replicated": {"differs": "differ", "fails": "fail"},
    "could not be told": {"undecided": "undecided"},
    "not run": {"not run": "not run", "smaller scale": "at a smaller scale alone", "few": "with too few seeds"},
}


def report(frame: pd.DataFrame) -> str:
    """The whole frame of `verdicts` as a small Markdown table, and the commands that run what lacks runs.

    >>> import nlstm_lab as lab
    >>> print(lab.targets.report(lab.targets.verdicts(lab.runs.table())).splitlines()[0])
    | | replicated or close | not replicated | could not be told | not run |
    """
    counted = frame[frame["anchor"]]
    few = counted["verdict"].isin(OUTCOMES["could not be told"]) & counted["seeds"].lt(ENOUGH)
    counted = counted.assign(verdict=counted["verdict"].mask(few, "few"))
    numbers = printed_numbers(counted)
    lines = ["| | " + " | ".join(OUTCOMES) + " |", "|---" * (len(OUTCOMES) + 1) + "|"]
    for name in dict.fromkeys(counted["document"]):
        mine = (counted["document"] == name) & ~counted["own"]
        title = load(str(name)).title
        lines.append(_line(f"**{title}**, printed numbers", counted[mine & numbers]["verdict"]))
        lines.append(_line(f"**{title}**, orderings and claims", counted[mine & ~numbers]["verdict"]))
    if counted["own"].any():
        lines.append(_line("**Questions of our own**", counted[counted["own"]]["verdict"]))
    lacking = counted["verdict"].isin(OUTCOMES["not run"]) & counted["kind"].ne("claim")
    return "\n".join([*lines, "", *_rest(counted[lacking])]) + "\n"


def _line(label: str, verdicts: Iterable[str]) -> str:
    table = list(verdicts)
    cells = []
    for worded in OUTCOMES.values():
        counts = [(table.count(verdict), word) for verdict, word in worded.items()]
        cells.append(", ".join(f"{count} {word}" if len(counts) > 1 else str(count) for count, word in counts if count))
    return f"| {label} | " + " | ".join(cell or "0" for cell in cells) + " |"


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
        "the margin printed with them; printed numbers at the paper's own scale alone. What was not run, or with too "
        "few seeds for an interval, takes a GPU, or patience on a processor, and one command a task: `nlstm-lab sweep "
        "PATTERN --scale paper --seeds 0-4`, where the pattern is "
        f"{', '.join(dict.fromkeys(patterns))}."
    ]
