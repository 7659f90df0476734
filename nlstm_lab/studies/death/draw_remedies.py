"""Why the inner memory dies and what keeps it alive, on one page."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from nlstm_lab.figures.panels import STARTS, below, panels, seeds_and_interval, seeds_and_mean
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import NORMS, PAGE, look, styled

LATCHED, SILENT, SEEDS = "#003d6b", "#b9c9d6", "#e69f00"
ROW = 0.2  # inches of a setting


@styled
def inner_memory_remedies(
    widths: pd.DataFrame, outcomes: pd.DataFrame, order: pd.DataFrame, width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """When the inner memory dies, what keeps it alive, what that costs, and the order of table 1 with it.

    Args:
        widths: Shares of dead cells in networks of several widths: columns width, seed, update, dead.
        outcomes: Of `lab.probes.remedy_outcomes`; settings are drawn in the order in which they come.
        order: Validation BPC of table 1's rows: columns row (its label), start (of the output bias), seed, value.
        width: Inches of the whole figure.
        ax: Axes to divide, in place of a new figure.
    """
    settings = list(dict.fromkeys(outcomes["setting"]))
    height = max(4.4, 1.1 + ROW * len(settings))
    figure, axes = panels(ax, 1, 3, width, height, width_ratios=(1.5, 1, 1))
    (_, bars, costs), (_, ((dying,), (rows,))) = axes[0], panels(axes[0, 0], 2, 1, width, height)
    _widths(dying, widths)
    _shares(bars, outcomes, settings)
    _costs(costs, outcomes, settings)
    _order(rows, order)
    for panel, letter in zip((dying, bars, costs, rows), "ABCD", strict=True):
        panel.set_title(f"{letter}  {panel.get_title(loc='left')}", loc="left")
    handles = [
        Line2D([], [], color=LATCHED, linewidth=6, label="latched"),
        Line2D([], [], color=SILENT, linewidth=6, label="silent"),
        Line2D([], [], color=SEEDS, marker="o", markersize=2.6, label="seeds, 95 % t interval of their mean"),
        *(Line2D([], [], linestyle="", markersize=3.5, label=f"D: {STARTS[start]}", **_dot(start)) for start in STARTS),
    ]
    below(figure, handles, columns=3)
    parts = {"widths": widths, "remedies": outcomes, "order": order}
    return attach(figure, pd.concat([part.assign(panel=name) for name, part in parts.items()], ignore_index=True))


def _widths(panel: Axes, widths: pd.DataFrame) -> None:
    shown, units = widths[widths["update"] > 0], sorted(widths["width"].unique())
    for colour, one in zip(NORMS(np.linspace(0.35, 0.95, len(units))), units, strict=True):
        seeds_and_mean(panel, shown[shown["width"] == one], "update", "dead", color=colour, label=str(one))
    handles, labels = panel.get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))  # of each width its mean, which is drawn last
    panel.legend(named.values(), named.keys(), title="units", loc="lower right")
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    panel.set(xlabel="updates", ylabel="dead inner cells", ylim=(-0.03, 1.03), title="the printed start, by width")
    panel.grid(axis="both")


def _shares(panel: Axes, outcomes: pd.DataFrame, settings: list[str]) -> None:
    for y, setting in enumerate(settings):
        here = outcomes[outcomes["setting"] == setting]
        latched = here["latched"].mean()
        panel.barh(y, latched, height=0.62, color=LATCHED)
        panel.barh(y, here["silent"].mean(), left=latched, height=0.62, color=SILENT)
        seeds_and_interval(panel, y, here["dead"], SEEDS)
    panel.set(xlim=(0, 1), title="dead inner cells")
    panel.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    panel.set_yticks(range(len(settings)), settings)
    _rows(panel, len(settings))


def _costs(panel: Axes, outcomes: pd.DataFrame, settings: list[str]) -> None:
    panel.axvline(0, color="#404040", linewidth=0.8)
    for y, setting in enumerate(settings):
        seeds_and_interval(panel, y, outcomes.loc[outcomes["setting"] == setting, "gain"], SEEDS)
    panel.set(title="training BPC", xlabel="difference from\nas printed")
    panel.set_yticks(range(len(settings)), [""] * len(settings))
    _rows(panel, len(settings))


def _order(panel: Axes, order: pd.DataFrame) -> None:
    """Rows by the mean of their better start, the best first."""
    means = order.groupby(["row", "start"])["value"].mean()
    best = means.groupby("row").min().sort_values()
    for y, row in enumerate(best.index):
        for start, seeds in order[order["row"] == row].groupby("start"):
            seeds_and_interval(panel, y, seeds["value"], **_dot(str(start)))
    panel.set(title="table 1, two epochs", xlabel="validation BPC")
    panel.set_yticks(range(len(best)), best.index)
    _rows(panel, len(best))


def _dot(start: str) -> dict[str, Any]:
    """A seed of one start of the output bias: hollow as printed."""
    colour = look("nlstm").colour
    return {"color": colour, "marker": "o", "markerfacecolor": "white" if start == "zero" else colour}


def _rows(panel: Axes, count: int) -> None:
    panel.set_ylim(count - 0.5, -0.5)
    panel.tick_params(axis="y", length=0)
    panel.grid(axis="x")
