"""What notebooks draw over seeds, lines and intervals as points (the rest is seaborn's), and the tables they show."""

from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from pandas.io.formats.style import Styler

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.saving import attach
from nlstm_lab.figures.style import COLUMN, ORDER, OTHER, in_order, look, styled
from nlstm_lab.statistics import Compared, t_interval

GREYS = (OTHER, "#8c8c8c", "#bfbfbf")  # of what the project does not know
# initializations of the output bias, in the order of panels; the papers do not say
STARTS = {"zero": "baseline initialization", "log_frequencies": "log-frequencies"}


@styled
def subplots(
    rows: int = 1, columns: int = 1, *, width: float = COLUMN, height: float = 2.2, **share: Any
) -> tuple[Figure, NDArray[Any]]:
    """Make a figure in the project's style, for seaborn or matplotlib to draw on.

    It is closed for pyplot, so that a notebook shows it once: where it is a cell's value.

    Args:
        rows, columns: Of panels.
        height: Inches, of the whole figure.
        share: Passed to `Figure.subplots`, such as `sharex` and `width_ratios`.

    Returns:
        The figure and its axes [rows, columns].
    """
    figure = plt.figure(figsize=(width, height))
    plt.close(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **share)


def memory_label(memory: str, among: Iterable[str] = ()) -> str:
    """What a legend calls a model or memory: the two layers of a stack by their place, three or more by number."""
    known = {"layer 1": "stack, lower layer", "layer 2": "stack, upper layer", "h": "hidden state h"}
    known |= {"layer 1 h": "stack, lower h", "layer 2 h": "stack, upper h"}
    known = {} if any(name.startswith("layer 3") for name in among) else known
    return known.get(memory, look(memory).label)


@styled
def lines(
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    hue: str = "model",
    row: str | None = None,
    col: str | None = None,
    log: bool = False,
    width: float | str = COLUMN,
    height: float = 1.6,
    labels: Mapping[str, str] | None = None,
    **share: Any,
) -> tuple[Figure, NDArray[Any]]:
    """Draw lines over seeds: every seed faint, their mean strong.

    Args:
        frame: One row a point of a seed's line, with a column `seed`.
        x, y: Its columns along and up.
        hue: The column that tells lines apart, by model or memory.
        row, col: Columns whose values have a panel each.
        log: The mean is geometric.
        height: Inches, of one panel.
        labels: Of values of `hue`, `row` and `col`, where another than the project's own is wanted.
        share: Passed to `Figure.subplots`.

    Returns:
        The figure, which carries its numbers, and its axes [rows, columns]; UsageError: nothing, or two values a place.

    >>> loss = {"model": "lstm", "seed": [0, 0, 1, 1], "epoch": [1, 2, 1, 2], "bpc": [2.0, 1.8, 2.1, 1.7]}
    >>> figure, axes = lines(pd.DataFrame(loss), "epoch", "bpc")
    >>> len(axes[0, 0].lines)  # two seeds and their mean
    3
    """
    figure, axes, panels = _facets(frame, row, col, width, height, labels, {"sharex": True, **share})
    hues = in_order(frame[hue])
    for panel, here in panels:
        for name in in_order(here[hue])[::-1]:
            one, style = here[here[hue].astype(str) == name].dropna(subset=[y]), _style(name, hues)
            if one.duplicated([x, "seed"]).any():
                raise UsageError(f"{name} has two values of {y} at one {x}: choose rows of one split and metric")
            wide = one.pivot(index=x, columns="seed", values=y)
            if wide.shape[1] > 1:
                panel.plot(wide, **{**style, "linewidth": 0.5, "alpha": 0.35, "marker": ""})
            every = wide.dropna()  # where one is missing, the mean would be that of others
            mean = np.exp(np.log(every).mean(axis=1)) if log else every.mean(axis=1)
            panel.plot(mean, linewidth=1.4, zorder=3, **style)
        panel.grid(axis="both")
    _legend(figure, hues, labels)
    return attach(figure, _drawn(frame, row, col, hue, "seed", x, y)), axes


@styled
def points(
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    hue: str | None = None,
    row: str | None = None,
    col: str | None = None,
    width: float | str = COLUMN,
    height: float | None = None,
    labels: Mapping[str, str] | None = None,
    **share: Any,
) -> tuple[Figure, NDArray[Any]]:
    """Draw values over seeds: a dot for every seed, a bar for the t interval of their mean, a line of the panel a name.

    Args:
        frame: One row a seed's value, with a column `seed`.
        x: The column of the values.
        y: The column of names, listed from the top in the order in which they come.
        hue: The column that tells dots on a line apart, by model or memory; None for the colour of `y`.
        row, col, width, labels, share: As of `lines`, which says what comes back, and what is refused.
        height: Inches, of one panel; None for what its names need.
    """
    names, hues = list(dict.fromkeys(frame[y].astype(str))), in_order(frame[hue]) if hue else [""]
    tall = 0.35 + 0.17 * len(names) if height is None else height
    figure, axes, panels = _facets(frame, row, col, width, tall, labels, {"sharex": True, "sharey": True, **share})
    for panel, here in panels:
        here = here.dropna(subset=[x])  # a line without points, beyond its axes, would have no place in the layout
        if here.duplicated([y, *filter(None, [hue]), "seed"]).any():
            raise UsageError(f"a seed has more than one {x!r} at a place: say by hue, row or col what tells them apart")
        of: Any = here.groupby([here[y].astype(str), here[hue or y].astype(str)], sort=False)[x]
        for (name, shade), values in of:
            level = names.index(name) + (0.6 * ((hues.index(shade) + 0.5) / len(hues) - 0.5) if hue else 0)
            how: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 2.6, "zorder": 4, "clip_on": False}
            bar, colour = t_interval(values)[1:], _style(shade, hues)["color"]
            panel.plot(bar, [level] * 2, color=colour, linewidth=1.2, solid_capstyle="butt", zorder=3)
            panel.plot(values, [level] * len(values), color=colour, **how)
        panel.set_yticks(range(len(names)), [_label(name, labels, names) for name in names])
        panel.set_ylim(len(names) - 0.5, -0.5)
        panel.tick_params(axis="y", length=0)
        panel.grid(axis="x")
    if hue:
        _legend(figure, hues, labels)
    return attach(figure, _drawn(frame, row, col, y, hue, "seed", x)), axes


