"""One table of a document beside ours, shown in a notebook and saved for a paper."""

import html
import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from nlstm_lab import parameters, paths
from nlstm_lab.errors import UsageError
from nlstm_lab.targets.entries import load
from nlstm_lab.targets.rendering import below, booktabs, shown
from nlstm_lab.targets.verdicts import Runs, frame, judge

MADE_WITH = "% made with "  # how the last line of a LaTeX table begins


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
        before = tex.read_text(encoding="utf-8") if tex.is_file() else ""
        _, named, made_with = before.rstrip().rpartition(f"\n{MADE_WITH}")
        tex = parameters.output_path(tex, json.loads(made_with) if named else {})
        lines = [*below(self.frame), f"made with {json.dumps(parameters.current(), ensure_ascii=False)}"]
        made = booktabs(self.frame) + "".join(f"% {line}\n" for line in lines)
        before = tex.read_text(encoding="utf-8") if tex.is_file() else ""
        same = before.partition("\n")[2] == made.partition("\n")[2]  # but for the commit that made it first
        paths.write(tex, before if same else made)
        csv = tex.with_suffix(".csv")
        paths.write(csv, self.frame.to_csv(index=False, float_format="%.7g", lineterminator="\n"))
        return [csv, tex]

    def _repr_html_(self) -> str:
        table = shown(self.frame).to_html(index=False, border=0, escape=True)
        remarks = [self.note] * bool(self.note) + below(self.frame)
        paragraphs = "".join(f"<p>{html.escape(one)}</p>" for one in remarks)
        return f"<h4>{html.escape(self.title)}</h4>{table}{paragraphs}"


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
    return Comparison(target, title, entries.note, frame(judge(entries, Runs(table))))
