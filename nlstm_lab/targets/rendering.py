"""Verdicts as text: a printed table beside ours, for readers and in LaTeX for a paper; all tables in Markdown."""

import html
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from nlstm_lab import parameters, paths
from nlstm_lab.runs.records import commit
from nlstm_lab.settings import METRIC_LABELS, choice
from nlstm_lab.targets.entries import DOCUMENTS, NOT_RUN, load
from nlstm_lab.targets.verdicts import (
    SMALLER,
    UNJUDGED,
    Runs,
    discriminations,
    frame,
    judge,
    judge_claims,
    printed_numbers,
    remaining,
)

MADE_WITH = "% made with "  # how the last line of a LaTeX table begins

OURS = "ours [95 % interval]"
RIGHT = ("parameters", "printed", OURS, "seeds")  # columns of a LaTeX table whose numbers end at the right
SIGNS = {"−": "$-$", "×": r"$\times$", "†": r"$^\dagger$", "“": "``", "”": "''", "’": "'"}
SPLITS = {"valid": "validation", "test": "test", "": "probes"}
OUTCOMES = {  # column of the report: the verdicts that it counts, worded as they are counted
    "replicated or close": {"match": "match", "close": "close", "holds": "hold"},
    "not replicated": {"differs": "differ", "fails": "fail"},
    "inconclusive": {"inconclusive": "inconclusive", UNJUDGED: UNJUDGED},
    "not run": {NOT_RUN: "not run", SMALLER: "only at smaller scale"},
}
NUMBERS = ["number", "from memory"]
LOST = "‡"  # a verdict that does not remain after Holm's correction
STATEMENT = ["where", "says", "note", "metric", "split", "scale", "setting"]  # what one line of a page is about
HOLD = (
    "hold where the whole 95 % interval over seeds lies above 0, or above the number that is named, fail where it lies "
    "below, and else are inconclusive."
)
DECIDED = (
    "How it is decided: of a number, ours is the mean over seeds; it is judged at paper scale alone, by its distance "
    "from the printed one. Of an ordering, ours is by how much the first is better, in the metric's unit, at the scale "
    f"shown; of a claim, what was measured. Both {HOLD}"
)


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
        table = shown(self.frame).loc[:, lambda text: text.ne("").any()].to_html(index=False, border=0, escape=True)
        remarks = filter(None, [self.note, *below(self.frame)])
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
    entries = document.places[choice(place, f"the table of {name}", document.places)]
    title = f"{document.title} ({document.authors} {document.year}), {entries.where}: {entries.caption}"
    return Comparison(target, title, f"{entries.note} {DECIDED}".strip(), frame(judge(entries, Runs(table))))


def claimed(claims: pd.DataFrame) -> Comparison:
    """Set what was measured of claims beside what each says, what was measured, and what decides.

    Args:
        claims: Rows of `lab.probes.measured_claims()`.
    """
    rows = frame(judge_claims(claims, claims["claim"]))
    rows["subject"] = rows["says"].str.rstrip(".") + ". Measured: " + rows["subject"] + ". " + rows["note"]
    return Comparison("claims", "Claims, and what was measured of them", f"They {HOLD}", rows.assign(note=""))


