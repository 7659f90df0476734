"""Small multiples: panels that share a look, and curves over seeds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.style import canvas, in_order, look
from nlstm_lab.statistics import t_interval

# where it starts, in the order of panels; the papers do not say
STARTS = {"zero": "output bias at 0", "log_frequencies": "output bias at log-frequencies"}
LOGARITHMIC = {"perplexity"}  # metrics that are drawn on a logarithmic axis
WIDE = 15  # from this ratio of its ends on such an axis has marks enough at 1, 2 and 5


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


def starts(frame: pd.DataFrame) -> list[str]:
    """The output biases that a frame has, the printed one first."""
    return [start for start in STARTS if (frame["start"] == start).any()]


def start_label(start: str) -> str:
    """What stands beside the panels of a start of the output bias, in two lines."""
    return STARTS[start].replace(" at ", "\nat ")


def logarithmic(ax: Axes) -> None:
    """A logarithmic y axis with plain numbers: at 1, 2 and 5 of every decade, at more where it is not WIDE."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > WIDE * low else (1, 1.5, 2, 3, 4, 5, 6, 7, 8)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())


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


def model_style(model: str) -> dict[str, Any]:
    """Colour of a model, and its marker at the last point of a line: a grey print has no colours."""
    return {"color": look(model).colour, "marker": look(model).marker, "markevery": [-1], "markersize": 3.5}


def model_handles(models: Iterable[str], **style: Any) -> list[Line2D]:
    """Legend entries of models in the order that every figure lists them in; style: what differs from `model_style`."""
    return [Line2D([], [], label=look(name).label, **model_style(name) | style) for name in in_order(models)]


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


def memories(frame: pd.DataFrame) -> list[str]:
    """The memories of a frame in the order that every figure lists them in, innermost first, hidden states last."""
    order = ["inner", "middle", "outer", "layer 3", "layer 2", "layer 1", "cell"]
    names = in_order(frame["memory"].dropna())
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def memory_handles(frame: pd.DataFrame) -> list[Line2D]:
    """Legend entries of a frame's memories."""
    return [Line2D([], [], label=memory_label(memory), **memory_style(memory)) for memory in memories(frame)]


def memory_grid(
    ax: Axes | None,
    size: tuple[float, float],
    rows: Mapping[str, tuple[pd.DataFrame, str]],
    x: str,
    xlabel: str,
    log: bool = False,
    **share: Any,
) -> tuple[Figure, NDArray[Any]]:
    """A column of panels for each network, a line of them for each of `rows` (its label; the frame and its y column).

    In each panel is a line for each memory: every seed faint, the mean strong; a hidden state is dashed.
    """
    every = pd.concat([frame[["model", "start"]] for frame, _ in rows.values()])
    columns = [(m, start) for m in in_order(every["model"])[::-1] for start in starts(every[every["model"] == m])]
    figure, axes = panels(ax, len(rows), len(columns), *size, **share)
    for line, (label, (frame, y)) in zip(axes, rows.items(), strict=True):
        for panel, (model, start) in zip(line, columns, strict=True):
            here = frame[(frame["model"] == model) & (frame["start"] == start)]
            memory_lines(panel, here, x, y, log=log)
            panel.grid(axis="both")
        line[0].set_ylabel(label, fontsize=7)
    for top, bottom, (model, start) in zip(axes[0], axes[-1], columns, strict=True):
        top.set_title(f"{look(model).label}\n{STARTS[start]}", fontsize=6.5)
        bottom.set_xlabel(xlabel)
    return figure, axes


def memory_lines(panel: Axes, frame: pd.DataFrame, x: str, y: str, log: bool = False) -> None:
    """A line for each memory of a frame: every seed faint, the mean strong."""
    for memory in reversed(memories(frame)):
        seeds_and_mean(panel, frame[frame["memory"] == memory], x, y, log=log, **memory_style(memory))


def name_lines(panel: Axes, names: Sequence[str]) -> None:
    """A line for each name, from the top, with a grid across."""
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.tick_params(axis="y", length=0)
    panel.grid(axis="x")


def below(figure: Figure, handles: Sequence[Artist], columns: int = 4) -> None:
    """One legend for all panels, below them."""
    figure.legend(handles=list(handles), loc="outside lower center", ncols=columns)
