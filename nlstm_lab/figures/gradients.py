"""Memorization: the unrolled network, as dark as the gradient that is left of it (Madsen's article), measured."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.sheets import Point
from nlstm_lab.figures.style import COLUMN, PAGE, STRENGTH, look, shades, sheet, styled, write

DECADES = 8  # of the unrolled network's shades: what is weaker is white
TITLE, ROW, RADIUS = 0.4, 0.36, 0.1  # inches: above a network, of a row, and of a state
DISTANCES = (0, 1, 2, 4, 8, 16, 32, 64)  # neighbours alone would end where the units begin to part


@styled
def unrolled_networks(
    means: pd.DataFrame,
    models: Sequence[str],
    distances: Sequence[int] = DISTANCES,
    width: float = COLUMN,
) -> Figure:
    """Networks unrolled back from their last step: each h and each input as dark as the gradient that reaches it.

    They stand below each other in a column, side by side on a page's width.

    The gradient is that of the last hidden state. A shade is a logarithm over eight decades, relative to the same row's
    at distance 0, so that rows and networks are compared by how they fade.

    Args:
        means: `lab.probes.gather(networks, lab.probes.gradients, sequences)`, of one condition.
        models: The networks' names in `means`, from top to bottom.
        distances: The steps that are drawn, 0 first; dotted arrows stand for those between.

    Raises:
        UsageError: There is no such model or distance, or there are several conditions.
    """
    frames = [_faded(means, model, distances) for model in models]
    abreast = len(models) if width > PAGE - 0.5 else 1
    wide, rows = width / abreast, max(frame["where"].nunique() for frame in frames)
    tall = TITLE + ROW * rows + 0.3
    height = tall * -(-len(models) // abreast) + 0.2
    figure, ax = sheet(width, height)
    for k, (model, frame) in enumerate(zip(models, frames, strict=True)):
        left, top = k % abreast * wide, k // abreast * tall
        write(ax, left + 0.04, top + 0.13, ", ".join([look(model).label, *frame.attrs["conditions"]]))
        _unrolled(ax, frame, distances, left + 0.25, top + TITLE, (wide - 0.3) / len(distances))
    words = "1, gradient relative to the same row's at $t$"
    shades(ax, 0.34, height - 0.14, STRENGTH, Normalize(-DECADES, 0), f"10$^{{-{DECADES}}}$", words, 0.7)
    return attach(figure, pd.concat(frames, ignore_index=True))


def _faded(means: pd.DataFrame, model: str, distances: Sequence[int]) -> pd.DataFrame:
    """The gradients of one network, each relative to the same row's at distance 0: where, lag, value, model."""
    frame = means[(means["model"] == model) & means["lag"].isin(distances)]
    if frame.empty or frame["lag"].nunique() < len(distances):
        raise UsageError(f"there is no gradient of {model!r} at all distances to {max(distances)}: choose nearer ones")
    conditions = list(frame["condition"].unique()) if "condition" in frame else []
    if len(conditions) > 1:
        raise UsageError(f"choose one condition: there are {', '.join(conditions)}")
    frame = frame.groupby(["where", "lag"])["value"].mean().reset_index()
    nearest = frame[frame["lag"] == 0].set_index("where")["value"]
    frame["value"] -= frame["where"].map(nearest)
    frame.attrs["conditions"] = conditions
    return frame.assign(model=model)


def _unrolled(ax: Axes, frame: pd.DataFrame, distances: Sequence[int], left: float, top: float, pitch: float) -> None:
    """One network: a column a distance, the nearest at the right."""
    rows = sorted(frame["where"].unique(), key=lambda where: (where != "input", where))
    norm = Normalize(-DECADES, 0)
    steps = len(distances)

    def at(k: int, row: int) -> Point:
        return left + (steps - k - 0.5) * pitch, top + (len(rows) - row - 0.5) * ROW

    for where, lag, value in frame[["where", "lag", "value"]].itertuples(index=False):
        k, row = list(distances).index(lag), rows.index(where)
        _arrow(ax, at(k, row), at(k, row + 1), faint=k > 0 and row + 1 == len(rows))
        if row and k:
            _arrow(ax, at(k, row), at(k - 1, row), dotted=lag - distances[k - 1] > 1)
        shade = STRENGTH(norm(max(value, -DECADES)))
        ax.add_patch(Circle(at(k, row), RADIUS, facecolor=shade, edgecolor="#404040", linewidth=0.7, zorder=3))
    for k, lag in enumerate(distances):
        write(ax, at(k, 0)[0], at(k, 0)[1] + 0.24, f"$t-{lag}$" if lag else "$t$", "center", 6)
    for row, where in enumerate(rows):
        words = f"$h^{{{where.split()[-1]}}}$" if row else "$x$"
        write(ax, at(steps - 1, row)[0] - 0.14, at(0, row)[1], words, "right", va="center")
    write(ax, *at(0, len(rows)), "target", "center", 6)


def _arrow(ax: Axes, start: Point, end: Point, faint: bool = False, dotted: bool = False) -> None:
    """From node to node; faint where no gradient is computed, dotted where steps are left out."""
    begin, arrive = np.array(start), np.array(end)
    away = (arrive - begin) / np.hypot(*(arrive - begin)) * (RADIUS + 0.015)
    style = {"arrowstyle": "-|>,head_width=0.12,head_length=0.2", "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0}
    style |= {"color": "#d0d0d0" if faint else "#404040", "linestyle": (0, (1, 2)) if dotted else "-"}
    ax.annotate("", tuple(arrive - away), tuple(begin + away), arrowprops=style)
