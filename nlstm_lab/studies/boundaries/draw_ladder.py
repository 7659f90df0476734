"""The ladder: what changes where an HM-LSTM's boundaries fall, and what its first detector does during training."""

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nlstm_lab.figures.panels import below, panels, seeds_and_interval, seeds_and_mean
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import PAGE, look, styled

SHOWN = {"f1": "F1 above chance", "bits": "bits given the symbol,\nabove shuffled", "rate": "boundaries a step"}
QUANTITIES = {
    "boundary_rate": "boundaries a step",
    "clamped_share": "clamped $\\tilde{z}$, share of steps",
    "explained_share": "entropy of $z$ explained\nby the current symbol",
}
ROW = 0.19  # inches of a setting


@styled
def boundary_ladder(scores: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """How far the first layer's boundaries follow words in every setting: a row of panels for each text.

    Args:
        scores: Of `lab.probes.ladder_scores`; settings are drawn in the order in which they come.
        width: Inches of the whole figure.
        ax: Axes to divide, in place of a new figure.
    """
    texts, settings = list(dict.fromkeys(scores["text"])), list(dict.fromkeys(scores["setting"]))
    values = scores.assign(f1=scores["f1"] - scores["chance"], bits=scores["bits"] - scores["shuffled"])
    figure, axes = panels(ax, len(texts), 3, width, (0.7 + ROW * len(settings)) * len(texts), sharey=True)
    for line, text in zip(axes, texts, strict=True):
        here = values[values["text"] == text]
        for panel, (name, label) in zip(line, SHOWN.items(), strict=True):
            for y, setting in enumerate(settings):
                seeds_and_interval(panel, y, here.loc[here["setting"] == setting, name], color=look("hmlstm").colour)
            panel.axvline(here["base"].mean() if name == "rate" else 0, color="#404040", linewidth=0.8)
            panel.set(xlabel=label, ylim=(len(settings) - 0.5, -0.5))
            panel.tick_params(axis="y", length=0)
            panel.grid(axis="x")
        line[0].set_yticks(range(len(settings)), settings)
        line[0].set_title(text, loc="left")
        line[2].set_title("line: of the words", loc="right", fontsize=6)
    frame = values.melt(["text", "setting", "seed"], list(SHOWN), var_name="quantity")
    return attach(figure, frame)


def detector_frame(history: pd.DataFrame) -> pd.DataFrame:
    """What training says of the first layer's detector, long: setting, seed, quantity, update, value.

    Args:
        history: `lab.runs.histories({setting: runs, ...})`.

    Returns:
        quantity: the rate of z, the share of z~ that is clamped (where it has no gradient), and the share of z's
        entropy that the current symbol explains, on validation text after the logged updates.
    """
    named = history["metric"].str.extract(r"(\w+)/layer 1$")[0]
    rows = history.assign(quantity=named)[named.isin(list(QUANTITIES)) & history["split"].isin(["early", "valid"])]
    rows = rows.drop_duplicates(["setting", "seed", "quantity", "update"])
    return rows[["setting", "seed", "quantity", "update", "value"]].reset_index(drop=True)


@styled
def detector_training(history: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """The first layer's detector during training: its rate, what is clamped, and what the current symbol explains.

    Args:
        history: `lab.runs.histories({setting: runs, ...})`; the first setting is black, the mean of its seeds strong.
        width: Inches of the whole figure.
        ax: Axes to divide, in place of a new figure.
    """
    frame = detector_frame(history)
    settings = list(dict.fromkeys(frame["setting"]))
    hues = [colormaps["turbo"](place) for place in np.linspace(0.05, 0.95, max(len(settings) - 1, 1))]
    colours = dict(zip(settings, ["black", *hues], strict=False))
    figure, axes = panels(ax, 1, 3, width, 2.5)
    for panel, (name, label) in zip(axes[0], QUANTITIES.items(), strict=True):
        for setting in settings:
            here = frame[(frame["quantity"] == name) & (frame["setting"] == setting) & (frame["update"] > 0)]
            seeds_and_mean(panel, here, "update", "value", each=False, strong=1.0, color=colours[setting])
        panel.set_xscale("log")
        panel.set(xlabel="updates", ylabel=label, ylim=(-0.03, 1.03))
        panel.grid(axis="both")
    below(figure, [Line2D([], [], color=colours[setting], label=setting) for setting in settings])
    return attach(figure, frame)
