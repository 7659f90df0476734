"""What a notebook shows besides figures: tables with rounded numbers, and measured differences with their verdicts."""

from collections.abc import Mapping
from html import escape
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from nlstm_lab.statistics import Compared


def table(frame: pd.DataFrame | Mapping[str, Any] | list[dict[str, Any]], form: str = ".3f", **forms: str) -> Styler:
    """Show a frame with rounded numbers; what is missing is blank, and text is text, never HTML.

    Args:
        frame: A frame, columns by their names, or rows; a named index becomes columns.
        form: The format of numbers that are not whole.
        forms: The formats of columns that have their own.

    >>> table({"memory": ["inner"], "dead": [0.934], "lag": [1.5]}, ".1f", dead=".0%").to_string(delimiter=" ")
    'memory dead lag\\ninner 93% 1.5\\n'
    """
    frame = pd.DataFrame(frame)
    frame = frame.reset_index(drop=frame.index.names == [None])
    formats = dict.fromkeys(frame.select_dtypes("float"), form) | forms
    shown = frame.style.format({name: f"{{:{each}}}" for name, each in formats.items()}, na_rep="", escape="html")
    return shown.format_index(escape="html", axis=1).hide(axis="index")


def differences(compared: pd.DataFrame | Mapping[str, Compared], form: str = "+.3f") -> Styler:
    """Show differences over seeds with their verdicts and 95 % intervals.

    A verdict is of the comparison as it is named: it `holds` where the interval lies above zero.

    Args:
        compared: `lab.probes.comparisons`, one row a difference; or comparisons by their names.
        form: The format of the differences.
    """
    if isinstance(compared, Mapping):
        compared = pd.DataFrame([{"comparison": name} | one.row() for name, one in compared.items()])
    return table(compared.drop(columns="df", errors="ignore"), form)


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
    """
    return Folded(tables)
