"""Cell activations along a sequence: figures 3 and 4 of Nested LSTMs (Moniz & Krueger 2017)."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal
from unicodedata import east_asian_width

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.plots import memory_label
from nlstm_lab.figures.saving import LIVE, attach
from nlstm_lab.figures.style import DIVERGING, MONO, PAGE, glyph, shades, sheet, styled, write
from nlstm_lab.settings import check_trace, choice

Values = Literal["printed", "tanh", "raw"]

# inches; a cell is so high, and at least as wide as a character of the text under it needs
CELL, TITLE, TEXT, LINE_GAP, BAR = 0.083, 0.14, 0.125, 0.10, 0.40
MARGIN, PANEL_GAP = 0.26, 0.12
DIGIT, LETTER = 0.053, 0.055  # of the number of a cell, and of a title
FULL, WIDE, NARROW = (0.105, 6.6), (0.083, 7.2), (0.066, 6.6)  # inches a character (a Chinese one), and its font size
MANY = 250  # characters, from which on narrow ones keep a figure on a page


def activation_frame(trace: xr.Dataset, units: int | Sequence[int] = 7, values: Values = "printed") -> pd.DataFrame:
    """What the figure shows: a row for each memory (innermost or highest first), unit and step."""
    choice(values, "values", Values)
    check_trace(trace)
    if "c" not in trace:
        raise UsageError(f"{trace.attrs.get('model') or 'this network'} has no cells: see lab.widgets.CellExplorer")
    if "text" in trace.dims:
        raise UsageError("trace must be of one text: take one, trace.sel(text=0)")
    c = trace["c"].transpose("memory", "unit", "time").astype(float)
    wanted = [*dict.fromkeys(units if isinstance(units, Iterable) else range(units))]
    if c.size == 0 or not wanted:
        raise UsageError("there is nothing to draw: the trace or the list of units is empty")
    if outside := [unit for unit in wanted if unit not in range(c.sizes["unit"])]:
        raise UsageError(f"units such as {outside[0]} are not among the network's {c.sizes['unit']} (counted from 0)")
    nested, squashed, quantities = trace.attrs.get("depth", 1) > 1, [], []
    # a memory of a Nested LSTM that has no leak is what an inner output gate let through: already within (-1, 1)
    for leaks in trace["leaks"].values if "leaks" in trace.coords else [True] * c.sizes["memory"]:
        squashed.append(values == "tanh" or (values == "printed" and bool(leaks)))
        # what is drawn in a memory's place, such as a hidden state, brings its own symbol
        symbol = c.attrs.get("symbol") or (r"\tilde{c}_t" if nested and leaks else "c_t")
        quantities.append(rf"$\tanh({symbol})$" if squashed[-1] else f"${symbol}$")
    known = {"symbol": ("time", symbols_of(trace)), "quantity": ("memory", quantities), "unit": wanted}
    c = c.isel(unit=wanted).assign_coords(known | {"time": trace["time"]})
    drawn = c.where(~xr.DataArray(squashed, dims="memory"), np.tanh(c))[::-1]
    frame: pd.DataFrame = drawn.to_dataframe("value", ["memory", "unit", "time"]).reset_index()
    return frame[["memory", "unit", "time", "symbol", "quantity", "value"]]


def symbols_of(trace: xr.Dataset) -> Sequence[str]:
    """What was read at every step; nothing where that is a vector."""
    return trace["symbol"].values.astype(str).tolist() if "symbol" in trace.coords else [""] * trace.sizes["time"]


@styled
def cell_activations(
    trace: xr.Dataset, units: int | Sequence[int] = 7, values: Values = "printed", width: float = PAGE
) -> Figure:
    """Every memory of `trace` side by side, the innermost (or highest) on the left, as the paper prints them.

    Red is negative, blue positive. Under the cells stands what was read, or every tenth step where that are vectors.

    Args:
        trace: `lab.probes.trace(model, text)`.
        units: The first so many cells, or which ones.
        values: "printed" as in the paper (tanh of the innermost memory and of every layer of a stack, but the outer
            memory of a Nested LSTM as it is), or "tanh" or "raw" of all.
        width: Inches; the text is broken into lines that fit.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> trace = lab.probes.trace(model, "the old man said that he would not sell the company")
    >>> figure = lab.figures.cell_activations(trace, units=[3, 14, 15])
    >>> len(lab.figures.data(figure))  # 2 memories x 3 cells x 51 characters
    306
    """
    frame = activation_frame(trace, units, values)
    memories, shown = (list(dict.fromkeys(frame[name])) for name in ("memory", "unit"))
    symbols = symbols_of(trace)
    panel = (width - MARGIN) / len(memories)
    full = any(east_asian_width(letter) in "WF" for symbol in symbols for letter in symbol)
    pitch, font = FULL if full else WIDE if panel > 2.5 and len(symbols) <= MANY else NARROW
    per_line = int((panel - PANEL_GAP) / pitch)
    if per_line < 1:
        raise UsageError(f"{len(memories)} memories side by side need more than {width} inches")
    # as few lines as there can be, the longest of them as short as it can be
    lines = min((broken_lines(symbols, shorter) for shorter in range(1, per_line + 1)), key=len)
    pitch = (panel - PANEL_GAP) / max(stop - start for start, stop in lines)
    titles = {memory: _title(frame, memory, panel) for memory in memories}
    top = TITLE * (1 + max(title.count("\n") for title in titles.values())) + 0.04
    block = len(shown) * CELL + TEXT + LINE_GAP
    height = top + block * len(lines) + BAR
    figure, ax = sheet(width, height)
    for k, memory in enumerate(memories):
        x = MARGIN + k * panel + PANEL_GAP / 2
        write(ax, x, top - 0.05, titles[memory], linespacing=1.15)
        mine = frame[frame["memory"] == memory]
        grid = mine.pivot(index="unit", columns="time", values="value").loc[shown].to_numpy()
        limit = 1.0 if values != "raw" else float(np.nanmax(np.abs(grid), initial=1e-12))
        norm = Normalize(-limit, limit)
        for row, (start, stop) in enumerate(lines):
            y = top + row * block
            across, below = x + pitch * np.arange(stop - start + 1), y + CELL * np.arange(len(shown) + 1)
            how: dict[str, Any] = {"cmap": DIVERGING, "norm": norm, "edgecolors": "#d9d9d9", "linewidth": 0.25}
            ax.pcolormesh(across, below, grid[:, start:stop], **how)
            ax.plot(across[[0, -1]], [below[-1] + 0.006] * 2, color="#b0b0b0", linewidth=0.4)
            for step, words in ticks(symbols, trace["time"].values, start, stop).items():
                write(ax, x + (step - start + 0.5) * pitch, below[-1] + 0.095, words, "center", font, family=MONO)
            if k == 0:
                for place, unit in enumerate(shown):
                    write(ax, x - 0.03, y + (place + 0.5) * CELL, str(unit), "right", 6, va="center_baseline")
                left = x - 0.05 - DIGIT * len(str(max(shown)))
                write(ax, left, y + len(shown) * CELL / 2, "cell", "right", 6, rotation=90, va="center")
        if values == "raw" or k == 0:
            middle = x + (panel - PANEL_GAP) / 2 if values == "raw" else width / 2
            write(ax, middle, height - BAR + 0.13, "activation", "center")
            shades(ax, middle - 0.4, height - BAR + 0.17, DIVERGING, norm, f"−{limit:.3g}", f"{limit:.3g}", 0.8)
    return attach(figure, frame, {"value": LIVE})


def _title(frame: pd.DataFrame, memory: str, room: float) -> str:
    """A memory's name and what is drawn of it, in one line where there is room for it."""
    label = memory_label(memory, frame["memory"].unique())
    quantity = frame.loc[frame["memory"] == memory, "quantity"].iloc[0]
    letters = len(label) + 4 + len(re.sub(r"\\tilde|[${}_\\]", "", quantity))
    return f"{label},  {quantity}" if letters * LETTER < room else f"{label},\n{quantity}"


def broken_lines(symbols: Sequence[str], per_line: int) -> list[tuple[int, int]]:
    """Break a text into lines (start, stop) of at most `per_line` symbols, after a space where there is one."""
    breaks = [0]
    while len(symbols) - breaks[-1] > per_line:
        start = breaks[-1]
        spaces = [k + 1 for k in range(start, start + per_line) if symbols[k].isspace()]
        breaks.append(spaces[-1] if spaces else start + per_line)
    return list(pairwise([*breaks, len(symbols)]))


def ticks(symbols: Sequence[str], numbers: np.ndarray, start: int, stop: int) -> dict[int, str]:
    """What stands under the steps of a line: symbols, or of vectors every tenth step's number."""
    if any(symbols):
        return {k: glyph(symbols[k]) for k in range(start, stop)}
    return {k: str(numbers[k]) for k in range(start, stop) if numbers[k] % 10 == 0}
