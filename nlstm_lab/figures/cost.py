"""What the units cost: a training step computed in different ways, and what an HM-LSTM saves where it copies."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.panels import below, panels
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import MODELS, PAGE, styled

UNITS = {"NestedLSTM": "nlstm", "2-layer LSTM": "stacked_lstm"}
PRODUCTS = {"fp32": 1.0, "bf16": 0.45}  # opacity
DENSE = "#9a9a9a"


@styled
def cost(training: pd.DataFrame, reading: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """Left, milliseconds of a training step, and how many times as fast as the naive loop; right, of a step of reading.

    training: rows of `nlstm_lab.bench` of one size and device (unit, variant, products, ms, vs_naive). reading: one row
    a pair of boundary rates (layer1, layer2, dense_ms_per_step, sparse_ms_per_step, ratio). Both are medians.

    UsageError: nothing was measured.
    """
    steps = training.dropna(subset=["ms"]).sort_values("ms", ascending=False, ignore_index=True)
    if steps.empty:
        raise UsageError("the record holds no measured training step; make one with `nlstm-lab bench --record NAME`")
    figure, axes = panels(ax, 1, 2, width, 0.9 + 0.2 * len(steps), width_ratios=(1.5, 1))
    left, right = axes[0]
    for y, row in enumerate(steps.to_dict("records")):
        colour, alpha = MODELS[UNITS[row["unit"]]].colour, PRODUCTS[row["products"]]
        left.barh(y, row["ms"], height=0.66, color=colour, alpha=alpha)
        left.annotate(f" {row['vs_naive']:.1f}×", (row["ms"], y), va="center", fontsize=7)
    left.set_yticks(range(len(steps)), [f"{row.variant}, {row.products}" for row in steps.itertuples()])
    left.set(xlabel="milliseconds", title="a training step", xlim=(0, 1.13 * steps["ms"].max()))
    kinds = (("dense_ms_per_step", DENSE), ("sparse_ms_per_step", MODELS["hmlstm"].colour))
    for offset, (kind, colour) in zip((-0.19, 0.19), kinds, strict=True):
        right.bar(np.arange(len(reading)) + offset, reading[kind], width=0.36, color=colour)
    rows: Any = reading.itertuples()
    for x, row in enumerate(rows):
        right.annotate(f"{row.ratio:.1f}×", (x + 0.19, row.sparse_ms_per_step), ha="center", va="bottom", fontsize=7)
    right.set_xticks(range(len(reading)), [f"{a:.2f}\n{b:.3f}" for a, b in reading[["layer1", "layer2"]].to_numpy()])
    right.set(xlabel="shares of boundaries, layers 1 and 2", ylabel="milliseconds", title="a step of reading, HM-LSTM")
    for panel in (left, right):
        panel.tick_params(axis="y" if panel is left else "x", length=0)
        panel.grid(axis="x" if panel is left else "y")
        panel.set_axisbelow(True)
    handles = [Patch(color=MODELS[key].colour, label=f"{label} (pale: bf16)") for label, key in UNITS.items()]
    handles += [Patch(color=DENSE, label="dense"), Patch(color=MODELS["hmlstm"].colour, label="COPY saved")]
    below(figure, handles)
    return attach(attach(figure, steps), reading)
