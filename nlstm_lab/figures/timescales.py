"""How slow memories are: distributions over cells, and medians against their baselines."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from nlstm_lab.errors import UsageError
from nlstm_lab.figures import panels
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import PAGE, in_order, look, styled
from nlstm_lab.statistics import t_interval

QUANTITIES = {  # what is measured of a cell: title, axis
    "raw": ("autocorrelation time\nof the state", "characters"),
    "tanh": ("autocorrelation time\nof its tanh", "characters"),
    "gate": ("forget gate\n−1 / mean ln f", "characters"),
    "persistence": ("local persistence\nof a small change", "∂c(t) / ∂c(t−1)"),
}
VALUES = {"raw": "state", "tanh": "tanh of the state"}
# markers: the trained network is filled
CONDITIONS = {"trained": "o", "untrained": "s", "characters shuffled": "v", "words shuffled": "^"}
POINTS = 80  # at which a distribution is drawn


def cumulated(cells: pd.DataFrame) -> pd.DataFrame:
    """The `share` of all of a memory's cells that are alive and at most so slow (`x`), for every run and quantity."""
    live = cells[(cells["life"] == "alive") & np.isfinite(cells["value"])]
    frames = []
    for quantity, measured in live.groupby("quantity", sort=False):
        low, high = measured["value"].quantile([0.001, 0.999])
        if quantity == "persistence":
            grid = np.linspace(min(low, 0), max(high, 1), POINTS)
        else:
            grid = np.geomspace(max(low, 0.1), max(high, 0.2), POINTS)
        everything = cells[cells["quantity"] == quantity]
        for key, group in everything.groupby(["model", "start", "seed", "memory"], sort=False):
            values = group.loc[(group["life"] == "alive") & group["value"].notna(), "value"].to_numpy()
            if len(values):
                share = np.searchsorted(np.sort(values), grid, side="right") / len(group)
                named = dict(zip(("model", "start", "seed", "memory"), key, strict=True))
                frames.append(pd.DataFrame({**named, "quantity": quantity, "x": grid, "share": share}))
    if not frames:
        raise UsageError("no cell is alive and has a number: there is nothing to draw")
    return pd.concat(frames, ignore_index=True)


