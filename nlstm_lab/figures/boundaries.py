"""Boundaries along a text: figures 3 and 4 of Hierarchical Multiscale RNNs (Chung, Ahn & Bengio 2016)."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.activations import MONO
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import NORMS, OPERATIONS, PAGE, glyph, sheet, styled

ROW = 90  # characters, as in the paper
BLOCKS = ListedColormap(["#000000", "#ffffff"])  # the paper's: white where a segment ends
CODES = ListedColormap([look.colour for look in OPERATIONS.values()])
SQUARES = (("#ffffff", "$z=1$: a segment ends"), ("#000000", "$z=0$"))
SHADES = ((to_hex(NORMS(0.0)), "smallest norm"), (to_hex(NORMS(1.0)), "largest norm"))

# inches
MARGIN, RIGHT, TEXT, BAND, GAP, APART, LINE, STRIP = 0.36, 0.05, 0.13, 0.095, 0.02, 0.03, 0.14, 0.04
KEY, LETTER = 0.15, 0.058  # a line of a key, and a letter of 7 points
NARROW, WIDE = 0.056, 0.12  # of a character's column


class Rows(NamedTuple):
    """Where a text is broken, and how it is placed: inches from the left, and of a character."""

    lines: list[tuple[int, int]]
    left: float
    pitch: float


@styled
def boundary_rows(
    data: xr.Dataset | Mapping[str, xr.Dataset], row: int | None = None, width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """Figure 3: a sequence in rows of so many steps, and under each z of every layer that has a detector.

    z is white where a segment ends, black where none does; soft boundaries are grey.

    Args:
        data: `lab.probes.boundaries(model, text)`; or several readings of one text by their names.
        row: Steps in a row; None for 90, as in the paper, or as many as the width has room for.
        width: Inches.

    Raises:
        UsageError: There is nothing to draw, or the width has no room for such a row.
    """
    readings = {"": data} if isinstance(data, xr.Dataset) else data
    first, *_ = readings.values()
    rows = _rows(first, row, width, MARGIN + 0.9 * LETTER * max(map(len, readings)))
    key = _flow(SQUARES, MARGIN, width)
    block = TEXT + sum((one.sizes["layer"] - 1) * (BAND + GAP) + APART for one in readings.values()) - APART + LINE
    top = KEY * (key[-1][1] + 1) + 0.05
    figure, ax = sheet(ax, width, top + block * len(rows.lines) - LINE + 0.03)
    _key(ax, SQUARES, key)
    for k, (start, stop) in enumerate(rows.lines):
        y = top + k * block
        _write(ax, first, start, stop, y, rows)
        y += TEXT
        for name, one in readings.items():
            upper = y
            for layer in reversed(one["layer"].values[:-1].tolist()):  # the highest layer on top, as in the paper
                _z(ax, one, layer, start, stop, y, rows)
                y += BAND + GAP
            middle = (upper + y - GAP) / 2
            ax.text(rows.left - MARGIN + 0.14, middle, name, ha="right", va="center_baseline", fontsize=7)
            y += APART
    if len(readings) == 1:
        return attach(figure, boundary_frame(first), {"z": LIVE, "norm": LIVE})
    frames = {name: boundary_frame(one)[["layer", "time", "symbol", "z"]] for name, one in readings.items()}
    frame = pd.concat(frames, names=["reading", None]).reset_index("reading")
    return attach(figure, frame[frame["layer"] < frame["layer"].max()], {"z": LIVE})


@styled
def hidden_norms(
    data: xr.Dataset,
    printed: Sequence[int] = (),
    row: int | None = None,
    width: float = PAGE,
    ax: Axes | None = None,
) -> Figure:
    """Figure 4: `boundary_rows` with the norm of every layer's hidden state as a heat map and the operation under it.

    Every layer's heat map reaches from its smallest norm, light, to its largest, dark, from its first update on;
    before, its state is zero and its map blank.

    Args:
        data: `lab.probes.boundaries(model, text)`.
        printed: How many updates a layer the paper counts, shown beside ours.
        row: Steps in a row; None for 90, as in the paper, or as many as the width has room for.
        width: Inches.

    Raises:
        UsageError: As for `boundary_rows`.
    """
    rows = _rows(data, row, width, MARGIN)
    layers = data["layer"].values.tolist()
    acts = data["operation"].values != list(OPERATIONS).index("COPY")
    norms = data["norm"].values.astype(float)
    began = acts.cumsum(0) > 0
    norms = np.where(began | ~began.any(0), norms, np.nan)  # of a layer without any update, all norms are 0
    low, high = np.nanmin(norms, 0), np.nanmax(norms, 0)
    scaled = (norms - low) / np.maximum(high - low, 1e-6)
    entries = (*SQUARES, *((look.colour, name) for name, look in OPERATIONS.items()), *SHADES)
    key, foot = _flow(entries, MARGIN, width), _foot(layers, low, high, acts.sum(0), printed, width)
    top = KEY * (key[-1][1] + 1) + 0.05
    block = TEXT + (len(layers) - 1) * (BAND + GAP) + 0.03 + len(layers) * (BAND + STRIP + GAP) + LINE
    figure, ax = sheet(ax, width, top + block * len(rows.lines) - LINE + 0.05 + KEY * len(foot))
    _key(ax, entries, key)
    for k, (start, stop) in enumerate(rows.lines):
        _write(ax, data, start, stop, top + k * block, rows)
        y = top + k * block + TEXT
        for layer in reversed(layers[:-1]):
            _z(ax, data, layer, start, stop, y, rows)
            y += BAND + GAP
        y += 0.03
        for layer in reversed(layers):
            codes = data["operation"].sel(layer=layer).values[start:stop]
            _band(ax, scaled[start:stop, layer - 1], y, BAND, rows, NORMS, 1)
            _band(ax, codes, y + BAND, STRIP, rows, CODES, len(OPERATIONS) - 1)
            _label(ax, y + BAND / 2, rf"$\|h^{layer}\|$", rows)
            y += BAND + STRIP + GAP
    for k, words in enumerate(foot):
        ax.text(MARGIN, y + 0.05 + KEY * (k + 0.5), words, va="center", fontsize=7)
    return attach(figure, boundary_frame(data), {"z": LIVE, "norm": LIVE})


def boundary_frame(data: xr.Dataset) -> pd.DataFrame:
    """What the figures show: a row for each layer and step."""
    names = np.array(list(OPERATIONS))
    frames = []
    for layer in data["layer"].values.tolist():
        one = data.sel(layer=layer)
        symbols = one["symbol"].values.astype(str) if "symbol" in one.coords else ""
        columns = {"layer": layer, "time": one["time"].values, "symbol": symbols}
        values = {"z": one["z"].values, "operation": names[one["operation"].values], "norm": one["norm"].values}
        frames.append(pd.DataFrame(columns | values))
    return pd.concat(frames, ignore_index=True)


def _rows(data: xr.Dataset, row: int | None, width: float, left: float) -> Rows:
    length, room = data.sizes["time"], width - left - RIGHT
    most = int(room / NARROW)
    if length < 1 or most < 1 or (row is not None and not 1 <= row <= most):
        asked = "a row" if row is None else f"a row of {row} steps"
        raise UsageError(f"{asked} of a sequence of {length} does not fit: {width:g} inches have room for {most} a row")
    row = min(length, row or min(ROW, most))
    lines = [(start, min(start + row, length)) for start in range(0, length, row)]
    return Rows(lines, left, min(room / row, WIDE))


def _write(ax: Axes, data: xr.Dataset, start: int, stop: int, y: float, rows: Rows) -> None:
    """The symbols of a row; of a sequence without symbols every tenth step."""
    drawn: dict[str, Any] = {"ha": "center", "va": "baseline", "fontsize": 6.6, "family": MONO}
    known = data["symbol"].values.astype(str) if "symbol" in data.coords else None
    for k in range(start, stop) if known is not None else range(-(-start // 10) * 10, stop, 10):
        words = str(k) if known is None else glyph(known[k])
        ax.text(rows.left + (k - start + 0.5) * rows.pitch, y + TEXT - 0.035, words, **drawn)


def _z(ax: Axes, data: xr.Dataset, layer: int, start: int, stop: int, y: float, rows: Rows) -> None:
    soft = data.attrs["boundary"] == "soft"
    _band(ax, data["z"].sel(layer=layer).values[start:stop], y, BAND, rows, "gray" if soft else BLOCKS, 1)
    _label(ax, y + BAND / 2, f"$z^{layer}$", rows)


def _label(ax: Axes, y: float, words: str, rows: Rows) -> None:
    ax.text(rows.left - 0.05, y, words, ha="right", va="center", fontsize=7)


def _band(
    ax: Axes, values: np.ndarray, y: float, height: float, rows: Rows, colours: str | Colormap, top: float
) -> None:
    """A strip of blocks, one a step, with a thin outline so that white ones are seen."""
    edges = rows.left + rows.pitch * np.arange(len(values) + 1)
    how: dict[str, Any] = {"cmap": colours, "vmin": 0, "vmax": top, "edgecolors": "#8c8c8c", "linewidth": 0.12}
    ax.pcolormesh(edges, [y, y + height], values[None], **how)
    frame: dict[str, Any] = {"fill": False, "edgecolor": "#606060", "linewidth": 0.35}
    ax.add_patch(Rectangle((rows.left, y), edges[-1] - rows.left, height, **frame))


def _flow(entries: Sequence[tuple[str, str]], left: float, width: float) -> list[tuple[float, int]]:
    """Where each entry of a key stands: its x, and its line."""
    places, x, line = list[tuple[float, int]](), left, 0
    for _, words in entries:
        wide = 0.16 + LETTER * len(words.replace("$", ""))
        if x > left and x + wide > width:
            x, line = left, line + 1
        places.append((x, line))
        x += wide + 0.14
    return places


def _key(ax: Axes, entries: Sequence[tuple[str, str]], places: Sequence[tuple[float, int]]) -> None:
    for (colour, words), (x, line) in zip(entries, places, strict=True):
        y = KEY * (line + 0.5)
        outline: dict[str, Any] = {"facecolor": colour, "edgecolor": "#606060", "linewidth": 0.35}
        ax.add_patch(Rectangle((x, y - 0.04), 0.1, 0.08, **outline))
        ax.text(x + 0.15, y, words, va="center", fontsize=7)


def _foot(
    layers: list[int], low: np.ndarray, high: np.ndarray, acts: np.ndarray, printed: Sequence[int], width: float
) -> list[str]:
    """Lines with the range of every layer's norm, and how many steps it did not COPY."""
    ranges = [f"layer {k}: {a:.2f}–{b:.2f}" for k, a, b in zip(layers, low, high, strict=True)]
    counts = [f"layer {k}: {count}" for k, count in zip(layers, acts.tolist(), strict=True)]
    counts = [f"{words} (paper {printed[k]})" if k < len(printed) else words for k, words in enumerate(counts)]
    parts = {"norm, blank before a first update": ranges, "steps with UPDATE or FLUSH": counts}
    room = int((width - MARGIN) / LETTER * 1.08)
    return [line for name, each in parts.items() for line in wrap(f"{name}: {', '.join(each)}", room)]
