"""What a notebook shows besides figures: tables with rounded numbers, and measured differences with their verdicts."""

from collections.abc import Mapping
from html import escape
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler


def table(frame: pd.DataFrame | Mapping[str, Any], form: str = ".3f", **forms: str) -> Styler:
    """Show a frame with rounded numbers; what is missing is blank.

    Args:
        frame: A frame, or columns by their names; a named index becomes columns.
        form: The format of numbers that are not whole.
        forms: The formats of columns that have their own.

    >>> table({"memory": ["inner"], "dead": [0.934], "lag": [1.5]}, ".1f", dead=".0%").to_string(delimiter=" ")
    'memory dead lag\\ninner 93% 1.5\\n'
    """
    frame = pd.DataFrame(frame)
    frame = frame.reset_index(drop=frame.index.names == [None])
    formats = dict.fromkeys(frame.select_dtypes("float"), form) | forms
    return frame.style.format({name: f"{{:{each}}}" for name, each in formats.items()}, na_rep="").hide(axis="index")


def differences(compared: pd.DataFrame, form: str = "+.3f") -> Styler:
    """Show differences over seeds (`lab.probes.comparisons`) with their verdicts and 95 % intervals.

    A verdict is of the comparison as it is named: it `holds` where the interval lies above zero.

    Args:
        compared: `lab.probes.comparisons`, one row a difference.
        form: The format of the differences.
    """
    return table(compared.drop(columns="df"), form)


class Folded(dict[str, pd.DataFrame]):
    """Tables by their titles; JupyterLab shows the titles, and a table where its title is clicked."""

    def _repr_html_(self) -> str:
        return "".join(
            f"<details><summary>{escape(title)}</summary>{shown.to_html(index=False, border=0)}</details>"
            for title, shown in self.items()
        )


def folded(tables: Mapping[str, pd.DataFrame]) -> Folded:
    """Let the value of a cell be tables that open when their title is clicked.

    Args:
        tables: The tables by their titles.

    >>> folded({"1 < 2": pd.DataFrame({"x": [1]})})._repr_html_().startswith("<details><summary>1 &lt; 2</summary>")
    True
    """
    return Folded(tables)