@styled
def timescale_distributions(cells: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """Cumulated distributions over the cells of each memory, a panel for each quantity and start of the output bias.

    Every seed is faint, the mean over seeds strong. A curve is a share of *all* cells: it ends where the live ones do,
    and what is missing above it is dead. Where a quantity is not defined for a memory, the panel says so.

    Args:
        cells: `lab.probes.quantities(states, gates)`.

    Raises:
        UsageError: No cell is alive and has a number.
    """
    frame = cumulated(cells)
    rows, names = panels.starts(frame), [name for name in QUANTITIES if (frame["quantity"] == name).any()]
    figure, axes = panels.panels(ax, len(rows), len(names), width, 0.8 + 1.55 * len(rows), sharex="col", sharey=True)
    for line, start in zip(axes, rows, strict=True):
        for panel, name in zip(line, names, strict=True):
            here = frame[(frame["start"] == start) & (frame["quantity"] == name)]
            panels.memory_lines(panel, here, "x", "share")
            if name != "persistence":
                panel.set_xscale("log")
                panel.xaxis.set_major_formatter("{x:g}")
                panel.xaxis.set_minor_formatter(NullFormatter())
            panel.set_ylim(0, 1)
            panel.grid(axis="both")
        line[0].yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
        line[0].set_ylabel(panels.start_label(start) + "\nshare of all cells")
    for panel, name in zip(axes[0], names, strict=True):
        panel.set_title(QUANTITIES[name][0])
        missing = set(frame["memory"]) - set(frame.loc[frame["quantity"] == name, "memory"])
        note = "\n".join(f"not defined for\nthe {panels.memory_label(memory)}" for memory in in_order(missing))
        panel.text(0.97, 0.22, note, transform=panel.transAxes, ha="right", va="bottom", fontsize=6.5)
    for panel, name in zip(axes[-1], names, strict=True):
        panel.set_xlabel(QUANTITIES[name][1])
    for panel in axes[:, 1:].flat:
        panel.tick_params(axis="y", labelleft=False)
    for panel in axes[:-1].flat:
        panel.tick_params(axis="x", labelbottom=False, which="both")
    panels.below(figure, panels.memory_handles(frame))
    return attach(figure, frame)


@styled
def timescale_baselines(medians: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """Each memory's median timescale beside its baselines: the same network untrained, the same text shuffled.

    Rows of panels are the start of the output bias, columns the kind of value. Small marks are seeds, the large one and
    its bar their geometric mean and t interval (of the logarithms); at the right the mean share of dead cells once
    trained.

    Args:
        medians: `lab.probes.medians` of `baseline_timescales`, gathered.

    Raises:
        UsageError: There is no median to draw.
    """
    columns = ["model", "start", "seed", "condition", "value", "memory", "median", "measured", "dead"]
    frame = medians.loc[medians["value"].isin(list(VALUES)), columns]
    if not frame["median"].notna().any():
        raise UsageError("no memory has enough live cells for a median")
    rows, names = panels.starts(frame), panels.memories(frame)
    conditions = [name for name in CONDITIONS if (frame["condition"] == name).any()]
    per_memory = len(conditions) + 0.8
    height = 0.65 + len(rows) * (0.35 + 0.115 * per_memory * len(names))
    figure, axes = panels.panels(ax, len(rows), 2, width, height, sharex=True, sharey=True)
    places = {(m, c): per_memory * k + j for k, m in enumerate(names) for j, c in enumerate(conditions)}
    for line, start in zip(axes, rows, strict=True):
        for panel, value in zip(line, VALUES, strict=True):
            here = frame[(frame["start"] == start) & (frame["value"] == value)]
            for (memory, condition), group in here.groupby(["memory", "condition"], sort=False):
                _dot(panel, places[str(memory), str(condition)], group, str(memory), str(condition))
            panel.set_xscale("log")
            panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.xaxis.set_major_formatter("{x:g}")
            panel.xaxis.set_minor_formatter(NullFormatter())
            panel.set_title(f"{VALUES[value]}; {panels.STARTS[start]}")
            panel.grid(axis="x", which="both")
            panel.tick_params(axis="y", length=0)
    middle = (len(conditions) - 1) / 2
    axes[0, 0].set_yticks([per_memory * k + middle for k in range(len(names))], [panels.memory_label(m) for m in names])
    axes[0, 0].set_ylim(per_memory * len(names) - 1.0, -0.8)
    for panel in axes[:, 1]:
        panel.tick_params(axis="y", labelleft=False)
    for panel in axes[-1]:
        panel.set_xlabel("median autocorrelation time (characters)")
    handles = [
        Line2D([], [], color="#404040", linestyle="", marker=CONDITIONS[name], label=name,
               markerfacecolor="#404040" if name == "trained" else "white")
        for name in conditions
    ]  # fmt: skip
    dark: dict[str, Any] = {"color": "#404040", "marker": "o"}
    handles += [
        Line2D([], [], **dark, markersize=4, linewidth=1.0, label="geometric mean, 95 % t interval"),
        Line2D([], [], **dark, markersize=2, linestyle="", alpha=0.45, label="every seed"),
    ]
    panels.below(figure, handles, columns=3)
    return attach(figure, frame)


def _dot(panel: Axes, y: float, group: pd.DataFrame, memory: str, condition: str) -> None:
    """The seeds' medians, their mean with its interval, and how many cells are dead once trained."""
    colour, marker = look(memory).colour, CONDITIONS[condition]
    values = group["median"].dropna()
    mean, low, high = np.exp(t_interval(np.log(values)))
    panel.plot(values, [y] * len(values), marker, color=colour, markersize=2, alpha=0.45, markeredgewidth=0)
    panel.plot([low, high], [y, y], color=colour, linewidth=1.0, solid_capstyle="butt")
    inside = colour if condition == "trained" else "white"
    panel.plot([mean], [y], marker, color=colour, markerfacecolor=inside, markersize=4, markeredgewidth=0.8, zorder=4)
    if condition == "trained":
        panel.annotate(f"{100 * group['dead'].mean():.0f} % dead", (1.01, y), xycoords=("axes fraction", "data"),
                       va="center", fontsize=6.5, annotation_clip=False)  # fmt: skip
