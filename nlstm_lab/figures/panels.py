"""Small multiples: panels that share a look, and curves over seeds."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.style import canvas, look
from nlstm_lab.statistics import t_interval

# where it starts, in the order of panels; the papers do not say
STARTS = {"zero": "output bias at 0", "log_frequencies": "output bias at log-frequencies"}


def panels(
    ax: Axes | None, rows: int, columns: int, width: float, height: float, **share: Any
) -> tuple[Figure, NDArray[Any]]:
    """A new figure of so many inches, or the place of `ax`, divided into panels; with the axes [rows, columns]."""
    if ax is None:
        figure = plt.figure(figsize=(width, height))
        plt.close(figure)
        return figure, figure.subplots(rows, columns, squeeze=False, **share)
    figure, ax = canvas(ax, width, height)
    ax.axis("off")
    whole = ax.get_subplotspec()
    ratios = {name: share.pop(name) for name in ("width_ratios", "height_ratios") if name in share}
    grid = (whole.subgridspec if whole else figure.add_gridspec)(rows, columns, **ratios)
    return figure, grid.subplots(squeeze=False, **share)


def seeds_and_mean(
    ax: Axes,
    frame: pd.DataFrame,
    x: str,
    y: str,
    log: bool = False,
    strong: float = 1.4,
    each: bool = True,
    **style: Any,
) -> None:
    """Every seed's curve faint (if `each`), their mean strong (geometric where `log`), as far as all seeds go."""
    if (again := frame[frame.duplicated([x, "seed"])]).size:
        twice = f"seed {again['seed'].iloc[0]} has more than one {y} at {x} {again[x].iloc[0]}"
        raise UsageError(f"{twice}: a line is of one experiment")
    wide = frame.pivot(index=x, columns="seed", values=y).sort_index()
    faint = {**style, "linewidth": 0.5, "alpha": 0.35, "marker": ""}
    if each and wide.shape[1] > 1:
        for seed in wide:
            ax.plot(wide.index, wide[seed], **faint)
    mean = np.exp(np.log(wide).mean(axis=1)) if log else wide.mean(axis=1)
    mean = mean[wide.bfill().notna().all(axis=1)]
    ax.plot(mean.index, mean, **{"linewidth": strong, "zorder": 3, **style})


def seeds_and_interval(ax: Axes, y: float, values: "pd.Series[float]", color: str, **style: Any) -> None:
    """At the height `y` every seed a dot, and the t interval of their mean a line; nothing where there is no seed."""
    if values.empty:  # a line without points, drawn beyond its axes, would have no place in the figure's layout
        return
    _, low, high = t_interval(values)
    ax.plot([low, high], [y, y], color=color, linewidth=1.2, solid_capstyle="butt", zorder=3)
    dots: dict[str, Any] = {"marker": "o", "markersize": 2.6, "linestyle": "", "zorder": 4, "clip_on": False}
    ax.plot(values, [y] * len(values), color=color, **dots | style)


def memory_style(memory: str) -> dict[str, Any]:
    """Colour of a memory; a hidden state is dashed, in the colour of its layer."""
    if memory == "h" or memory.endswith(" h"):
        return {"color": look(memory.removesuffix(" h")).colour, "linestyle": (0, (3, 1.2))}
    return {"color": look(memory).colour, "linestyle": "-"}


def memory_label(memory: str) -> str:
    """What a legend calls a memory: the layers of a stack by their place."""
    return {
        "layer 1": "stack, lower layer",
        "layer 2": "stack, upper layer",
        "layer 1 h": "stack, lower h",
        "layer 2 h": "stack, upper h",
        "h": "hidden state h",
    }.get(memory, look(memory).label)


def below(figure: Figure, handles: Sequence[Artist], columns: int = 4) -> None:
    """One legend for all panels, below them."""
    figure.legend(handles=list(handles), loc="outside lower center", ncols=columns)
