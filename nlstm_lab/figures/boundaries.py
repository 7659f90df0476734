"""Boundaries along a text: figures 3 and 4 of Hierarchical Multiscale RNNs (Chung, Ahn & Bengio 2016)."""

from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.activations import MONO
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import NORMS, OPERATIONS, PAGE, glyph, sheet, styled

ROW = 90  # characters, as in the paper
BLOCKS = ListedColormap(["#000000", "#ffffff"])  # the paper's: white where a segment ends
CODES = ListedColormap([look.colour for look in OPERATIONS.values()])

# inches
MARGIN, RIGHT, TEXT, BAND, GAP, APART, LINE = 0.36, 0.05, 0.13, 0.085, 0.02, 0.03, 0.14
STRIP, KEY = 0.04, 0.14


@styled
def boundary_rows(
    data: xr.Dataset | Mapping[str, xr.Dataset], row: int = ROW, width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """Figure 3: a text in rows of so many characters, and under each z of every layer that has a detector.

    z is white where a segment ends, black where none does; soft boundaries are grey.

    Args:
        data: `lab.probes.boundaries(model, text)`; or several readings of one text by their names, which get letters.

    Raises:
        UsageError: The text is shorter than a row, or there is no text at all.
    """
    readings = {"": data} if isinstance(data, xr.Dataset) else data
    first, *_ = readings.values()
    lines = _lines(first, row)
    bands = [
        (reading, one, layer)
        for reading, one in enumerate(readings.values())
        for layer in reversed(one["layer"].values[:-1].tolist())  # the highest layer on top, as in the paper
    ]
    letters = ascii_lowercase if len(readings) > 1 else [""]
    block = TEXT + len(bands) * (BAND + GAP) + APART * (len(readings) - 1) + LINE
    figure, ax = sheet(ax, width, block * len(lines) + KEY + 0.16 * (len(readings) > 1))
    pitch = (width - MARGIN - RIGHT) / row
    for k, (start, stop) in enumerate(lines):
        y = k * block
        _write(ax, first, start, stop, y, pitch)
        for place, (reading, one, layer) in enumerate(bands):
            top = y + TEXT + place * (BAND + GAP) + APART * reading
            _z(ax, one, layer, start, stop, top, pitch, letters[reading])
    _squares(ax, MARGIN, block * len(lines) + 0.02)
    if len(readings) == 1:
        return attach(figure, boundary_frame(first), {"z": LIVE, "norm": LIVE})
    words = "; ".join(f"{letter}: {name}" for letter, name in zip(ascii_lowercase, readings, strict=False))
    ax.text(MARGIN, block * len(lines) + 0.18, words, va="center", fontsize=6.5)
    named = {name: boundary_frame(one)[["layer", "time", "symbol", "z"]] for name, one in readings.items()}
    frame = pd.concat(named, names=["reading", None]).reset_index("reading")
    return attach(figure, frame[frame["layer"] < frame["layer"].max()], {"z": LIVE})


@styled
def hidden_norms(
    data: xr.Dataset,
    printed: Sequence[int] = (),
    row: int = ROW,
    width: float = PAGE,
    ax: Axes | None = None,
) -> Figure:
    """Figure 4: `boundary_rows` with the norm of every layer's hidden state as a heat map and the operation under it.

    Every layer's heat map reaches from its smallest norm, light, to its largest, dark, from its first update on;
    before, its state is zero and its map blank.

    Args:
        data: `lab.probes.boundaries(model, text)`.
        printed: How many updates a layer the paper counts, shown beside ours.

    Raises:
        UsageError: As for `boundary_rows`.
    """
    lines = _lines(data, row)
    layers = data["layer"].values.tolist()
    block = TEXT + (len(layers) - 1) * (BAND + GAP) + 0.03 + len(layers) * (BAND + STRIP + GAP) + LINE
    height = block * len(lines) + KEY + 0.16 * (1 + bool(printed))
    figure, ax = sheet(ax, width, height)
    pitch = (width - MARGIN - RIGHT) / row
    norms = data["norm"].values.astype(float)
    began = (data["operation"].values != list(OPERATIONS).index("COPY")).cumsum(0) > 0
    norms = np.where(began | ~began.any(0), norms, np.nan)  # of a layer without any update, all norms are 0
    low, high = np.nanmin(norms, 0), np.nanmax(norms, 0)
    scaled = (norms - low) / np.maximum(high - low, 1e-6)
    for k, (start, stop) in enumerate(lines):
        _write(ax, data, start, stop, k * block, pitch)
        y = k * block + TEXT
        for layer in reversed(layers[:-1]):
            _z(ax, data, layer, start, stop, y, pitch)
            y += BAND + GAP
        y += 0.03
        for layer in reversed(layers):
            codes = data["operation"].sel(layer=layer).values[start:stop]
            _band(ax, scaled[start:stop, layer - 1], y, BAND, pitch, NORMS, 1)
            _band(ax, codes, y + BAND, STRIP, pitch, CODES, len(OPERATIONS) - 1)
            _label(ax, y + BAND / 2, rf"$\|h^{layer}\|$")
            y += BAND + STRIP + GAP
    ends = zip(layers, low.tolist(), high.tolist(), strict=True)
    ranges = {layer: f"{a:.2f}" + (f"–{b:.2f}" if b - a > 0.005 else "") for layer, a, b in ends}
    _foot(ax, height, update_counts(data), printed, ranges)
    return attach(figure, boundary_frame(data), {"z": LIVE, "norm": LIVE})


def update_counts(data: xr.Dataset) -> dict[int, int]:
    """How many steps of a text each layer did not COPY: its UPDATEs and FLUSHes.

    Args:
        data: `lab.probes.boundaries(model, text)`.

    Returns:
        The counts by layer, from 1.
    """
    acts = data["operation"].values != list(OPERATIONS).index("COPY")
    return dict(zip(data["layer"].values.tolist(), acts.sum(0).tolist(), strict=True))


def boundary_frame(data: xr.Dataset) -> pd.DataFrame:
    """What the figures show: a row for each layer and character."""
    names = np.array(list(OPERATIONS))
    frames = []
    for layer in data["layer"].values.tolist():
        one = data.sel(layer=layer)
        columns = {"layer": layer, "time": one["time"].values, "symbol": one["symbol"].values.astype(str)}
        values = {"z": one["z"].values, "operation": names[one["operation"].values], "norm": one["norm"].values}
        frames.append(pd.DataFrame(columns | values))
    return pd.concat(frames, ignore_index=True)


def _lines(data: xr.Dataset, row: int) -> list[tuple[int, int]]:
    if "symbol" not in data.coords:
        raise UsageError("these boundaries belong to no text: draw those of handwriting with `handwriting_segments`")
    length = data.sizes["time"]
    if row < 1 or length < row:
        raise UsageError(f"a text of {length} characters fills no row of {row}: read a longer one, or set `row`")
    return [(start, min(start + row, length)) for start in range(0, length, row)]


def _write(ax: Axes, data: xr.Dataset, start: int, stop: int, y: float, pitch: float) -> None:
    for k, symbol in enumerate(data["symbol"].values[start:stop].astype(str)):
        place = (MARGIN + (k + 0.5) * pitch, y + TEXT - 0.035)
        ax.text(*place, glyph(symbol), ha="center", va="baseline", fontsize=6.6, family=MONO)


def _z(ax: Axes, data: xr.Dataset, layer: int, start: int, stop: int, y: float, pitch: float, letter: str = "") -> None:
    z = data["z"].sel(layer=layer).values[start:stop]
    soft = data.attrs["boundary"] == "soft"
    _band(ax, z, y, BAND, pitch, "gray" if soft else BLOCKS, 1)
    _label(ax, y + BAND / 2, f"{letter} $z^{layer}$".strip())


def _label(ax: Axes, y: float, words: str) -> None:
    ax.text(MARGIN - 0.05, y, words, ha="right", va="center", fontsize=6.5)


def _band(
    ax: Axes, values: np.ndarray, y: float, height: float, pitch: float, colours: str | Colormap, top: float
) -> None:
    """A strip of blocks, one a character, with a thin outline so that white ones are seen."""
    edges = MARGIN + pitch * np.arange(len(values) + 1)
    how: dict[str, Any] = {"cmap": colours, "vmin": 0, "vmax": top, "edgecolors": "#8c8c8c", "linewidth": 0.12}
    ax.pcolormesh(edges, [y, y + height], values[None], **how)
    ax.add_patch(Rectangle((MARGIN, y), edges[-1] - MARGIN, height, fill=False, edgecolor="#606060", linewidth=0.35))


def _squares(ax: Axes, x: float, y: float) -> float:
    """The key of the boundaries; returns where it ends."""
    for fill, words, wide in (("white", "$z=1$: a segment ends", 1.3), ("black", "$z=0$", 0.52)):
        ax.add_patch(Rectangle((x, y - 0.04), 0.08, 0.08, facecolor=fill, edgecolor="#606060", linewidth=0.35))
        ax.text(x + 0.12, y, words, va="center", fontsize=6.5)
        x += wide
    return x


def _foot(ax: Axes, height: float, counts: Mapping[int, int], printed: Sequence[int], norms: dict[int, str]) -> None:
    """Boundaries and operations by their colours, the shades with every layer's range, and the updates a layer."""
    y = height - 0.16 * (1 + bool(printed)) - KEY / 2
    x = _squares(ax, MARGIN, y)
    for name, look in OPERATIONS.items():
        ax.add_patch(Rectangle((x, y - 0.02), 0.16, 0.04, facecolor=look.colour, edgecolor="#606060", linewidth=0.35))
        ax.text(x + 0.2, y, name, va="center", fontsize=6.5)
        x += 0.68
    shades = np.linspace(0, 1, 65)
    ax.pcolormesh(x + 0.4 * np.linspace(0, 1, 66), [y - 0.04, y + 0.04], shades[None], cmap=NORMS, linewidth=0)
    ax.text(x + 0.46, y, "norm, blank before a first update", va="center", fontsize=6.5)
    paper = dict(zip(counts, printed, strict=False))
    acts = {layer: f"{count}" + (f" (paper {paper[layer]})" if paper else "") for layer, count in counts.items()}
    parts = {"norm": norms, "steps with UPDATE or FLUSH": acts}
    by_layer = {name: ", ".join(f"layer {k}: {words}" for k, words in each.items()) for name, each in parts.items()}
    texts = [f"{name}: {words}" for name, words in by_layer.items()]
    for row, words in enumerate(texts if printed else ["; ".join(texts)], start=1):
        ax.text(MARGIN, y + 0.16 * row, words, va="center", fontsize=6.5)
