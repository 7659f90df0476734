"""Handwriting in segments, and written by a network: figure 5 of Hierarchical Multiscale RNNs (Chung et al. 2016)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.plots import subplots
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import PAGE, styled

SEGMENTS = ("#0072b2", "#d55e00", "#009e73", "#a63a79", "#e69f00", "#56b4e9")  # in turn
INK = "#1c1c1c"


@styled
def handwriting_segments(written: xr.Dataset, layer: int = 2, width: float = PAGE) -> Figure:
    """Figure 5: a line of handwriting, each segment in another colour: by the lifted pen, and by z of a layer.

    The line is as wide as the page, so the two stand above each other instead of side by side.

    Args:
        written: `lab.probes.written(model, lines)`.
        layer: The layer, from 1.

    Raises:
        UsageError: The line has fewer than two points, or the layer has no detector.
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
        lines: By the setting's name, `lab.probes.pen(lab.probes.write(model, ...))` of each line: x, y and lifted, in
            the tablet's units.

    Raises:
        UsageError: There is nothing to draw.
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
