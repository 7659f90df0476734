"""Sentences with computed numbers, shown by a notebook as text, and the table that may be a sentence."""

import pandas as pd
from pandas.io.formats.style import Styler


class Prose(str):
    """A string that JupyterLab shows as Markdown."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return str(self)


def prose(text: str) -> Prose:
    """Let the value of a cell read as a paragraph, so that numbers in a notebook's prose come from the data.

    >>> prose(f"The mean over {3} seeds is {1.5:.2f}.")
    'The mean over 3 seeds is 1.50.'
    """
    return Prose(text)


def what_lacks(outlook: pd.DataFrame, hours: pd.DataFrame) -> Styler | Prose:
    """What is not run (`lab.runs.outlook`), as a table for a notebook; a sentence where nothing lacks.

    hours: of one training of each experiment, its index, a column for each machine (`lab.bench.recorded_hours`).

    >>> import nlstm_lab as lab
    >>> lab.figures.what_lacks(lab.runs.outlook([], "mnist_*", "paper", seeds=[]), lab.bench.recorded_hours([]))
    'Nothing: every row was run with each of these seeds.'
    """
    if outlook.empty:
        return prose("Nothing: every row was run with each of these seeds.")
    told = outlook.set_index("experiment", drop=False)
    for place, (machine, known) in enumerate(hours.items(), start=2):
        shown = known.map(lambda one: f"{one:,.0f}" if one > 10 else f"{one:.1f}", na_action="ignore")
        told.insert(place, f"hours, {machine}", shown.reindex(told.index))
    return told.style.format(na_rep="").hide(axis="index")
