"""One line a run, in the run browser."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import COLUMN, canvas, look, styled

DASHES: dict[str, Any] = {"valid": "-", "test": (0, (3.5, 1.5)), "train": (0, (1, 1.2))}
SPLITS = {"train": "training", "valid": "validation", "test": "test"}  # as readers call them
AXES = {
    "bpc": "bits per character",
    "perplexity": "perplexity",
    "nll_nats": "negative log-likelihood (nats)",
    "top1_accuracy_pct": "accuracy (%)",
    "log_likelihood_nats": "log-likelihood (nats)",
    "epoch": "epoch",
    "update": "updates",
}


@styled
def run_curves(curves: pd.DataFrame, metric: str, width: float = COLUMN, ax: Axes | None = None) -> Figure:
    """One line a run against updates, whatever the runs have in common: colour is the model, dashes tell runs apart.

    Args:
        curves: Columns run, model, update, value (of the validation split).

    Raises:
        UsageError: There is no run.
    """
    if curves.empty:
        raise UsageError("there is no run to draw: hand in one at least")
    figure, ax = canvas(ax, width, 0.72 * width + 0.13 * curves["run"].nunique())
    alike: dict[str, int] = {}
    for (run, model), rows in curves.groupby(["run", "model"], sort=False):
        place = alike[str(model)] = alike.get(str(model), -1) + 1
        dash: Any = ["-", (0, (3.5, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2))][place % 4]
        rows = rows.sort_values("update")
        ax.plot(rows["update"], rows["value"], color=look(str(model)).colour, linestyle=dash, marker="o", label=run)
    ax.set(xlabel=AXES["update"], ylabel=f"{AXES.get(metric, metric)}, validation")
    ax.grid(axis="y")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), fontsize=6)
    return attach(figure, curves)
