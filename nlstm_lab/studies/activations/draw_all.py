"""All cells of a network at once, and which of them to look at more closely: figure 3 has room for seven."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlstm_lab.figures.panels import memory_label, panels
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import DIVERGING, PAGE, glyph, styled
from nlstm_lab.studies.activations.draw import MONO, activation_frame

ROW, TITLE, BAR, SYMBOL = 0.042, 0.22, 0.55, 0.06  # inches: of a cell, and of a character that can be read


def liveliest(trace: xr.Dataset, count: int = 7) -> list[int]:
    """The `count` units whose innermost (or highest) memory moves most from one character to the next, most first.

    Args:
        trace: `lab.probes.trace(model, text)`.
        count: How many.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> trace = lab.probes.trace(model, "the old man said that he would not sell")
    >>> figure = lab.figures.cell_activations(trace, units=liveliest(trace, 3))
    """
    frame = activation_frame(trace, trace.sizes["unit"])
    grid = _grid(frame, str(frame["memory"].iloc[0]))
    return _movement(grid).round(LIVE).sort_values(ascending=False, kind="stable").index[:count].tolist()


@styled
def all_cells(traces: Mapping[str, xr.Dataset], rows: int = 25, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """Every memory along the text, a panel for each memory of each named trace, in the colours of figure 3.

    All cells stand in the order in which they move, the calmest first, each memory in an order of its own; of these,
    so many are drawn, at equal distances. The frame has a row for
    every cell, in the network's order, with its movement and a column for each character.

    Args:
        traces: Traces of the same text (`lab.probes.trace`).
        rows: How many cells a panel draws.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> figure = all_cells({"log-frequencies": lab.probes.trace(model, "the old man said that he would not sell")})
    >>> len(lab.figures.data(figure))  # 2 memories x 150 cells
    300
    """
    frames, drawn = [], list[tuple[str, pd.DataFrame]]()
    for name, trace in traces.items():
        table = activation_frame(trace, trace.sizes["unit"])
        for memory, group in table.groupby("memory", sort=False):
            grid = _grid(table, str(memory))
            movement = _movement(grid)
            order = movement.sort_values(kind="stable").index
            chosen = order[np.unique(np.linspace(0, len(order) - 1, rows).round().astype(int))]
            title = f"{name}: {memory_label(str(memory))}, {group['quantity'].iloc[0]}"
            drawn.append((f"{title}: {len(chosen)} of {len(order)} cells, calmest first", grid.loc[chosen]))
            frames.append(grid.reset_index().assign(network=name, memory=memory, movement=movement.to_numpy()))
    symbols = [glyph(str(symbol)) for symbol in trace["symbol"].values]
    readable = len(symbols) * SYMBOL <= width
    figure, axes = panels(ax, len(drawn), 1, width, len(drawn) * (rows * ROW + TITLE) + BAR, sharex=True)
    for panel, (title, cells) in zip(axes[:, 0], drawn, strict=True):
        how = {"cmap": DIVERGING, "vmin": -1, "vmax": 1, "cbar": False, "rasterized": True, "yticklabels": False}
        sns.heatmap(cells, ax=panel, xticklabels=symbols if readable else "auto", **how)
        panel.set_title(title, loc="left", fontsize=7.5, pad=2)
        panel.set(xlabel="", ylabel="")
        panel.tick_params(axis="x", length=0 if readable else 2, labelrotation=0, pad=1)
        panel.tick_params(axis="y", length=0)
    for label in axes[-1, 0].get_xticklabels() if readable else ():
        label.set(family=MONO, fontsize=6)
    axes[-1, 0].set_xlabel("" if readable else "position (characters)")
    mesh = axes[-1, 0].collections[0]
    place: dict[str, Any] = {"orientation": "horizontal", "fraction": 0.03, "pad": 0.02, "shrink": 0.3}
    bar = figure.colorbar(mesh, ax=axes[:, 0].tolist(), label="activation", **place)
    bar.set_ticks([-1, 0, 1], labels=["−1", "0", "1"])
    frame = pd.concat(frames, ignore_index=True)
    frame.columns = [f"t{name}" if isinstance(name, (int, np.integer)) else str(name) for name in frame.columns]
    computed = ["movement", *frame.filter(regex=r"^t\d+$").columns]
    return attach(figure, frame[["network", "memory", "unit", *computed]], dict.fromkeys(computed, LIVE))


def _grid(frame: pd.DataFrame, memory: str) -> pd.DataFrame:
    """Units by characters of one memory."""
    return frame[frame["memory"] == memory].pivot(index="unit", columns="time", values="value")


def _movement(grid: pd.DataFrame) -> pd.Series:
    """How far each unit moves from one character to the next, on average."""
    return grid.diff(axis=1).abs().mean(axis=1)
