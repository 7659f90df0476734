"""One table of a document beside ours, shown in a notebook and saved for a paper."""

import html
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nlstm_lab import parameters, paths
from nlstm_lab.errors import UsageError
from nlstm_lab.runs.records import commit
from nlstm_lab.targets.entries import load
from nlstm_lab.targets.evidence import Runs, discriminations
from nlstm_lab.targets.verdicts import frame, judge

MADE_WITH = "% made with "  # how the last line of a LaTeX table begins
OURS = "ours [95 % interval]"
RIGHT = ("parameters", "printed", OURS, "seeds")  # columns of a LaTeX table whose numbers end at the right
SIGNS = {"−": "$-$", "×": r"$\times$", "†": r"$^\dagger$", "“": "``", "”": "''", "’": "'"}


@dataclass(frozen=True)
class Comparison:
    """A table of a document beside our runs.

    Args:
        title, note: What stands above and below it.
        frame: One row a number (and ordering), metric and split, with the columns of `verdicts.Row`.
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
        tex = parameters.output_path(tex, _made_with(tex))
        texts = {
            "csv": self.frame.to_csv(index=False, float_format="%.7g", lineterminator="\n"),
            "tex": booktabs(self.frame)
            + "".join(f"% {line}\n" for line in below(self.frame))
            + f"{MADE_WITH}{json.dumps(parameters.current(), ensure_ascii=False)}\n",
        }
        before = tex.read_text(encoding="utf-8") if tex.is_file() else ""
        if before.partition("\n")[2] == texts["tex"].partition("\n")[2]:
            texts["tex"] = before  # the commit that made it first
        for suffix, text in texts.items():
            paths.write(tex.with_suffix(f".{suffix}"), text)
        return [tex.with_suffix(f".{suffix}") for suffix in texts]

    def _repr_html_(self) -> str:
        table = shown(self.frame).to_html(index=False, border=0, escape=True)
        remarks = [self.note] * bool(self.note) + below(self.frame)
        paragraphs = "".join(f"<p>{html.escape(one)}</p>" for one in remarks)
        return f"<h4>{html.escape(self.title)}</h4>{table}{paragraphs}"


def _made_with(tex: Path) -> dict[str, Any]:
    """The parameters that a LaTeX table names, none where there is no table."""
    lines = tex.read_text(encoding="utf-8").splitlines() if tex.is_file() else []
    named = [line.removeprefix(MADE_WITH) for line in lines[-1:] if line.startswith(MADE_WITH)]
    return dict(json.loads(named[0])) if named else {}


def compare(target: str, table: pd.DataFrame) -> Comparison:
    """Set a printed table beside our runs.

    Raises:
        UsageError: No document has that table, or the frame is no table of runs.

    >>> import nlstm_lab as lab
    >>> comparison = lab.targets.compare("nested_lstm.table1", lab.runs.table("ptb_char_*"))
    >>> comparison.frame.as_printed.tolist()[:2]
    ['1.489', '1.451']
    """
    name, _, place = target.partition(".")
    document = load(name)
    if place not in document.places:
        known = ", ".join(f"{name}.{known}" for known in document.places)
        raise UsageError(f"there is no target {target!r}; there are {known}")
    entries = document.places[place]
    title = f"{document.title} ({document.authors} {document.year}), {entries.where}: {entries.caption}"
    return Comparison(target, title, entries.note, frame(judge(document, entries, Runs.of(table))))


def distances(
    numbers: pd.DataFrame, table: pd.DataFrame, settings: Mapping[str, str], seeds: Collection[int]
) -> pd.DataFrame:
    """Measure how far the rows of a table lie from the printed numbers under each setting that the paper leaves open.

    Args:
        numbers: The rows of a comparison's frame that count, of one metric and split.
        table: Every run that there is, read by one evaluation.
        settings: What each setting adds to a row's name, such as "+batch_order=fixed", by its label.
        seeds: Whose mean counts, at paper scale.

    Returns:
        One row a setting: the mean of each row, `seeds` (the fewest of a row), and `distance`, the mean over rows of
        the squared log ratio of ours to printed; NaN where a row has no run.
    """
    keys = ["experiment", "metric", "split"]
    here = table[(table["scale"] == "paper") & table["seed"].isin(list(seeds))]
    ours, rows = here.groupby(keys)["value"].agg(["mean", "count"]), []
    names = numbers["experiment"].str.partition("+")[0]  # without the setting that was adopted
    for ending in settings.values():
        wanted = numbers.assign(experiment=names + ending)
        found = ours.reindex(pd.MultiIndex.from_frame(wanted[keys]))
        logs = np.log(found["mean"].to_numpy(float) / numbers["printed"].to_numpy())
        means = dict(zip(numbers["subject"], found["mean"], strict=True))
        rows.append({**means, "seeds": int(found["count"].fillna(0).min()), "distance": np.mean(logs**2)})
    return pd.DataFrame(rows, index=pd.Index(settings, name="setting"))


def shown(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Write a frame of verdicts as text for readers, with the digits of the document and one more for ours."""
    text = [
        {
            "": row["subject"]
            + (f", {row['setting']}" if row["setting"] not in ("", "as printed") else "")
            + ("†" if row["note"] else ""),
            "parameters": row["parameters"],
            "metric": row["metric"],
            "split": row["split"],
            "printed": row["as_printed"],
            "ours": number(row["ours"], row["digits"]),
            "95 % interval": interval(row["low"], row["high"], row["digits"]),
            "seeds": str(row["seeds"]),
            "each seed": row["values"],
            "scale": row["scale"],
            "verdict": row["verdict"],
        }
        for row in verdicts.assign(digits=digits(verdicts)).to_dict("records")
    ]
    return pd.DataFrame(text, index=verdicts.index)


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
    return [f"{one}." for one in discriminations(verdicts)] + notes(verdicts)


def notes(verdicts: pd.DataFrame) -> list[str]:
    """What must be known of rows, which have a dagger: a note and the rows that it is about."""
    noted = verdicts[verdicts["note"].ne("")]
    return [
        f"† {note} ({'; '.join(dict.fromkeys(about['where'] + ', ' + about['subject']))})."
        for note, about in noted.groupby("note", sort=False)
    ]


def digits(verdicts: pd.DataFrame) -> "pd.Series[str]":
    """With whose digits each row's numbers are written: its own printed number, else its table's first, else ""."""
    alike = verdicts.groupby(["document", "place", "metric"])["as_printed"].transform("first")
    return verdicts["as_printed"].where(verdicts["as_printed"].ne(""), alike)


def number(value: float, as_printed: str = "") -> str:
    """`value` with one digit more than the printed number, four significant ones where nothing is printed."""
    if pd.isna(value):
        return ""
    return f"{value:.{len(as_printed.partition('.')[2]) + 1}f}" if as_printed else f"{value:.4g}"


def interval(low: float, high: float, as_printed: str = "") -> str:
    """The ends of an interval, as `number` writes them; "" where there is none."""
    return "" if pd.isna(low) or pd.isna(high) else f"{number(low, as_printed)} to {number(high, as_printed)}"
