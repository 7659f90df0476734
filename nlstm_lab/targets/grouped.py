"""Verdicts for reading: a short table for each printed table and each sentence, under a line with their counts."""

import pandas as pd

from nlstm_lab.targets.comparison import shown
from nlstm_lab.targets.documents import load

COLUMNS = ["verdict", "", "metric", "split", "printed", "ours", "95 % interval", "scale"]


def grouped(verdicts: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Split the frame of `verdicts` into tables, in its order, for `lab.figures.folded`.

    Returns:
        Tables of text, the verdict first, by their title: how often each verdict falls, where it is printed, and the
        sentence that they judge.

    >>> import nlstm_lab as lab
    >>> tables = grouped(lab.targets.verdicts(lab.runs.table("ptb_char_*")))
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
