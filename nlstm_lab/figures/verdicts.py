"""A printed table beside ours: the printed value, every seed, the mean with its interval, the verdict."""

import re
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.curves import AXES, SPLITS
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import COLUMN, VERDICTS, canvas, styled

OURS = "#0072b2"


@styled
def verdict_table(
    comparison: pd.DataFrame, metric: str, split: str = "valid", width: float = COLUMN, ax: Axes | None = None
) -> Figure:
    """One line a row of a document's table, in its order, with the verdict at the right.

    comparison: the frame of `lab.targets.compare(...)`; what it prints of other metrics and splits is left out.
    An open diamond is the printed value; the dot and its bar are our mean and its t interval, with the seeds below.

    UsageError: nothing is printed of this metric and split.
    """
    rows = comparison[comparison["kind"].isin(["number", "reference"])]
    rows = rows[(rows["metric"] == metric) & (rows["split"] == split)]
    if rows.empty:
        raise UsageError(
            f"the table prints no {split} {metric!r}; it has {', '.join(sorted(comparison['metric'].unique()))}"
        )
    labels = [
        subject if setting in ("", "as printed") else f"{subject}, {setting}"
        for subject, setting in zip(rows["subject"], rows["setting"], strict=True)
    ]
    frame = rows[["printed", "ours", "low", "high", "values", "scale", "verdict"]].assign(row=labels)
    figure, ax = canvas(ax, width, 0.55 + 0.22 * len(frame))
    rows_drawn: Any = frame.itertuples()
    for y, row in enumerate(rows_drawn):
        seeds = [float(value) for value in re.findall(r":\s*([^,\s]+)", str(row.values))]
        ax.plot(seeds, np.full(len(seeds), y + 0.27), "o", color=OURS, markersize=2.6, alpha=0.5, markeredgewidth=0)
        ax.plot([row.low, row.high], [y, y], color=OURS, linewidth=1.2, solid_capstyle="butt")
        ax.plot([row.ours], [y], "o", color=OURS, markersize=4)
        ax.plot([row.printed], [y], "D", color="black", markerfacecolor="none", markersize=4.5, markeredgewidth=0.8)
        told = row.verdict if row.scale in ("", "paper") else f"{row.scale} scale"
        verdict = VERDICTS[str(row.verdict)] if row.verdict in VERDICTS else VERDICTS["not run"]
        ax.annotate(told, (1.03, y), xycoords=("axes fraction", "data"), va="center",
                    color=verdict.colour, fontsize=7)  # fmt: skip
    ax.set(ylim=(len(frame) - 0.4, -0.6), xlabel=f"{AXES.get(metric, metric)}, {SPLITS[split]}")
    ax.set_yticks(range(len(frame)), labels)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="both")
    handles = [
        Line2D([], [], marker="D", color="black", markerfacecolor="none", linestyle="", label="printed"),
        Line2D([], [], marker="o", color=OURS, label="ours, mean and 95 %"),
    ]
    ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return attach(figure, frame[["row", "printed", "ours", "low", "high", "values", "scale", "verdict"]])