def shown(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Write a frame of verdicts as text for readers, with the digits of the document and one more for ours."""
    rows = _worded(verdicts)
    ours, low, high = ([*map(_number, rows[name], rows["decimals"])] for name in ("ours", "low", "high"))
    text = {
        "": rows["named"] + rows["note"].ne("").map({True: "†", False: ""}),
        **{name: rows[name] for name in ("parameters", "metric", "split")},
        "printed": rows["as_printed"],
        "ours": ours,
        "95 % interval": [f"{one} to {other}" if one and other else "" for one, other in zip(low, high, strict=True)],
        "seeds": rows["seeds"].astype(str),
        "each seed": [*map(_each, rows["values"], rows["decimals"])],
        **{name: rows[name] for name in ("scale", "verdict")},
    }
    return pd.DataFrame(text)


def _worded(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Metrics and splits in words; `decimals` of ours, by the printed number of the row or its table; `named`."""
    alike = verdicts.groupby(["document", "place", "metric"])["as_printed"].transform("first")
    words = {"metric": METRIC_LABELS, "split": {"valid": "validation"}}
    printed = verdicts["as_printed"].where(verdicts["as_printed"].ne(""), alike)
    decimals = [*map(_decimals, printed, (verdicts["high"] - verdicts["low"]) / 2)]
    setting = (", " + verdicts["setting"]).mask(verdicts["setting"].isin(["", "as printed"]), "")
    return verdicts.replace(words).assign(decimals=decimals, named=verdicts["subject"] + setting)


def _each(values: str, decimals: int) -> str:
    """The values of "0: 1.48882, 1: 1.45173" so written."""
    return re.sub(r"(?<=: )[^, ]+", lambda found: _number(float(found[0]), decimals), values)


def _decimals(as_printed: str, half: float) -> int:
    """One more than the printed number has; else those of two significant digits of half the interval; -1: none."""
    if as_printed:
        return len(as_printed.partition(".")[2]) + 1
    return max(0, 1 - math.floor(math.log10(half))) if half > 0 else -1


def _number(value: float, decimals: int) -> str:
    if pd.isna(value):
        return ""
    return f"{value:.{decimals}f}" if decimals >= 0 else f"{value:.4g}"


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
    """What stands below a table: what its tolerances distinguish, then its notes, each with the rows it is about."""
    return [f"{one}." for one in discriminations(_worded(verdicts))] + [
        f"† {note} ({'; '.join(dict.fromkeys(about['where'] + ', ' + about['subject']))})."
        for note, about in verdicts[verdicts["note"].ne("")].groupby("note", sort=False)
    ]


def report(verdicts: pd.DataFrame) -> str:
    """Count the verdicts of the whole frame, in a small Markdown table; in brackets those that remain (`remaining`)."""
    counted, remains = verdicts[verdicts["anchor"]], remaining(verdicts)
    numbers, own, titles = printed_numbers(counted), counted["own"], {name: load(name).title for name in DOCUMENTS}
    kind = numbers.map({True: "printed numbers", False: "orderings and claims"})
    family = ("**" + counted["document"].map(titles) + "**, " + kind).mask(own, "**Questions of our own**")
    order = counted["document"].map(list(titles).index).mask(own, len(titles))
    lines = ["| | on | " + " | ".join(OUTCOMES) + " |", "|---" * (len(OUTCOMES) + 2) + "|"]
    for _, rows in counted.groupby([order, ~numbers, counted["split"].map(list(SPLITS).index)]):
        found, kept = rows["verdict"].value_counts(), rows.loc[remains[rows.index], "verdict"].value_counts()
        after = {verdict: f" ({kept.get(verdict, 0)})" for verdict in ("holds", "fails")}
        cells = [family[rows.index[0]], SPLITS[rows["split"].iloc[0]]]
        for worded in OUTCOMES.values():
            counts = (f"{found[one]} {word}{after.get(one, '')}" for one, word in worded.items() if one in found)
            cells.append(", ".join(counts) or "0")
        lines.append(_cells(*cells))
    return "\n".join(lines) + "\n"


def readme_block(verdicts: pd.DataFrame) -> str:
    """Write the whole frame of `verdicts` as Markdown: for each document its numbers and its claims."""
    rows = _worded(verdicts)
    lost = verdicts["anchor"] & verdicts["verdict"].isin(["holds", "fails"]) & ~remaining(verdicts)
    rows["verdict"] += lost.map({True: f" {LOST}", False: ""})
    number, claim, ran = rows["kind"].isin(NUMBERS), rows["kind"].eq("claim"), rows["seeds"].gt(0)
    ran_table = ran.groupby([rows["document"], rows["place"]]).transform("any")
    rows["says"] = rows["says"].mask(number, rows["named"].where(ran_table, "its numbers"))
    rows["setting"] = rows["setting"].mask(number, "")
    rows["says"] = rows["says"].mask(claim, rows["says"] + "<br>*Measured: " + rows["subject"] + ".*")
    rows = rows[claim | (rows["kind"].eq("ordering") & rows["anchor"]) | (number & (ran | rows["as_printed"].ne("")))]
    lines = [DECIDED, f"Of a sentence's comparisons the smallest is shown. {LOST}: not after Holm's correction.", ""]
    for name, mine in rows[~rows["own"]].groupby("document", sort=False):
        document = load(str(name))
        within = (f"{document.places[one.place].where}, {one}." for one in discriminations(mine) if one.ours[1])
        lines += [f"**{document.title}** ({document.authors}, {document.year})", "", *_lines(mine)]
        lines += ["\n\n".join(within), ""]
    if rows["own"].any():
        lines += ["**Questions of our own**", "", *_lines(rows[rows["own"]])]
    return "\n".join(lines).rstrip() + "\n"


def _cells(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _lines(rows: pd.DataFrame) -> Iterator[str]:
    """A line a number, and a line a sentence: the smallest difference of its comparisons, and their verdicts; notes."""
    yield "| where | row or claim | metric | split | printed | ours | seeds | scale | verdict |"
    yield "|---" * 9 + "|"
    notes, about = dict[str, int](), ("", "", "")
    for _, alike in rows.groupby(STATEMENT, sort=False):
        several, least, ours = len(alike) > 1, alike.sort_values("ours", kind="stable").iloc[0].to_dict(), ""
        if least["scale"]:
            ours, half = _number(least["ours"], least["decimals"]), (least["high"] - least["low"]) / 2
            ours += ("" if pd.isna(half) else f" ± {_number(half, least['decimals'])}") + " (smallest)" * several
        printed = least["as_printed"] if least["kind"] in NUMBERS and not several else ""
        tally = alike["verdict"].value_counts(sort=False)
        verdict = ", ".join(f"{count} {name}" if several else str(name) for name, count in tally.items())
        note = f" <sup>{notes.setdefault(least['note'], len(notes) + 1)}</sup>" if least["note"] else ""
        scale, seeds = ", ".join(filter(None, [least["scale"], least["setting"]])), least["seeds"] or ""
        before, about = about, (least["where"], least["says"] + note, least["metric"])
        same = about[:2] == before[:2]  # then they are said once
        head = ("", "", "" if about == before else about[2]) if same else about
        yield _cells(*head, least["split"], printed, ours, seeds, scale, verdict)
    yield from ("", *(f"{number}. {one[0].upper() + one[1:].rstrip('.')}." for one, number in notes.items()), "")
