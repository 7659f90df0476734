"""Memorization: the unrolled network, and how gradients vanish along it (Madsen's article), measured."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.connectivity import STRENGTH, seed_lines
from nlstm_lab.figures.panels import panels
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import COLUMN, canvas, look, styled

DECADES = 3  # of the unrolled network's shades


@styled
def vanishing_gradients(
    means: pd.DataFrame, where: str = "input", width: float = COLUMN, ax: Axes | None = None
) -> Figure:
    """How much of the gradient at distance 0 is left at each distance: seeds faint, the mean strong.

    means: `lab.probes.seed_means` of `gradient_by_distance`, with `model`: log10 of the norm; and, for a panel each,
    with `condition`. where: "input", which compares units, or a layer's h. The mean over seeds is that of the
    logarithm.   UsageError: nothing to draw.
    """
    frame = _relative(means if "condition" in means else means.assign(condition=""), where)
    conditions = list(frame["condition"].unique())
    figure, axes = panels(ax, 1, len(conditions), width, 2.5, sharey=True)
    for panel, condition in zip(axes[0], conditions, strict=True):
        seed_lines(panel, frame[frame["condition"] == condition])
        panel.set_xlabel("distance (characters)")
        panel.set_title(condition, loc="left")
        panel.yaxis.set_major_formatter(lambda exponent, _: f"10$^{{{exponent:g}}}$")
        panel.yaxis.set_major_locator(MaxNLocator(integer=True))
        panel.grid(axis="y")
    axes[0, 0].set_ylabel("gradient, relative to distance 0")
    axes[0, -1].legend()
    return attach(figure, frame if any(conditions) else frame.drop(columns="condition"))


@styled
def unrolled_network(
    means: pd.DataFrame, model: str, steps: int = 8, width: float = COLUMN, ax: Axes | None = None
) -> Figure:
    """A network unrolled over its last steps: each h and each input as dark as the gradient that reaches it.

    means: as for `vanishing_gradients`. The loss is asked for at the last step alone; a shade is a logarithm over
    three decades, relative to the largest gradient at distance 0.   UsageError: no such model, too few steps.
    """
    frame = means[(means["model"] == model) & (means["lag"] < steps)]
    if frame.empty or frame["lag"].nunique() < steps:
        raise UsageError(f"there is no gradient of {model!r} over {steps} steps: measure it, or draw fewer steps")
    frame = frame.groupby(["where", "lag"])["value"].mean().reset_index()
    frame["value"] -= frame.loc[frame["lag"] == 0, "value"].max()
    rows = sorted(frame["where"].unique(), key=lambda where: (where != "input", where))
    pitch = width / (steps + 1)
    height = pitch * (len(rows) + 1.3)
    figure, ax = canvas(ax, width, height)
    ax.set(xlim=(-0.9, steps), ylim=(-0.75, len(rows) + 0.55), aspect="equal")
    ax.axis("off")
    norm = Normalize(-DECADES, 0)
    for where, lag, value in frame[["where", "lag", "value"]].itertuples(index=False):
        x, y = steps - 1 - int(lag), rows.index(where)
        _arrow(ax, (x, y), (x, y + 1), last=lag == 0 or y + 1 < len(rows))
        if y and lag:
            _arrow(ax, (x, y), (x + 1, y), last=True)
        shade = STRENGTH(norm(max(value, -DECADES)))
        ax.add_patch(Circle((x, y), 0.27, facecolor=shade, edgecolor="#404040", linewidth=0.7, zorder=3))
    for x in range(steps):
        lag = steps - 1 - x
        ax.text(x, -0.62, "$t$" if lag == 0 else f"$t-{lag}$", ha="center", fontsize=6)
    for y, where in enumerate(rows):
        ax.text(-0.42, y, "$x$" if y == 0 else f"$h_{{{where.split()[-1]}}}$", ha="right", va="center", fontsize=7)
    ax.text(steps - 1, len(rows) + 0.02, "loss", ha="center", va="bottom", fontsize=6)
    ax.set_title(f"{look(model).label}: white is 10$^{{-{DECADES}}}$ of the darkest, or less", fontsize=7)
    return attach(figure, frame.assign(model=model))


def _relative(means: pd.DataFrame, where: str) -> pd.DataFrame:
    """The chosen gradients, each seed's relative to its own at distance 0, as logarithms."""
    frame = means[(means["where"] == where) & (means["quantity"] == "log10_gradient")]
    if frame.empty:
        raise UsageError(f"there is nothing to draw: no gradient with respect to {where!r} was measured")
    frame = frame.sort_values("lag", kind="stable").reset_index(drop=True)
    first = frame.groupby(["condition", "model", "seed"])["value"].transform("first")
    return frame.assign(value=frame["value"] - first, source="ours")


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], last: bool) -> None:
    """From node to node; faint where nothing is asked for."""
    (x, y), (to_x, to_y) = np.array(start), np.array(end)
    reach = 0.3 * np.array([to_x - x, to_y - y])
    style = {"arrowstyle": "-|>,head_width=0.12,head_length=0.2", "linewidth": 0.7, "shrinkA": 0, "shrinkB": 0}
    style["color"] = "#404040" if last else "#d0d0d0"
    ax.annotate("", (to_x - reach[0], to_y - reach[1]), (x + reach[0], y + reach[1]), arrowprops=style)
