"""What memories carry: what can be decoded from them, and how much depends on each of their cells."""

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nlstm_lab.errors import UsageError
from nlstm_lab.figures import panels
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import PAGE, styled
from nlstm_lab.statistics import t_interval

LABELS = {
    "position_in_word": "place in the word",
    "since_space": "characters\nsince the space",
    "in_quotation": "within a quotation",
    "in_bracket": "within brackets",
    "word_class": "class of the\nlast complete word",
}
METRICS = {"r_squared": "$R^2$", "balanced_accuracy": "balanced accuracy"}
CONDITIONS = {"trained": -0.14, "untrained": 0.2}  # where in its memory's row each stands
FEWEST = 5  # rows for which a panel has room: the label beside it needs that much
GREY = "#808080"
REFERENCE: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "linestyle": (0, (3, 1.5))}  # chance, or all alike
FLOOR = 1e-7  # nats; a smaller divergence is rounding, and stands at the edge


@styled
def memory_contents(contents: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """How well each property of the text is decoded from each memory: columns are properties, rows output biases.

    Small dots are seeds, a large one and its bar their mean and t interval: filled for the trained network, hollow for
    the untrained. A tick is the mean control of the trained one, the dashed line chance.

    Args:
        contents: `lab.probes.gather(networks, lab.probes.contents, excerpt)`; rows with a reason are left out.

    Raises:
        UsageError: Nothing could be decoded.
    """
    drawn = contents[(contents["reason"] == "") & contents["condition"].isin(list(CONDITIONS))]
    if drawn.empty:
        raise UsageError("no memory tells anything: there is no score to draw")
    names = ["model", "start", "seed", "condition", "memory", "label", "metric", "score", "control", "chance"]
    frame = drawn[names]
    labels = [name for name in LABELS if (frame["label"] == name).any()]
    rows = {start: frame[frame["start"] == start] for start in panels.starts(frame)}
    order = {start: panels.memories(here) for start, here in rows.items()}
    lines = [max(len(memories), FEWEST) for memories in order.values()]
    height = 1.0 + 0.25 * len(rows) + 0.19 * sum(lines)
    figure, axes = panels.panels(
        ax, len(rows), len(labels), width, height, sharex="col", sharey="row", height_ratios=lines
    )
    for line, (start, of_start) in zip(axes, rows.items(), strict=True):
        for panel, label in zip(line, labels, strict=True):
            _rows(panel, of_start[of_start["label"] == label], order[start])
            panels.name_lines(panel, [panels.memory_label(memory) for memory in order[start]])
        line[0].set_ylabel(panels.start_label(start))
    for label, top, bottom in zip(labels, axes[0], axes[-1], strict=True):
        top.set_title(LABELS[label])
        bottom.set_xlabel(METRICS[frame.loc[frame["label"] == label, "metric"].iloc[0]])
    dark: dict[str, Any] = {"color": "#404040", "marker": "o", "markersize": 4}
    handles = [
        Line2D([], [], **dark, linewidth=1.0, label="trained: mean, 95 % t interval"),
        Line2D([], [], **dark, linewidth=1.0, markerfacecolor="white", label="untrained"),
        Line2D([], [], color="#404040", marker="o", markersize=2, linestyle="", alpha=0.45, label="every seed"),
        Line2D([], [], color=GREY, marker="|", markersize=5, linestyle="", label="labels shifted along the text"),
        Line2D([], [], **REFERENCE, label="chance"),
    ]
    panels.below(figure, handles, columns=3)
    return attach(figure, frame)


def _rows(panel: Axes, rows: pd.DataFrame, order: list[str]) -> None:
    """Seeds, mean and interval of every memory, one below the other."""
    panel.axvline(rows["chance"].iloc[0], **REFERENCE, zorder=0)
    for (condition, memory), here in rows.groupby(["condition", "memory"], sort=False):
        here = here.assign(row=order.index(str(memory)) + CONDITIONS[str(condition)])
        how = {"data": here, "y": "row", "native_scale": True, "orient": "h", "ax": panel}
        colour = panels.memory_style(str(memory))["color"]
        sns.stripplot(**how, x="score", color=colour, jitter=False, size=2, alpha=0.45)
        point = {"linestyle": "none", "markersize": 3.5, "err_kws": {"linewidth": 1.0, "solid_capstyle": "butt"}}
        inside = {"markerfacecolor": "white", "markeredgewidth": 0.8} if condition == "untrained" else {}
        sns.pointplot(**how, **point, **inside, x="score", color=colour, errorbar=lambda values: t_interval(values)[1:])
        if condition == "trained":
            sns.pointplot(**how, **point | {"marker": "|"}, x="control", color=GREY, errorbar=None)
    panel.set(xlabel="", ylabel="")


def carried(cells: pd.DataFrame) -> pd.DataFrame:
    """The `share` of a memory's summed divergence that its weightiest cells carry (`cells`: their share of all)."""
    frames = []
    for key, group in cells.groupby(["model", "start", "seed", "memory"], sort=False):
        weights = np.sort(group["kl"])[::-1]
        if weights.sum() > 0:
            share = np.concatenate([[0], weights.cumsum() / weights.sum()])
            named = dict(zip(("model", "start", "seed", "memory"), key, strict=True))
            frames.append(pd.DataFrame({**named, "cells": np.linspace(0, 1, len(share)), "share": share}))
    if not frames:
        raise UsageError("no cell's swap changes a prediction: there is nothing to draw")
    return pd.concat(frames, ignore_index=True)


@styled
def single_cells(cells: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """What a swap of each single cell costs, and what share of the sum the weightiest ones carry; a row a start.

    On the left a mark is a cell, a line of marks a seed; divergences below 1e-7 nats stand at the edge. On the right
    every seed is faint, the mean strong; on the diagonal all cells would be alike.

    Args:
        cells: `lab.probes.gather(networks, lab.probes.cell_cuts, excerpt)`.

    Raises:
        UsageError: No cell's swap changes a prediction.
    """
    shares = carried(cells)
    names = ["model", "start", "seed", "memory", "unit", "kl"]
    frame = cells[names].assign(drawn=cells["kl"].clip(lower=FLOOR))
    order, rows = panels.memories(frame), panels.starts(frame)
    figure, axes = panels.panels(ax, len(rows), 2, width, 0.7 + 1.65 * len(rows), sharex="col")
    for (left, right), start in zip(axes, rows, strict=True):
        here = frame[frame["start"] == start]
        for memory in order:
            mine = here[here["memory"] == memory]
            colours = [panels.memory_style(memory)["color"]] * mine["seed"].nunique()
            sns.stripplot(
                mine, x="drawn", y="memory", order=order, hue="seed", palette=colours, dodge=True, jitter=False,
                log_scale=True, size=2, alpha=0.4, legend=False, ax=left, rasterized=True,  # thousands
            )  # fmt: skip
        for memory in reversed(order):
            cumulative = shares[(shares["start"] == start) & (shares["memory"] == memory)]
            panels.seeds_and_mean(right, cumulative, "cells", "share", **panels.memory_style(memory))
        right.plot([0, 1], [0, 1], **REFERENCE)
        left.set(xlabel="", ylabel=panels.start_label(start))
        idle = {name: (here.loc[here["memory"] == name, "kl"] <= FLOOR).mean() for name in order}  # cost nothing
        edge = {name: f"\n{100 * share:.0f} % at the edge" if share >= 0.01 else "" for name, share in idle.items()}
        left.set_yticks(range(len(order)), [panels.memory_label(name) + edge[name] for name in order])
        left.tick_params(axis="y", length=0)
        left.grid(axis="x")
        right.set_ylabel("share of the sum")
        right.grid(axis="both")
        for axis in (right.xaxis, right.yaxis):
            axis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    for panel in axes[:-1].flat:
        panel.tick_params(axis="x", labelbottom=False, which="both")
    axes[-1, 0].xaxis.set_major_formatter(lambda kl, _: f"{'≤ ' if kl < 2 * FLOOR else ''}$10^{{{np.log10(kl):.0f}}}$")
    axes[-1, 0].set_xlabel("KL(intact ‖ one cell swapped), nats")
    axes[-1, 1].set_xlabel("the weightiest cells, of all")
    alike = Line2D([], [], **REFERENCE, label="all cells alike")
    panels.below(figure, [*panels.memory_handles(frame), alike], columns=5)
    return attach(figure, frame.drop(columns="drawn"))
