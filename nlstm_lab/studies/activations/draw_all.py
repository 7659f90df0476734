"""All cells of a network at once, and which of them to look at more closely: figure 3 has room for seven."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlstm_lab.figures.panels import memory_label
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import DIVERGING, PAGE, canvas, styled
from nlstm_lab.studies.activations.draw import Values, activation_frame

HEIGHT = 2.3  # inches a network


def liveliest(trace: xr.Dataset, count: int = 7, values: Values = "printed") -> list[int]:
    """The `count` units whose innermost (or highest) memory moves most from one character to the next, most first.

    Args:
        trace: `lab.probes.trace(model, text)`.
        count: How many.
        values: "printed" (as in the paper), "tanh" or "raw".

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> trace = lab.probes.trace(model, "the old man said that he would not sell")
    >>> figure = lab.figures.cell_activations(trace, units=liveliest(trace, 3))
    """
    frame = activation_frame(trace, trace.sizes["unit"], values)
    grid = _grid(frame, str(frame["memory"].iloc[0]))
    return _movement(grid).round(LIVE).sort_values(ascending=False, kind="stable").index[:count].tolist()


@styled
def all_cells(
    traces: Mapping[str, xr.Dataset], values: Values = "printed", width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """Every cell of every memory along the text, a row of panels for each named trace, drawn as figure 3 draws seven.

    Cells stand in the order in which they move, the calmest at the top: each memory has an order of its own. Values
    beyond -1 and 1 (raw ones) are shown as those. The frame has a row a cell, in the network's order, with its movement
    and a column for each character.

    Args:
        traces: Traces of the same text (`lab.probes.trace`).
        values: "printed" (as in the paper), "tanh" or "raw".

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> figure = all_cells({"log-frequencies": lab.probes.trace(model, "the old man said that he would not sell")})
    >>> len(lab.figures.data(figure))  # 2 memories x 150 cells
    300
    """
    figure, ax = canvas(ax, width, HEIGHT * len(traces) + 0.45)
    ax.axis("off")
    frames, tall = [], 1 / len(traces)
    for row, (name, trace) in enumerate(traces.items()):
        table = activation_frame(trace, trace.sizes["unit"], values)
        memories = list(dict.fromkeys(table["memory"]))
        for column, memory in enumerate(memories):
            grid = _grid(table, memory)
            movement = _movement(grid)
            drawn = grid.loc[movement.sort_values(kind="stable").index]
            wide = 1 / len(memories)
            panel = ax.inset_axes((column * wide + 0.02, 1 - (row + 0.88) * tall, wide - 0.04, 0.76 * tall))
            image = panel.imshow(drawn, cmap=DIVERGING, vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
            quantity = table.loc[table["memory"] == memory, "quantity"].iloc[0]
            panel.set_title(f"{name}: {memory_label(memory)}, {quantity}", loc="left", fontsize=7.5)
            panel.set(yticks=[], xlabel="position (characters)" if row == len(traces) - 1 else "")
            panel.set_ylabel("all cells, calmest first" if column == 0 else "")
            frames.append(grid.reset_index().assign(network=name, memory=memory, movement=movement.to_numpy()))
    bar = figure.colorbar(image, ax=ax, orientation="horizontal", fraction=0.03, pad=0.02, shrink=0.3)
    bar.set_label("activation")
    bar.set_ticks([-1, 0, 1], labels=["−1", "0", "1"])
    frame = pd.concat(frames, ignore_index=True)
    frame.columns = [f"t{name}" if isinstance(name, (int, np.integer)) else str(name) for name in frame.columns]
    computed = ["movement", *frame.filter(regex=r"^t\d+$").columns]
    return attach(figure, frame[["network", "memory", "unit", *computed]], dict.fromkeys(computed, LIVE))


def _grid(frame: pd.DataFrame, memory: str) -> pd.DataFrame:
    """Units by characters of one memory."""
    return frame[frame["memory"] == memory].pivot(index="unit", columns="time", values="value")


def _movement(grid: pd.DataFrame) -> pd.Series:
    """How far each unit moves from one character to the next, on average."""
    return grid.diff(axis=1).abs().mean(axis=1)
