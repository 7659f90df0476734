"""Boundaries of texts and handwriting: figures 3 to 5 of Hierarchical Multiscale RNNs (Chung, Ahn & Bengio 2016)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, ListedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.activations import symbols_of, ticks
from nlstm_lab.figures.plots import subplots
from nlstm_lab.figures.saving import LIVE, attach
from nlstm_lab.figures.style import MONO, NORMS, OPERATIONS, PAGE, sheet, styled, write

Entry = tuple[str, str]  # of a key: colour and words
ROW = 90  # characters, as in the paper
BLOCKS = ListedColormap(["#000000", "#ffffff"])  # the paper's: white where a segment ends
CODES = ListedColormap([look.colour for look in OPERATIONS.values()])
SQUARES = (("#ffffff", "$z=1$: a segment ends"), ("#000000", "$z=0$"))
NONE = "#cfe6d4"  # neither a norm nor a boundary
SHADES = (to_hex(NORMS(0.0)), "layer's least norm"), (to_hex(NORMS(1.0)), "largest"), (NONE, "none yet")

# inches
MARGIN, RIGHT, TEXT, BAND, GAP, APART, LINE, STRIP = 0.36, 0.05, 0.13, 0.095, 0.02, 0.03, 0.14, 0.04
KEY, LETTER = 0.15, 0.058  # a line of a key, and a letter of 7 points
NARROW, WIDE = 0.056, 0.12  # of a character's column


class TextRow(NamedTuple):
    """A row of steps, and where it is drawn: inches from the left between steps, and from above."""

    ax: Axes
    steps: slice
    edges: np.ndarray
    top: float

    def band(
        self, values: xr.DataArray, y: float, colours: str | Colormap, top: float, words: str = "", height: float = BAND
    ) -> float:
        """A strip of blocks, one a step, with a thin outline so that white ones are seen; where the next begins."""
        how: dict[str, Any] = {"cmap": colours, "vmin": 0, "vmax": top, "edgecolors": "#8c8c8c", "linewidth": 0.12}
        self.ax.pcolormesh(self.edges, [y, y + height], values.values[None, self.steps], **how)
        _outlined(self.ax, self.edges[0], y, self.edges[-1] - self.edges[0], height)
        if words:
            write(self.ax, self.edges[0] - 0.05, y + BAND / 2, words, "right", va="center")
        return y + height

    def boundaries(self, data: xr.Dataset, y: float) -> float:
        """z of every layer that has a detector, the highest on top, as in the paper; where the next strip begins."""
        for layer in reversed(data["layer"].values[:-1].tolist()):
            colours = "gray" if data.attrs["boundary"] == "soft" else BLOCKS
            y = self.band(data["z"].sel(layer=layer), y, colours, 1, f"$z^{layer}$") + GAP
        return y


@styled
def boundary_rows(data: xr.Dataset | Mapping[str, xr.Dataset], width: float = PAGE) -> Figure:
    """Figure 3: a sequence in rows of at most 90 steps, and under each z of every layer that has a detector.

    z is white where a segment ends, black where none does; soft boundaries are grey.

    Args:
        data: `lab.probes.boundaries(model, text)`; or several readings of one text by their names.
    """
    readings = {"": data} if isinstance(data, xr.Dataset) else data
    frames = {name: boundary_frame(one)[["layer", "time", "symbol", "z"]] for name, one in readings.items()}
    first, *_ = readings.values()
    left = MARGIN + 0.9 * LETTER * max(map(len, readings))
    block = sum((one.sizes["layer"] - 1) * (BAND + GAP) + APART for one in readings.values()) - APART
    figure, rows = _rows(first, width, left, SQUARES, block)
    for line in rows:
        y = line.top
        for name, one in readings.items():
            below = line.boundaries(one, y)
            middle = (y + below - GAP) / 2
            write(line.ax, left - MARGIN + 0.14, middle, name, "right", va="center_baseline")
            y = below + APART
    frame = pd.concat(frames, names=["reading", None]).reset_index("reading")
    return attach(figure, frame[frame["layer"] < frame["layer"].max()], {"z": LIVE})


@styled
def hidden_norms(data: xr.Dataset, printed: Sequence[int] = (), width: float = PAGE) -> Figure:
    """Figure 4: `boundary_rows` with the norm of every layer's hidden state as a heat map and the operation under it.

    A heat map reaches from the layer's smallest norm, light, to its largest, dark; it is green before its first update.

    Args:
        data: `lab.probes.boundaries(model, text)`.
        printed: How many updates a layer the paper counts, shown beside ours.
    """
    frame, layers = boundary_frame(data), data["layer"].values.tolist()
    acts = data["operation"] != list(OPERATIONS).index("COPY")
    began = acts.cumsum("time") > 0
    norms = data["norm"].astype(float).where(began | ~began.any("time"))  # without any update all norms are 0
    low, high = norms.min("time"), norms.max("time")
    scaled = (norms - low) / (high - low).clip(1e-6)
    found = zip(layers, low.values, high.values, acts.sum("time").values, strict=True)
    foot = []
    for k, a, b, count in found:
        ends, often = dict.fromkeys((f"{a:.2f}", f"{b:.2f}")), "once" if count == 1 else f"{count} times"
        foot.append(f"layer {k}: norm {'–'.join(ends)}, {often} UPDATE or FLUSH")
    foot[: len(printed)] = [f"{words} (paper {n})" for words, n in zip(foot, printed, strict=False)]
    entries = (*SQUARES, *((look.colour, name) for name, look in OPERATIONS.items()), *SHADES)
    block = (len(layers) - 1) * (BAND + GAP) + 0.03 + len(layers) * (BAND + STRIP + GAP)
    figure, rows = _rows(data, width, MARGIN, entries, block, foot)
    for line in rows:
        y = line.boundaries(data, line.top) + 0.03
        for layer in reversed(layers):
            y = line.band(scaled.sel(layer=layer), y, NORMS.with_extremes(bad=NONE), 1, rf"$\|h^{layer}\|$")
            codes = data["operation"].sel(layer=layer)
            y = line.band(codes, y, CODES, len(OPERATIONS) - 1, height=STRIP) + GAP
    return attach(figure, frame, {"z": LIVE, "norm": LIVE})


def boundary_frame(data: xr.Dataset) -> pd.DataFrame:
    """What the figures show: a row for each layer and step."""
    if "operation" not in data:
        raise UsageError("data must be lab.probes.boundaries(model, text), with z, operation and norm")
    named = np.array(list(OPERATIONS))[data["operation"].values]
    data = data.assign(operation=(("time", "layer"), named), symbol=("time", symbols_of(data)))
    frame = data.to_dataframe(["layer", "time"]).reset_index()
    return frame[["layer", "time", "symbol", "z", "operation", "norm"]]


def _rows(
    data: xr.Dataset, width: float, left: float, entries: Sequence[Entry], block: float, foot: Sequence[str] = ()
) -> tuple[Figure, list[TextRow]]:
    """A sheet with a key above, the symbols of every row (of a sequence without them every tenth step), and a foot."""
    length, room = data.sizes["time"], width - left - RIGHT
    if min(length, most := int(room / NARROW)) < 1:
        raise UsageError(f"a sequence of {length} steps has no room in {width:g} inches")
    row = min(length, ROW, most)
    pitch, starts, key = min(room / row, WIDE), range(0, length, row), _key(entries, width)
    top, tall = KEY * (key[-1][1] + 1) + 0.05, TEXT + block + LINE
    end = top + tall * len(starts) - LINE + 0.05
    figure, ax = sheet(width, end + KEY * len(foot))
    for (colour, words), (x, line) in zip(entries, key, strict=True):
        _outlined(ax, x, KEY * (line + 0.5) - 0.04, 0.1, 0.08, colour)
        write(ax, x + 0.15, KEY * (line + 0.5), words, va="center")
    known, rows = symbols_of(data), []
    for k, start in enumerate(starts):
        stop, y = min(start + row, length), top + tall * k
        for step, words in ticks(known, data["time"].values, start, stop).items():
            write(ax, left + (step - start + 0.5) * pitch, y + TEXT - 0.035, words, "center", 6.6, family=MONO)
        rows.append(TextRow(ax, slice(start, stop), left + pitch * np.arange(stop - start + 1), y + TEXT))
    for k, words in enumerate(foot):
        write(ax, MARGIN, end + KEY * (k + 0.5), words, va="center")
    return figure, rows


def _outlined(ax: Axes, x: float, y: float, wide: float, tall: float, colour: str = "") -> None:
    how: dict[str, Any] = {"facecolor": colour} if colour else {"fill": False}
    ax.add_patch(Rectangle((x, y), wide, tall, edgecolor="#606060", linewidth=0.35, **how))


def _key(entries: Sequence[Entry], width: float) -> list[tuple[float, int]]:
    """Where each entry of a key stands: its x, and its line."""
    places, x, line = list[tuple[float, int]](), MARGIN, 0
    for _, words in entries:
        wide = 0.16 + LETTER * len(words.replace("$", ""))
        if x > MARGIN and x + wide > width:
            x, line = MARGIN, line + 1
        places.append((x, line))
        x += wide + 0.14
    return places


SEGMENTS = ("#0072b2", "#d55e00", "#009e73", "#a63a79", "#e69f00", "#56b4e9")  # in turn


@styled
def handwriting_segments(written: xr.Dataset, layer: int = 2, width: float = PAGE) -> Figure:
    """Figure 5: a line of handwriting, each segment in another colour: by the lifted pen, and below by z of a layer.

    Args:
        written: `lab.probes.written(model, lines)`.
        layer: The layer, from 1; one that has a detector.
    """
    if written.sizes["time"] < 2:
        raise UsageError("a line with a single point has no segments: choose a longer one")
    if layer not in written["layer"].values[:-1]:
        raise UsageError(f"layer {layer} has no detector; layers 1 to {written.sizes['layer'] - 1} have one")
    lifted = written["lifted"].values > 0
    z = written["z"].sel(layer=layer).values > written.attrs["threshold"]
    points = np.stack([written["x"], written["y"]], 1).astype(float)
    by_pen, by_z = (1 + int(ends[:-1].sum()) for ends in (lifted, z))  # at the last point nothing begins
    titles = (f"segments by the lifted pen: {by_pen}", f"segments by $z^{layer}$: {by_z}, of {len(z)} points")
    across, down = np.ptp(points, 0)
    tall = max(down / max(across, 1) * (width - 0.1), 0.2)
    figure, axes = subplots(2, 1, width=width, height=2 * (tall + 0.3), sharex=True, sharey=True)
    drawn = ~lifted[:-1]  # a stroke from each point to the next, none where the pen was lifted between
    strokes = np.stack([points[:-1], points[1:]], 1)[drawn]
    for panel, ends, title in zip(axes[:, 0], (lifted, z), titles, strict=True):
        colours = [SEGMENTS[k % len(SEGMENTS)] for k in np.cumsum(ends[:-1])[drawn]]
        panel.add_collection(LineCollection(list(strokes), colors=colours, linewidths=0.9, capstyle="round"))
        panel.update_datalim(points)
        panel.autoscale_view()
        panel.set_title(title, pad=3)
        panel.set_aspect("equal")
        panel.axis("off")
    axes[0, 0].invert_yaxis()  # the tablet's y grows downward; the axes are shared
    frame = pd.DataFrame(points, columns=["x", "y"])
    return attach(figure, frame.assign(lifted=lifted.astype(int), z=z.astype(int)))
