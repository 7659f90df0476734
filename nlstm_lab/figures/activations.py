"""Cell activations along a text: figures 3 and 4 of Nested LSTMs (Moniz & Krueger 2017)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from nlstm_lab.figures.panels import memory_label, panels
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import DIVERGING, PAGE, glyph, look, sheet, styled
from nlstm_lab.figures.summaries import Values, activation_frame

MONO = "monospace"

# inches; a cell is so high, and as wide as a character of the text beside it needs
CELL, TITLE, TEXT, LINE_GAP, BAR = 0.083, 0.20, 0.125, 0.10, 0.40
MARGIN, PANEL_GAP = 0.26, 0.12
DIGIT = 0.053  # of the number of a cell
WIDE, NARROW = (0.083, 7.2), (0.066, 6.6)  # inches a character, and its font size
STRETCH = 1.25  # how much wider a character may be, so that lines fill their place


@styled
def cell_activations(
    trace: xr.Dataset,
    units: int | Sequence[int] = 7,
    values: Values = "printed",
    width: float = PAGE,
    ax: Axes | None = None,
) -> Figure:
    """Every memory of `trace` side by side, the innermost (or highest) on the left, as the paper prints them.

    Red is negative, blue positive.

    Args:
        trace: `lab.probes.trace`: variable c (time, memory, unit), coordinates symbol (time) and memory.
        units: The first so many cells, or which ones.
        values: "printed" as in the paper (tanh of the innermost memory and of every layer of a stack, but the outer
            memory of a Nested LSTM as it is), or "tanh" or "raw" of all.
        width: Inches; the text is broken into lines that fit.

    Raises:
        UsageError: The trace has no memory cells.
        ValueError: There is no such unit or `values`, the trace is empty, or `width` has no room for a character.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> trace = lab.probes.trace(model, "the old man said that he would not sell the company")
    >>> figure = lab.figures.cell_activations(trace, units=[3, 14, 15])
    >>> len(lab.figures.data(figure))  # 2 memories x 3 cells x 51 characters
    306
    """
    frame = activation_frame(trace, units, values)
    memories = list(dict.fromkeys(frame["memory"]))
    symbols = [str(symbol) for symbol in trace["symbol"].values]
    panel = (width - MARGIN) / len(memories)
    pitch, font = WIDE if panel > 2.5 else NARROW
    per_line = int((panel - PANEL_GAP) / pitch)
    if per_line < 1:
        raise ValueError(f"{len(memories)} memories side by side need more than {width} inches")
    lines = balanced(symbols, per_line)
    per_line = max(stop - start for start, stop in lines)
    size = 8 if font == WIDE[1] else 6.5
    pitch = min((panel - PANEL_GAP) / per_line, STRETCH * pitch)
    shown = list(dict.fromkeys(frame["unit"]))
    block = len(shown) * CELL + TEXT + LINE_GAP
    height = TITLE + block * len(lines) + BAR
    figure, ax = sheet(ax, width, height)
    grids = {
        memory: group.pivot(index="unit", columns="time", values="value").loc[shown].to_numpy()
        for memory, group in frame.groupby("memory")
    }
    bounded = values != "raw"
    panel = per_line * pitch + PANEL_GAP
    left = width - panel * len(memories) + PANEL_GAP / 2
    beside: dict[str, Any] = {"ha": "right", "fontsize": 6}
    for k, memory in enumerate(memories):
        x = left + k * panel
        quantity = frame.loc[frame["memory"] == memory, "quantity"].iloc[0]
        # two layers are a stack's lower and upper one; with more, they are counted
        label = look(memory).label if "layer 3" in memories else memory_label(memory)
        ax.text(x, TITLE - 0.05, f"{label},  {quantity}", va="baseline", fontsize=size)
        limit = 1.0 if bounded else float(np.nanmax(np.abs(grids[memory]), initial=1e-12))
        norm = Normalize(-limit, limit)
        for row, (start, stop) in enumerate(lines):
            y = TITLE + row * block
            _block(ax, x, y, grids[memory][:, start:stop], symbols[start:stop], norm, pitch, font)
            if k == 0:
                for unit_row, unit in enumerate(shown):
                    ax.text(x - 0.03, y + (unit_row + 0.5) * CELL, str(unit), va="center_baseline", **beside)
                at = x - 0.05 - DIGIT * len(str(max(shown))), y + len(shown) * CELL / 2
                ax.text(*at, "cell", rotation=90, va="center", **beside)
        if not bounded or k == 0:
            _colour_bar(ax, x + (per_line * pitch - 1.1) / 2 if not bounded else width / 2 - 0.55, height, norm)
    return attach(figure, frame, {"value": LIVE})


def wrap(symbols: Sequence[str], per_line: int) -> list[tuple[int, int]]:
    """Break a text into lines (start, stop) of at most `per_line` symbols, after a space where there is one."""
    breaks = [0]
    while len(symbols) - breaks[-1] > per_line:
        start = breaks[-1]
        spaces = [k + 1 for k in range(start, start + per_line) if symbols[k].isspace()]
        breaks.append(spaces[-1] if spaces else start + per_line)
    return list(pairwise([*breaks, len(symbols)]))


def balanced(symbols: Sequence[str], per_line: int) -> list[tuple[int, int]]:
    """As few lines as `wrap` needs, the longest of them as short as it can be."""
    fewest = len(wrap(symbols, per_line))
    shortest = next(width for width in range(1, per_line + 1) if len(wrap(symbols, width)) <= fewest)
    return wrap(symbols, shortest)


def _block(
    ax: Axes, x: float, y: float, grid: np.ndarray, symbols: Sequence[str], norm: Normalize, pitch: float, font: float
) -> None:
    """One line of text under its cells: [cells, characters] with the upper left corner at (x, y)."""
    rows, columns = grid.shape
    across, down = x + pitch * np.arange(columns + 1), y + CELL * np.arange(rows + 1)
    ax.pcolormesh(across, down, grid, cmap=DIVERGING, norm=norm, edgecolors="#d9d9d9", linewidth=0.25)
    ax.plot([x, x + columns * pitch], [down[-1] + 0.006] * 2, color="#b0b0b0", linewidth=0.4)
    how: dict[str, Any] = {"ha": "center", "va": "baseline", "fontsize": font, "family": MONO}
    for k, symbol in enumerate(symbols):
        ax.text(x + (k + 0.5) * pitch, down[-1] + 0.095, glyph(symbol), **how)


def _colour_bar(ax: Axes, x: float, height: float, norm: Normalize) -> None:
    """A bar of 1.1 inches near the lower edge, with its name, its ends and its middle."""
    edges = np.linspace(0, 1.1, 129)
    shades = np.linspace(norm.vmin, norm.vmax, 128)[None]  # type: ignore[arg-type]
    top = height - BAR + 0.16
    ax.pcolormesh(x + edges, [top, top + 0.07], shades, cmap=DIVERGING, norm=norm, linewidth=0)
    corners = np.array([[0, 0], [1.1, 0], [1.1, 0.07], [0, 0.07], [0, 0]])
    ax.plot(x + corners[:, 0], top + corners[:, 1], color="#808080", linewidth=0.4)
    ax.text(x + 0.55, top - 0.03, "activation", ha="center", va="baseline", fontsize=7)
    limit = f"{norm.vmax:.3g}"
    for place, text in ((0, f"−{limit}"), (0.55, "0"), (1.1, limit)):
        ax.text(x + place, top + 0.165, text, ha="center", va="baseline", fontsize=6)


ROW, HEAD, FOOT, SYMBOL = 0.042, 0.22, 0.55, 0.06  # inches: of a cell, and of a character that can be read


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

    Cells stand in the order in which they move, the calmest first; so many are drawn, at equal distances. The frame has
    a row for every cell, in the network's order, with its movement and a column for each character.

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
    figure, axes = panels(ax, len(drawn), 1, width, len(drawn) * (rows * ROW + HEAD) + FOOT, sharex=True)
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
