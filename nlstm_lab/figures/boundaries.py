"""Boundaries of texts and handwriting: figures 3 to 5 of Hierarchical Multiscale RNNs (Chung, Ahn & Bengio 2016)."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, ListedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

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
SHADES = ((to_hex(NORMS(0.0)), "smallest norm"), (to_hex(NORMS(1.0)), "largest norm"))

# inches
MARGIN, RIGHT, TEXT, BAND, GAP, APART, LINE, STRIP = 0.36, 0.05, 0.13, 0.095, 0.02, 0.03, 0.14, 0.04
KEY, LETTER = 0.15, 0.058  # a line of a key, and a letter of 7 points
NARROW, WIDE = 0.056, 0.12  # of a character's column


class Row(NamedTuple):
    """The steps of a row, and where it is drawn: inches from the left and from above, and of a character."""

    ax: Axes
    start: int
    stop: int
    left: float
    top: float
    pitch: float

    def band(
        self, values: np.ndarray, y: float, height: float, colours: str | Colormap, top: float, words: str = ""
    ) -> None:
        """A strip of blocks, one a step, with a thin outline so that white ones are seen; what it is at its left."""
        edges = self.left + self.pitch * np.arange(self.stop - self.start + 1)
        how: dict[str, Any] = {"cmap": colours, "vmin": 0, "vmax": top, "edgecolors": "#8c8c8c", "linewidth": 0.12}
        self.ax.pcolormesh(edges, [y, y + height], values[None, self.start : self.stop], **how)
        frame: dict[str, Any] = {"fill": False, "edgecolor": "#606060", "linewidth": 0.35}
        self.ax.add_patch(Rectangle((self.left, y), edges[-1] - self.left, height, **frame))
        if words:
            write(self.ax, self.left - 0.05, y + BAND / 2, words, "right", va="center")

    def boundaries(self, data: xr.Dataset, y: float) -> float:
        """z of every layer that has a detector, the highest on top, as in the paper; where the next strip begins."""
        for layer in reversed(data["layer"].values[:-1].tolist()):
            colours = "gray" if data.attrs["boundary"] == "soft" else BLOCKS
            self.band(data["z"].sel(layer=layer).values, y, BAND, colours, 1, f"$z^{layer}$")
            y += BAND + GAP
        return y


@styled
def boundary_rows(data: xr.Dataset | Mapping[str, xr.Dataset], width: float = PAGE) -> Figure:
    """Figure 3: a sequence in rows of at most 90 steps, and under each z of every layer that has a detector.

    z is white where a segment ends, black where none does; soft boundaries are grey.

    Args:
        data: `lab.probes.boundaries(model, text)`; or several readings of one text by their names.
    """
    readings = {"": data} if isinstance(data, xr.Dataset) else data
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
    if len(readings) == 1:
        return attach(figure, boundary_frame(first), {"z": LIVE, "norm": LIVE})
    frames = {name: boundary_frame(one)[["layer", "time", "symbol", "z"]] for name, one in readings.items()}
    frame = pd.concat(frames, names=["reading", None]).reset_index("reading")
    return attach(figure, frame[frame["layer"] < frame["layer"].max()], {"z": LIVE})


@styled
def hidden_norms(data: xr.Dataset, printed: Sequence[int] = (), width: float = PAGE) -> Figure:
    """Figure 4: `boundary_rows` with the norm of every layer's hidden state as a heat map and the operation under it.

    A heat map reaches from the layer's smallest norm, light, to its largest, dark; it is blank before its first update.

    Args:
        data: `lab.probes.boundaries(model, text)`.
        printed: How many updates a layer the paper counts, shown beside ours.
    """
    layers = data["layer"].values.tolist()
    acts = data["operation"].values != list(OPERATIONS).index("COPY")
    norms = data["norm"].values.astype(float)
    began = acts.cumsum(0) > 0
    norms = np.where(began | ~began.any(0), norms, np.nan)  # of a layer without any update, all norms are 0
    low, high = np.nanmin(norms, 0), np.nanmax(norms, 0)
    scaled = (norms - low) / np.maximum(high - low, 1e-6)
    ranges = [f"layer {k}: {a:.2f}–{b:.2f}" for k, a, b in zip(layers, low, high, strict=True)]
    counts = [f"layer {k}: {count}" for k, count in zip(layers, acts.sum(0).tolist(), strict=True)]
    counts = [f"{words} (paper {printed[k]})" if k < len(printed) else words for k, words in enumerate(counts)]
    parts = {"norm, blank before a first update": ranges, "steps with UPDATE or FLUSH": counts}
    room = max(int((width - MARGIN) / LETTER * 1.08), 1)
    foot = [line for name, each in parts.items() for line in wrap(f"{name}: {', '.join(each)}", room)]
    entries = (*SQUARES, *((look.colour, name) for name, look in OPERATIONS.items()), *SHADES)
    block = (len(layers) - 1) * (BAND + GAP) + 0.03 + len(layers) * (BAND + STRIP + GAP)
    figure, rows = _rows(data, width, MARGIN, entries, block, foot)
    for line in rows:
        y = line.boundaries(data, line.top) + 0.03
        for layer in reversed(layers):
            line.band(scaled[:, layer - 1], y, BAND, NORMS, 1, rf"$\|h^{layer}\|$")
            line.band(data["operation"].sel(layer=layer).values, y + BAND, STRIP, CODES, len(OPERATIONS) - 1)
            y += BAND + STRIP + GAP
    return attach(figure, boundary_frame(data), {"z": LIVE, "norm": LIVE})


def boundary_frame(data: xr.Dataset) -> pd.DataFrame:
    """What the figures show: a row for each layer and step."""
    frames = []
    for layer in data["layer"].values.tolist():
        one = data.sel(layer=layer)
        operation = np.array(list(OPERATIONS))[one["operation"].values]
        values = {"z": one["z"].values, "operation": operation, "norm": one["norm"].values}
        frames.append(pd.DataFrame({"layer": layer, "time": one["time"].values, "symbol": symbols_of(data)} | values))
    return pd.concat(frames, ignore_index=True)


def _rows(
    data: xr.Dataset, width: float, left: float, entries: Sequence[Entry], block: float, foot: Sequence[str] = ()
) -> tuple[Figure, list[Row]]:
    """A sheet with a key above, the symbols of every row (of a sequence without them every tenth step), and a foot."""
    length, room = data.sizes["time"], width - left - RIGHT
    most = int(room / NARROW)
    if length < 1 or most < 1:
        raise UsageError(f"a sequence of {length} steps has no room in {width:g} inches")
    row = min(length, ROW, most)
    pitch, starts, key = min(room / row, WIDE), range(0, length, row), _key(entries, width)
    top, tall = KEY * (key[-1][1] + 1) + 0.05, TEXT + block + LINE
    figure, ax = sheet(width, top + tall * len(starts) - LINE + 0.05 + KEY * len(foot))
    for (colour, words), (x, line) in zip(entries, key, strict=True):
        outline: dict[str, Any] = {"facecolor": colour, "edgecolor": "#606060", "linewidth": 0.35}
        ax.add_patch(Rectangle((x, KEY * (line + 0.5) - 0.04), 0.1, 0.08, **outline))
        write(ax, x + 0.15, KEY * (line + 0.5), words, va="center")
    known = symbols_of(data)
    rows = []
    for k, start in enumerate(starts):
        stop, y = min(start + row, length), top + tall * k
        for step, words in ticks(known, start, stop).items():
            write(ax, left + (step - start + 0.5) * pitch, y + TEXT - 0.035, words, "center", 6.6, family=MONO)
        rows.append(Row(ax, start, stop, left, y + TEXT, pitch))
    for k, words in enumerate(foot):
        write(ax, MARGIN, y + TEXT + block + 0.05 + KEY * (k + 0.5), words, va="center")
    return figure, rows


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
INK = "#1c1c1c"


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
    threshold = written.attrs["threshold"]
    z = written["z"].sel(layer=layer).values > (0.5 if threshold is None else threshold)
    x, y = (written[name].values.astype(float) for name in ("x", "y"))
    by_pen, by_z = (1 + int(ends[:-1].sum()) for ends in (lifted, z))  # at the last point nothing begins
    titles = (f"segments by the lifted pen: {by_pen}", f"segments by $z^{layer}$: {by_z}, of {len(z)} points")
    tall = max((y.max() - y.min()) / max(x.max() - x.min(), 1) * (width - 0.1), 0.2)
    figure, axes = subplots(2, 1, width=width, height=2 * (tall + 0.3), sharex=True, sharey=True)
    for panel, ends, title in zip(axes[:, 0], (lifted, z), titles, strict=True):
        _path(panel, x, y, lifted, np.concatenate([[0], np.cumsum(ends)[:-1]]))
        panel.set_title(title, pad=3)
        panel.set_aspect("equal")
        panel.axis("off")
    axes[0, 0].invert_yaxis()  # the tablet's y grows downward; the axes are shared
    frame = pd.DataFrame({"x": x, "y": y, "lifted": lifted.astype(int), "z": z.astype(int)})
    return attach(figure, frame)


def _path(panel: Axes, x: NDArray[np.float64], y: NDArray[np.float64], lifted: NDArray[np.bool_],
          segment: NDArray[np.int_] | None) -> None:  # fmt: skip
    """What the pen drew: a stroke from each point to the next, none where it was lifted between; dots stay dots."""
    points = np.stack([x, y], 1)
    drawn = ~lifted[:-1]
    strokes = np.stack([points[:-1], points[1:]], 1)[drawn]
    colours = INK if segment is None else [SEGMENTS[k % len(SEGMENTS)] for k in segment[1:][drawn]]
    panel.add_collection(LineCollection(list(strokes), colors=colours, linewidths=0.9, capstyle="round"))
    panel.update_datalim(points)
    panel.autoscale_view()


@styled
def handwriting_samples(lines: Mapping[str, Sequence[Mapping[str, NDArray[np.int_]]]], width: float = PAGE) -> Figure:
    """Lines that a network wrote, all at one scale: a panel for each setting (a temperature), its lines stacked.

    Args:
        lines: By the setting's name, `lab.probes.pen(lab.probes.write(model, ...))` of each line.
    """
    if not lines or not all(lines.values()):
        raise UsageError("there is no line of handwriting to draw")
    placed = {setting: _below_each_other(written) for setting, written in lines.items()}
    # a dot, too, is as wide and as tall as the tablet's unit
    across, down = np.array([np.concatenate(drawn).max(0).clip(1) for drawn in placed.values()]).T
    edge = 0.01 * across.sum()  # or a stroke would lose half its breadth there
    across, tall = across + 2 * edge, down.max() + 2 * edge
    height = min(0.3 + (width - 0.2) * tall / across.sum(), width)
    figure, axes = subplots(1, len(lines), width=width, height=height, width_ratios=across)
    frames = []
    for panel, (setting, drawn), wide in zip(axes[0], placed.items(), across, strict=True):
        for k, (points, line) in enumerate(zip(drawn, lines[setting], strict=True)):
            _path(panel, points[:, 0], points[:, 1], line["lifted"] > 0, None)
            frames.append(pd.DataFrame({"setting": setting, "line": k, **line}))
        panel.set_title(setting, pad=2)
        panel.set_aspect("equal", anchor="NW")
        panel.set(xlim=(-edge, wide - edge), ylim=(tall - edge, -edge))
        panel.axis("off")
    return attach(figure, pd.concat(frames, ignore_index=True), {"x": 0, "y": 0})


def _below_each_other(written: Sequence[Mapping[str, NDArray[np.int_]]]) -> list[NDArray[np.float64]]:
    """The points [n, 2] of every line, from 0 at the left, each line below the one before."""
    drawn, down = [], 0.0
    for line in written:
        points = np.stack([line["x"], line["y"]], 1).astype(float)
        drawn.append(points - points.min(0) + (0.0, down))
        down += 1.25 * max(float(np.ptp(points[:, 1])), 1.0)
    return drawn
