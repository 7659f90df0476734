"""The papers' learning curves beside what ours show earlier: the first updates, and both starts of the output bias."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.panels import STARTS, model_style, panels, seeds_and_mean, starts
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import PAGE, in_order, styled
from nlstm_lab.studies.learning.draw import AXES, learning_curves


@styled
def first_updates_and_epochs(
    history: pd.DataFrame, metric: str = "bpc", evaluation: str = "blocks", width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """Above, the training metric in the first epoch against updates; below, valid and test against epochs.

    history: `lab.runs.histories(runs)`. A column of panels for each start of the output bias; every seed faint, the
    mean strong; colour is the model. The training metric at an update is that of the updates since the point before.

    UsageError: the history has no early rows of this metric.
    """
    mine = history[(history["metric"] == metric) & (history["evaluation"] == evaluation)]
    early = mine.loc[mine["split"] == "early", ["model", "start", "seed", "split", "update", "value"]]
    if early.empty:
        raise UsageError(f"the history tells nothing of {metric!r} in the first updates")
    columns, limits = starts(mine), []
    figure, axes = panels(ax, 2, len(columns), width, 4.0, sharey="row")
    for (above, below), start in zip(axes.T, columns, strict=True):
        for model in in_order(early["model"]):
            rows = early[(early["model"] == model) & (early["start"] == start)]
            seeds_and_mean(above, rows, "update", "value", **model_style(model))
        above.set(xscale="log", xlabel="updates")
        above.set_title(STARTS[start])
        above.xaxis.set_major_formatter("{x:g}")
        above.grid(axis="both")
        learning_curves(mine[mine["start"] == start], metric, evaluation=evaluation, ax=below)
        limits.append(below.get_ylim())  # the panels share their axis: it must show what each would alone
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
    lows, highs = zip(*limits, strict=True)
    axes[1, 0].set_ylim(min(lows), max(highs))
    axes[0, 0].set_ylabel(f"{AXES[metric]}, training")
    axes[1, 0].set_ylabel(AXES[metric])
    for panel in axes[:, 1:].flat:
        panel.set_ylabel("")
        panel.tick_params(axis="y", labelleft=False)
        if legend := panel.get_legend():
            legend.remove()
    figure.align_ylabels()
    return attach(figure, early)