def _facets(
    frame: pd.DataFrame, row: str | None, col: str | None, width: Any, height: float,
    labels: Mapping[str, str] | None, share: dict[str, Any],
) -> tuple[Figure, NDArray[Any], list[tuple[Axes, pd.DataFrame]]]:  # fmt: skip
    """A panel for each value of `row` (named at the left) and `col` (at the top), and its part of the frame."""
    if frame.empty:
        raise UsageError("there is nothing to draw: the frame has no rows")
    of = [frame[name].astype(str) if name else pd.Series("", frame.index) for name in (row, col)]
    rows, columns = map(_values, of)
    figure, axes = subplots(len(rows), len(columns), width=width, height=height * len(rows) + 0.55, **share)
    panels = [
        (axes[k, j], frame[(of[0] == one) & (of[1] == other)])
        for k, one in enumerate(rows) for j, other in enumerate(columns)
    ]  # fmt: skip
    for panel, name in zip(axes[0], columns if col else (), strict=False):
        panel.set_title(_label(name, labels, columns))
    for panel, name in zip(axes[:, 0], rows if row else (), strict=False):
        panel.set_ylabel(_label(name, labels, rows))
    return figure, axes, panels


def _values(column: "pd.Series[str]") -> list[str]:
    """The values of a column in the project's order where it has one, else as they come."""
    values, known = list(dict.fromkeys(column)), [*STARTS, *ORDER]
    return sorted(values, key=known.index) if set(values) <= set(known) else values


def _label(name: str, labels: Mapping[str, str] | None = None, among: Iterable[str] = ()) -> str:
    return {**STARTS, **(labels or {})}.get(name, memory_label(name, among))


def _drawn(frame: pd.DataFrame, *columns: str | None) -> pd.DataFrame:
    """The columns that a figure shows, each once."""
    return frame[list(dict.fromkeys(name for name in columns if name is not None and name in frame))]


def _legend(figure: Figure, names: list[str], labels: Mapping[str, str] | None) -> None:
    handles = [Line2D([], [], label=_label(name, labels, names), **_style(name, names)) for name in names]
    wide = 0.43 + 0.05 * sum(len(_label(name, labels, names)) for name in names) / len(names)  # inches, of a column
    rows = -(-len(names) // max(1, int(figure.get_figwidth() / wide)))
    figure.legend(handles=handles, loc="outside lower center", ncols=-(-len(names) // rows))


def _style(name: str, among: list[str]) -> dict[str, Any]:
    """The line of a model or memory: a hidden state's is dashed; what the project does not know is grey."""
    hidden, unknown = name == "h" or name.endswith(" h"), [one for one in among if look(one).colour == OTHER]
    colour = GREYS[unknown.index(name) % len(GREYS)] if name in unknown else look(name).colour
    return {"color": colour, "linestyle": (0, (3, 1.2)) if hidden else "-"}


def table(frame: pd.DataFrame | Mapping[str, Any] | list[dict[str, Any]], form: str = ".3f", **forms: str) -> Styler:
    """Show a frame with rounded numbers; what is missing is blank, and text is text, never HTML.

    Columns `model` and `start` have the words of the figures' legends in place of the records' names.

    Args:
        frame: A frame, columns by their names, or rows; a named index becomes columns.
        form: The format of numbers that are not whole.
        forms: The formats of columns that have their own.

    >>> table({"model": ["gru"], "dead": [0.934], "lag": [1.5]}, ".1f", dead=".0%").to_string(delimiter=" ")
    'model dead lag\\nGRU 93% 1.5\\n'
    """
    frame = pd.DataFrame(frame)
    frame = frame.reset_index(drop=frame.index.names == [None])
    for name in {"model", "start"} & set(frame):
        frame[name] = frame[name].map(lambda each: _label(each) if isinstance(each, str) else each)
    formats = dict.fromkeys(frame.select_dtypes("float"), form) | forms
    shown = frame.style.format({name: f"{{:{each}}}" for name, each in formats.items()}, na_rep="", escape="html")
    return shown.format_index(escape="html", axis=1).hide(axis="index")


def differences(compared: pd.DataFrame | Mapping[str, Compared], form: str = "+.3f") -> Styler:
    """Show differences over seeds with 95 % intervals, and whether these exclude 0.

    Args:
        compared: `lab.probes.comparisons`, one row a difference; or comparisons by their names.
        form: The format of the differences.
    """
    if isinstance(compared, Mapping):
        compared = pd.DataFrame([{"comparison": name} | one.row() for name, one in compared.items()])
    lies = {"holds": "above 0", "fails": "below 0", "inconclusive": "includes 0"}
    shown = compared.drop(columns="df", errors="ignore").replace({"verdict": lies})
    about = "Difference: first minus second, with its 95 % interval over seeds."
    return table(shown.rename(columns={"verdict": "interval"}), form).set_caption(about)
