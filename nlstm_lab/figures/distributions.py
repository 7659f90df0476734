"""How a quantity of single cells is distributed over a memory, memory by memory and seed by seed."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import COLUMN, canvas, in_order, look, styled


@styled
def distribution_by_memory(
    values: pd.DataFrame,
    label: str = "timescale (characters)",
    log: bool = True,
    width: float = COLUMN,
    ax: Axes | None = None,
) -> Figure:
    """A strip of cells and a box for each memory of each model; a line joins each seed's medians, faint.

    values: one row a cell, with `model`, `memory`, `seed`, `unit` and `value`; NaN (a dead cell, say) is left out;
    how many cells are drawn stands under each memory. label: the axis, with its unit. log: a logarithmic axis.
    The box holds the middle half of all cells, the strong bar is the mean over seeds of their medians.

    UsageError: no value to draw, or none above zero on a logarithmic axis.
    """
    frame = values[["model", "memory", "seed", "unit", "value"]].reset_index(drop=True)
    drawn = frame[np.isfinite(frame["value"]) & ((frame["value"] > 0) | (not log))]
    if drawn.empty:
        raise UsageError("there is no value to draw" + (" above zero on a logarithmic axis" if log else ""))
    groups = [
        (model, memory)
        for model in in_order(frame["model"])
        for memory in in_order(frame.loc[frame["model"] == model, "memory"])
    ]
    figure, ax = canvas(ax, width, 0.8 * min(width, COLUMN))
    medians = drawn.groupby(["model", "memory", "seed"])["value"].median()
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(drawn))
    for x, (model, memory) in enumerate(groups):
        here = (drawn["model"] == model) & (drawn["memory"] == memory)
        if here.any():
            _strip(ax, x, drawn.loc[here, "value"], jitter[here], look(memory).colour)
            centre = _mean(medians[model][memory], log)
            ax.plot(
                [x - 0.36, x + 0.36], [centre, centre], color="black", linewidth=1.8, solid_capstyle="butt", zorder=5
            )
    for (_, _), part in medians.reset_index().groupby(["model", "seed"]):
        places = [groups.index(group) for group in zip(part["model"], part["memory"], strict=True)]
        joined = part.assign(place=places).sort_values("place")
        ax.plot(
            joined["place"], joined["value"], "o-", color="black", linewidth=0.6, markersize=2, alpha=0.45, zorder=4
        )
    if log:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
    ax.set(ylabel=label, xlim=(-0.6, len(groups) - 0.4))
    ax.set_xticks(range(len(groups)), [_tick(frame, drawn, *group) for group in groups])
    for model in in_order(frame["model"]):
        places = [place for place, group in enumerate(groups) if group[0] == model]
        below: dict[str, Any] = {
            "xycoords": ("data", "axes fraction"),
            "textcoords": "offset points",
            "xytext": (0, -25),
        }
        ax.annotate(look(model).label, (float(np.mean(places)), 0), ha="center", va="top", **below)
        ax.axvline(places[-1] + 0.5, color="#c8c8c8", linewidth=0.5, visible=places[-1] + 1 < len(groups))
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="y")
    return attach(figure, frame)


def _strip(ax: Axes, x: int, values: pd.Series, jitter: np.ndarray, colour: str) -> None:
    """Cells as dots around x, and the box of their quartiles."""
    ax.plot(x + jitter, values, ".", color=colour, markersize=2.5, alpha=0.4, markeredgewidth=0, zorder=2)
    low, high = values.quantile([0.25, 0.75])
    ax.fill_between(
        [x - 0.36, x + 0.36], low, high, facecolor=colour, alpha=0.22, edgecolor=colour, linewidth=0.8, zorder=3
    )


def _mean(values: pd.Series, log: bool) -> float:
    """The mean, geometric on a logarithmic axis."""
    return float(np.exp(np.log(values).mean()) if log else values.mean())


def _tick(frame: pd.DataFrame, drawn: pd.DataFrame, model: str, memory: str) -> str:
    """The memory, and how many of its cells are drawn where some are left out."""
    total, shown = (((part["model"] == model) & (part["memory"] == memory)).sum() for part in (frame, drawn))
    return look(memory).label.removesuffix(" memory") + (f"\n{shown} of {total}" if shown < total else f"\n{total}")
