"""What the units cost: a training step computed in different ways, and what an HM-LSTM saves where it copies."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.panels import below, panels
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import MODELS, PAGE, look, styled

CELL_TYPES = {"NestedLSTM": "nlstm", "2-layer LSTM": "stacked_lstm"}
REFERENCES = {"NestedLSTM": ("naive loop", "its naive loop"), "2-layer LSTM": ("nn.LSTM", "nn.LSTM")}  # in fp32
PRODUCTS = {"fp32": 1.0, "bf16": 0.45}  # opacity
DENSE = "#9a9a9a"


@styled
def cost(training: pd.DataFrame, reading: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """Left, milliseconds of a training step, and how many times as fast as its unit's reference; right, of reading.

    A Nested LSTM is set against its naive loop, a stacked LSTM against nn.LSTM, both in fp32. Every number is that of
    the bars: medians, and ratios of medians.

    Args:
        training: Rows of `nlstm_lab.bench.recorded` of one size and device (unit, variant, products, ms).
        reading: One row a pair of boundary rates (layer1, layer2, dense_ms_per_step, sparse_ms_per_step).

    Raises:
        UsageError: No training step was measured.
    """
    steps = training.dropna(subset=["ms"]).sort_values("ms", ascending=False, ignore_index=True)
    if steps.empty:
        raise UsageError("no training step was measured; make a record with `benchmarks/steps.py --record NAME`")
    units = [unit for unit in CELL_TYPES if (steps["unit"] == unit).any()]
    figure, axes = panels(ax, 1, 2, width, 0.9 + 0.2 * (len(steps) + len(units)), width_ratios=(1.5, 1))
    left, right = axes[0]
    _training(left, steps, units)
    kinds = (("dense_ms_per_step", DENSE), ("sparse_ms_per_step", MODELS["hmlstm"].colour))
    for offset, (kind, colour) in zip((-0.19, 0.19), kinds, strict=True):
        right.bar(np.arange(len(reading)) + offset, reading[kind], width=0.36, color=colour)
    rows: Any = reading.itertuples()
    for x, row in enumerate(rows):
        times = f"{row.dense_ms_per_step / row.sparse_ms_per_step:.1f}×"
        right.annotate(times, (x + 0.02, row.sparse_ms_per_step), ha="left", va="bottom", fontsize=7)
    right.set_xticks(range(len(reading)), [f"{a:.2f}\n{b:.3f}" for a, b in reading[["layer1", "layer2"]].to_numpy()])
    right.set(xlabel="shares of boundaries, layers 1 and 2", ylabel="milliseconds", title="a step of reading, HM-LSTM")
    for panel in (left, right):
        panel.tick_params(axis="y" if panel is left else "x", length=0)
        panel.grid(axis="x" if panel is left else "y")
        panel.set_axisbelow(True)
    looks = [look(CELL_TYPES[unit]) for unit in units]
    handles = [Patch(color=each.colour, label=f"{each.label} (pale: bf16)") for each in looks]
    handles += [Patch(color=DENSE, label="dense"), Patch(color=MODELS["hmlstm"].colour, label="COPY skipped")]
    below(figure, handles)
    return attach(attach(figure, steps), reading)


def _training(panel: Axes, steps: pd.DataFrame, units: Sequence[str]) -> None:
    """A group of bars for each unit under its name, from the slowest down to the fastest."""
    names: dict[int, str] = {}
    for k, unit in enumerate(units):
        name, reference = look(CELL_TYPES[unit]), REFERENCES[unit]
        group = steps[steps["unit"] == unit]
        own = group.loc[(group["variant"] == reference[0]) & (group["products"] == "fp32"), "ms"].iloc[0]
        words = f"{name.label}, times as fast as {reference[1]} in fp32"
        head = len(names) + k
        panel.text(0, head, f" {words}", va="center", fontsize=7, color=name.colour, fontweight="bold")
        rows: Any = group.itertuples()
        for y, row in enumerate(rows, head + 1):
            panel.barh(y, row.ms, height=0.66, color=name.colour, alpha=PRODUCTS[row.products])
            panel.annotate(f" {own / row.ms:#.2g}×", (row.ms, y), va="center", fontsize=7)
            names[y] = f"{row.variant}, {row.products}"
    panel.set_yticks(list(names), list(names.values()))
    panel.set(xlabel="milliseconds", title="a training step")
    panel.set(xlim=(0, 1.13 * steps["ms"].max()), ylim=(len(names) + len(units) - 0.3, -0.6))
