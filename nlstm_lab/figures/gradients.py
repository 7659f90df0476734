"""Memorization: the unrolled network, as dark as the gradient that is left of it (Madsen's article), measured."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.connectivity import STRENGTH
from nlstm_lab.figures.panels import panels
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import PAGE, look, styled

DECADES = 8  # of the unrolled network's shades: what is weaker is white
DISTANCES = (0, 1, 2, 4, 8, 16, 32, 64)  # neighbours alone would end where the units begin to part


@styled
def unrolled_networks(
    means: pd.DataFrame,
    models: Sequence[str],
    distances: Sequence[int] = DISTANCES,
    width: float = PAGE,
    ax: Axes | None = None,
) -> Figure:
    """Networks unrolled back from their last step: each h and each input as dark as the gradient that reaches it.

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
    rows = max(frame["where"].nunique() for frame in frames)
    pitch = width / len(models) / (len(distances) + 1)
    figure, axes = panels(ax, 1, len(models), width, pitch * (rows + 2))
    for panel, model, frame in zip(axes[0], models, frames, strict=True):
        _unrolled(panel, frame, distances, rows)
        panel.set_title(", ".join([look(model).label, *frame.attrs["conditions"]]), fontsize=7)
    panel, left, y = axes[0, 0], 0.0, -1.35  # what the shades mean
    shades = np.linspace(0, 1, 128)[None]
    panel.pcolormesh(np.linspace(left, 2.2, 129), [y, y + 0.25], shades, cmap=STRENGTH, linewidth=0)
    panel.text(left - 0.1, y + 0.12, f"10$^{{-{DECADES}}}$", ha="right", va="center", fontsize=6)
    words = "1, gradient relative to the same row's at $t$, logarithmic"
    panel.text(2.3, y + 0.12, words, va="center", fontsize=6)
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


def _unrolled(ax: Axes, frame: pd.DataFrame, distances: Sequence[int], height: int) -> None:
    """One network; height: rows of the highest one beside it."""
    rows = sorted(frame["where"].unique(), key=lambda where: (where != "input", where))
    steps = len(distances)
    ax.set(xlim=(-0.9, steps), ylim=(-1.45, height + 0.55), aspect="equal")
    ax.axis("off")
    norm = Normalize(-DECADES, 0)
    place = {distance: steps - 1 - k for k, distance in enumerate(distances)}
    for where, lag, value in frame[["where", "lag", "value"]].itertuples(index=False):
        x, y = place[lag], rows.index(where)
        _arrow(ax, (x, y), (x, y + 1), last=lag == 0 or y + 1 < len(rows))
        if y and lag:
            _arrow(ax, (x, y), (x + 1, y), last=True, dotted=lag - distances[steps - 2 - x] > 1)
        shade = STRENGTH(norm(max(value, -DECADES)))
        ax.add_patch(Circle((x, y), 0.27, facecolor=shade, edgecolor="#404040", linewidth=0.7, zorder=3))
    for lag, x in place.items():
        ax.text(x, -0.62, f"$t-{lag}$" if lag else "$t$", ha="center", fontsize=6)
    for y, where in enumerate(rows):
        ax.text(-0.42, y, f"$h^{{{where.split()[-1]}}}$" if y else "$x$", ha="right", va="center", fontsize=7)
    ax.text(steps - 1, len(rows) + 0.02, "target", ha="center", va="bottom", fontsize=6)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], last: bool, dotted: bool = False) -> None:
    """From node to node; faint where no gradient is computed, dotted where steps are left out."""
    begin, arrive = np.array(start), np.array(end)
    reach = 0.3 * (arrive - begin)
    style = {"arrowstyle": "-|>,head_width=0.12,head_length=0.2", "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0}
    style |= {"color": "#404040" if last else "#d0d0d0", "linestyle": (0, (1, 2)) if dotted else "-"}
    ax.annotate("", tuple(arrive - reach), tuple(begin + reach), arrowprops=style)
