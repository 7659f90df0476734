"""Madsen's autocomplete, one moment of it."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.activations import MONO
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import PAGE, canvas, in_order, look, styled

HEAD, BAR, FOOT, TYPED = 0.22, 0.17, 0.36, 0.26  # inches
GAP = 0.09  # of a column's width, between networks
LONGEST = 90  # characters of the text that are shown, its last


@styled
def completions(suggestions: pd.DataFrame, text: str, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """The likeliest words after `text`, a column of bars for each network, all on one scale from 0 to 1.

    Args:
        suggestions: Model, place (1 is likeliest), word, probability.
        text: What was typed.

    Raises:
        UsageError: There is nothing to draw.
    """
    if suggestions.empty:
        raise UsageError("there is nothing to draw: no network has a word for this text")
    names, places = in_order(suggestions["model"]), int(suggestions["place"].max())
    height = TYPED + HEAD + BAR * places + FOOT
    figure, ax = canvas(ax, width, height)
    ax.set_xlim(0, len(names) + GAP * (len(names) - 1))
    ax.set_ylim(places + 0.2, -(HEAD + TYPED) / BAR)
    shown = text.replace("\n", " ")
    shown = shown if len(shown) <= LONGEST else "…" + shown[-LONGEST:]
    ax.text(0, -(HEAD + TYPED) / BAR + 0.9, f"{shown.strip()}▏", family=MONO, fontsize=8, parse_math=False)
    ticks = []
    for k, name in enumerate(names):
        left = k * (1 + GAP)
        ticks += [left, left + 0.5, left + 1]
        ax.text(left, -0.35, look(name).label, color=look(name).colour, fontweight="bold")
        here = suggestions[suggestions["model"] == name]
        columns = (here[column].tolist() for column in ("place", "word", "probability"))
        for place, word, p in zip(*columns, strict=True):
            y = place - 0.5
            ax.barh(y, p, 0.82, left=left, color=look(name).colour, alpha=0.35)
            ax.text(left + 0.015, y, word, va="center_baseline", parse_math=False)
            ax.text(left + 1, y, f"{100 * p:.1f} %", va="center_baseline", ha="right", fontsize=7)
    ax.set_xticks(ticks, ["0", "0.5", "1"] * len(names))
    ax.set_yticks([])
    ax.set_xlabel("probability among all words")
    ax.spines[["left", "bottom"]].set_visible(False)
    return attach(figure, suggestions, {"probability": LIVE})
