"""One look for every figure: the style sheet, the widths of a paper, and who has which colour."""

import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from nlstm_lab import paths
from nlstm_lab.errors import UsageError
from nlstm_lab.parameters import inches

COLUMN, PAGE = 3.25, 6.75  # inches: one column of a paper, and both
MONO = "monospace"

P = ParamSpec("P")
R = TypeVar("R")
Style = str | Path | dict[str, Any]

_sheets: list[Style] = [paths.PACKAGE / "figures" / "style.mplstyle"]


class Look(NamedTuple):
    """How one model, or one memory, appears in every figure."""

    label: str
    colour: str


# after Okabe and Ito: distinct in every kind of colour vision; related units are neighbours in hue
MODELS = {
    "rnn": Look("RNN", "#4d4d4d"),
    "cwrnn": Look("clockwork RNN", "#56b4e9"),
    "gru": Look("GRU", "#009e73"),
    "lstm": Look("LSTM", "#e69f00"),
    "stacked_lstm": Look("stacked LSTM", "#c04b00"),
    "lnlstm": Look("LayerNorm LSTM", "#5b3200"),
    "nlstm": Look("Nested LSTM", "#0072b2"),
    "hrnn": Look("hierarchical RNN", "#e0a3c4"),
    "hmlstm": Look("HM-LSTM", "#a63a79"),
}
MEMORIES = {
    "cell": Look("cell", "#e69f00"),
    "layer 1": Look("layer 1", "#e69f00"),
    "layer 2": Look("layer 2", "#c04b00"),
    "layer 3": Look("layer 3", "#5b3200"),
    "wider": Look("wider layer", "#9a9a9a"),
    "outer": Look("outer memory", "#62bdef"),
    "middle": Look("middle memory", "#2380b8"),
    "inner": Look("inner memory", "#003d6b"),
}
OPERATIONS = {  # of an HM-RNN's layer, by their codes; light, middle and dark in grey, too
    "COPY": Look("COPY", "#dedede"),
    "UPDATE": Look("UPDATE", "#5aaee0"),
    "FLUSH": Look("FLUSH", "#b34700"),
}

ORDER = [*MEMORIES, *MODELS]  # in which every figure lists them
OTHER = "#404040"

# light is small, dark is large
STRENGTH = LinearSegmentedColormap.from_list("strength", ["#ffffff", "#c6def0", "#6aaad2", "#2166ac", "#053061"])
NORMS = LinearSegmentedColormap.from_list("norms", ["#f6ddb5", "#f3cf9a", "#dd8f6b", "#a63a79", "#3b0f4f"])

# red is negative, blue positive, white exactly 0, darker is larger: figures 3 and 4 of Nested LSTMs
DIVERGING = LinearSegmentedColormap.from_list(
    "red_white_blue",
    ["#67001f", "#b2182b", "#e2755a", "#fbcfb8", "#ffffff", "#c6def0", "#6aaad2", "#2166ac", "#053061"],
).with_extremes(bad="#d9d9d9")


def look(name: str) -> Look:
    """The label and colour of the model or memory `name`; a hidden state has its layer's colour, others dark grey."""
    known, layer = MODELS | MEMORIES, name.removesuffix(" h")
    return known.get(name) or Look(name, known[layer].colour if layer in known else OTHER)


def page(width: float | str) -> float:
    """Return the inches of a figure of two columns of `width`, with the gap between them; a wide column is the page."""
    width = inches(width)
    return width if width > COLUMN + 1 else 2 * width + PAGE - 2 * COLUMN


def glyph(symbol: str) -> str:
    """What stands for a symbol where a text is drawn: nothing for a space, a sign for what would break the line."""
    return {"\n": "¶", "\t": "⇥"}.get(symbol, symbol.strip())


def in_order(names: Iterable[str]) -> list[str]:
    """Distinct models or memories in the order that every figure lists them in."""
    distinct = sorted(set(map(str, names)))
    return sorted(distinct, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def override(*styles: Style) -> None:
    """Put style sheets or rcParams on top of the project's, for all figures drawn and saved from now on.

    Args:
        styles: Style sheets or rcParams that matplotlib knows (or UsageError); none for the project's own.

    >>> override({"font.family": "serif", "mathtext.fontset": "dejavuserif"})
    >>> override()  # back to the project's own
    """
    try:
        with plt.style.context([_sheets[0], *styles], after_reset=True):
            findfont(FontProperties(), fallback_to_default=False)
    except (KeyError, OSError, ValueError) as error:
        raise UsageError(f"matplotlib cannot draw in this style: {str(error).splitlines()[0]}") from error
    _sheets[1:] = styles


def context() -> AbstractContextManager[None]:
    """The style sheets alone: what a matplotlibrc or a notebook's backend changed is put aside."""
    return plt.style.context(_sheets, after_reset=True)


def use_style() -> None:
    """Let everything that seaborn and matplotlib draw from now on have the project's style, as a notebook wants it."""
    plt.style.use(_sheets)


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Let a figure function draw with the style sheet, and take its `width` as `inches` reads it."""

    signature = inspect.signature(draw)

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        given = signature.bind(*args, **kwargs)
        if "width" in given.arguments:
            given.arguments["width"] = inches(given.arguments["width"])
        with context():
            return draw(*given.args, **given.kwargs)

    return drawn


def sheet(width: float, height: float) -> tuple[Figure, Axes]:
    """A new figure, closed for pyplot so that a notebook shows it once, and axes all over it: inches, y downward."""
    figure = plt.figure(figsize=(width, height))  # a notebook shows no figure before pyplot has made one
    plt.close(figure)
    figure.set_layout_engine("none")
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
    ax.axis("off")
    return figure, ax


def write(ax: Axes, x: float, y: float, words: str, align: str = "left", size: float = 7, **style: Any) -> Text:
    """Words at a place of a sheet, their baseline at `y`."""
    how: dict[str, Any] = {"ha": align, "va": "baseline", "fontsize": size} | style
    return ax.text(x, y, words, **how)


def shades(
    ax: Axes, x: float, y: float, colours: Colormap, norm: Normalize, below: str, above: str, wide: float = 1.1
) -> None:
    """A bar of a sheet that shows all colours, with the words for its lowest and its highest."""
    span = np.linspace(norm.vmin or 0, norm.vmax or 0, 128)[None]
    ax.pcolormesh(x + np.linspace(0, wide, 129), [y, y + 0.07], span, cmap=colours, norm=norm, linewidth=0)
    ax.add_patch(Rectangle((x, y), wide, 0.07, fill=False, edgecolor="#808080", linewidth=0.4))
    write(ax, x - 0.05, y + 0.07, below, "right")
    write(ax, x + wide + 0.05, y + 0.07, above)
