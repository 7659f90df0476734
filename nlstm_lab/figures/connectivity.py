"""Connectivity: the article's figure for one sentence."""

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.activations import wrap
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import DIVERGING, MONO, PAGE, STRENGTH, in_order, look, shades, sheet, styled, write

Scale = Literal["row", "figure", "log"]
DECADES = 4  # of a logarithmic scale: what is weaker is as good as nothing

# inches: a character's width and height, and what stands around a facet's lines
PITCH, LINE, TITLE, GAP, BAR, SIDE = 0.083, 0.175, 0.22, 0.10, 0.36, 0.06
LETTER = 0.053  # of 7 points


@styled
def connectivity_sentence(data: Mapping[str, xr.Dataset], at: int, scale: Scale = "row", width: float = PAGE) -> Figure:
    """Which characters the prediction at position `at` depends on, a facet for each network (Madsen's article).

    Signed connectivities are red where negative.

    Args:
        data: By model, what `lab.probes.connectivity` gave, all of one text.
        at: The position that is selected, framed; beside each name stand its target and its three likeliest words.
        scale: Shades relative to each network's own largest connectivity ("row", as in the article), to the largest of
            all ("figure"), or its logarithm over four decades ("log").

    Raises:
        UsageError: There is no network, no such position or scale, or the texts differ.
    """
    frame = sentence_frame(data, at, scale)
    signed = bool((frame["shade"] < 0).any())
    names = in_order(data)
    symbols = [str(symbol) for symbol in data[names[0]]["symbol"].values]
    lines = wrap(symbols, int((width - 2 * SIDE) / PITCH))
    said = {name: _said(data[name].isel(time=at)) for name in names}
    narrow = max(map(len, said.values())) * LETTER + 0.8 > width  # then what is predicted has a line of its own
    title = TITLE * (2 if narrow else 1)
    facet = title + LINE * len(lines) + GAP
    height = facet * len(names) + BAR
    figure, ax = sheet(width, height)
    colours, norm = (DIVERGING, Normalize(-1, 1)) if signed else (STRENGTH, Normalize(0, 1))
    for k, name in enumerate(names):
        top = k * facet
        write(ax, SIDE, top + TITLE - 0.06, look(name).label, color=look(name).colour, fontweight="bold")
        place, align = (SIDE, "left") if narrow else (width - SIDE, "right")
        # words are no formula, whatever dollar signs they have
        write(ax, place, top + title - 0.06, said[name], align, parse_math=False)
        shade = frame.loc[frame["model"] == name, "shade"].to_numpy()
        for row, (start, stop) in enumerate(lines):
            y = top + title + row * LINE
            across = SIDE + PITCH * np.arange(stop - start + 1)
            ax.pcolormesh(across, [y, y + LINE - 0.03], shade[None, start:stop], cmap=colours, norm=norm, linewidth=0)
            for here in range(start, stop):
                _character(ax, SIDE + (here - start + 0.5) * PITCH, y, symbols[here], shade[here], here - at)
    whose = {"row": "its own largest", "log": "the largest, logarithmic"}.get(scale, "the largest of all")
    weakest = f"10$^{{-{DECADES}}}$ or less" if scale == "log" else f"{norm.vmin:.0f}"
    left = SIDE + LETTER * (len(weakest) if scale != "log" else 11)
    shades(ax, left, height - BAR + 0.09, colours, norm, weakest, f"1, connectivity as a share of {whose}", 0.7)
    return attach(figure, frame, {"connectivity": LIVE, "shade": LIVE})


def _said(selected: xr.Dataset) -> str:
    """What the selected prediction should be, and what it is."""
    likeliest = zip(selected["prediction"].values, selected["probability"].values, strict=True)
    words = ",  ".join(f"{word} {100 * p:.0f} %" for word, p in likeliest)
    return f"target: {selected['target'].item() or 'none'}    likeliest: {words}"


def sentence_frame(data: Mapping[str, xr.Dataset], at: int, scale: Scale = "row") -> pd.DataFrame:
    """What the figure shows: model, time, symbol, connectivity, and its shade from 0 (or -1) to 1."""
    if scale not in get_args(Scale):
        raise UsageError(f"scale must be one of {', '.join(map(repr, get_args(Scale)))}, not {scale!r}")
    if not data or len({"".join(rows["symbol"].values) for rows in data.values()}) != 1:
        raise UsageError("the figure compares networks on one text: hand in at least one, all of the same text")
    length = next(iter(data.values())).sizes["time"]
    if not 0 <= at < length:
        raise UsageError(f"there is no position {at}: the text has the positions 0 to {length - 1}")
    frames = []
    for name in in_order(data):
        row = data[name].isel(time=at)
        values, start = np.zeros(length), int(row["window"])
        here = row["connectivity"].values[: length - start]
        values[start : start + len(here)] = here
        symbols = data[name]["symbol"].values
        about = {"model": name, "time": np.arange(length), "symbol": symbols}
        frames.append(pd.DataFrame(about | {"connectivity": values}))
    frame = pd.concat(frames, ignore_index=True)
    size = frame["connectivity"].abs()
    largest = size.groupby(frame["model"]).transform("max") if scale == "row" else size.max()
    strength = (size / largest).fillna(0).to_numpy()
    if scale == "log":
        strength = np.maximum(1 + np.log10(np.maximum(strength, 10.0**-DECADES)) / DECADES, 0)
    return frame.assign(shade=strength * np.sign(frame["connectivity"].fillna(0).to_numpy()))


def _character(ax: Axes, x: float, y: float, symbol: str, shade: float, place: int) -> None:
    """One character on its shade; the selected one (place 0) in a frame, what comes after it faint."""
    if place == 0:
        corners = np.array([[-0.5, 0], [0.5, 0], [0.5, 1], [-0.5, 1], [-0.5, 0]]) * (PITCH, LINE - 0.03)
        ax.plot(x + corners[:, 0], y + corners[:, 1], color="#b2182b", linewidth=1.0)
    colour = "#b0b0b0" if place > 0 else "white" if abs(shade) > 0.6 else "#1c1c1c"
    write(ax, x, y + 0.105, symbol.strip(), "center", family=MONO, color=colour, parse_math=False)
