"""Connectivity: the article's figure for one sentence."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.activations import MONO, wrap
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import DIVERGING, PAGE, in_order, look, sheet, styled

Scale = Literal["row", "figure", "log"]
STRENGTH = LinearSegmentedColormap.from_list("strength", ["#ffffff", "#c6def0", "#6aaad2", "#2166ac", "#053061"])
DECADES = 4  # of a logarithmic scale: what is weaker is as good as nothing

# inches: a character's width and height, and what stands around a facet's lines
PITCH, LINE, TITLE, GAP, BAR, SIDE = 0.083, 0.175, 0.22, 0.10, 0.36, 0.06


@styled
def connectivity_sentence(
    data: Mapping[str, xr.Dataset], at: int, scale: Scale = "row", width: float = PAGE, ax: Axes | None = None
) -> Figure:
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
    facet = TITLE + LINE * len(lines) + GAP
    height = facet * len(names) + BAR
    figure, ax = sheet(ax, width, height)
    colours, norm = (DIVERGING, Normalize(-1, 1)) if signed else (STRENGTH, Normalize(0, 1))
    for k, name in enumerate(names):
        top = k * facet
        ax.text(SIDE, top + TITLE - 0.06, look(name).label, color=look(name).colour, fontweight="bold")
        # words are no formula, whatever dollar signs they have
        style: dict[str, Any] = {"ha": "right", "fontsize": 7, "parse_math": False}
        selected = data[name].isel(time=at)
        likeliest = zip(selected["prediction"].values, selected["probability"].values, strict=True)
        words = ",  ".join(f"{word} {100 * p:.0f} %" for word, p in likeliest)
        said = f"target: {selected['target'].item() or 'none'}    likeliest: {words}"
        ax.text(width - SIDE, top + TITLE - 0.06, said, **style)
        shades = frame.loc[frame["model"] == name, "shade"].to_numpy()
        for row, (start, stop) in enumerate(lines):
            y = top + TITLE + row * LINE
            across = SIDE + PITCH * np.arange(stop - start + 1)
            drawn: dict[str, Any] = {"cmap": colours, "norm": norm, "linewidth": 0}
            ax.pcolormesh(across, [y, y + LINE - 0.03], shades[None, start:stop], **drawn)
            for place in range(start, stop):
                _character(ax, SIDE + (place - start + 0.5) * PITCH, y, symbols[place], shades[place], place - at)
    _bar(ax, width, height, colours, norm, scale)
    return attach(figure, frame, {"connectivity": LIVE, "shade": LIVE})


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
    style: dict[str, Any] = {"fontsize": 7, "family": MONO, "color": colour, "parse_math": False}
    ax.text(x, y + 0.105, symbol.strip(), ha="center", va="baseline", **style)


def _bar(ax: Axes, width: float, height: float, colours: Colormap, norm: Normalize, scale: Scale) -> None:
    """What the shades mean."""
    low, high = float(norm.vmin or 0), float(norm.vmax or 1)
    left, top = width / 2 - 0.7, height - BAR + 0.06
    shades = np.linspace(low, high, 128)
    ax.pcolormesh(left + np.linspace(0, 1.4, 129), [top, top + 0.07], shades[None], cmap=colours, norm=norm)
    all_of = "of the largest of all"
    whose = {"row": "of its own largest", "log": f"{all_of}, logarithmic"}.get(scale, all_of)
    weakest = f"10$^{{-{DECADES}}}$ or less" if scale == "log" else f"{low:.0f}"
    ax.text(left - 0.05, top + 0.06, weakest, ha="right", va="baseline", fontsize=6)
    ax.text(left + 1.45, top + 0.06, f"1, connectivity as a share {whose}", va="baseline", fontsize=6)
