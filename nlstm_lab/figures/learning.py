"""Learning curves of the papers, the first updates beside them, and what a decision is worth."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.panels import STARTS, model_style, panels, seeds_and_mean, starts
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import COLUMN, PAGE, canvas, in_order, look, styled
from nlstm_lab.settings import UNDER_WAY

DASHES: dict[str, Any] = {"valid": "-", "test": (0, (3.5, 1.5)), "train": (0, (1, 1.2))}
ENDS = {UNDER_WAY: "o", "by the rule": "s"}  # a ring around the last point of a run that did not reach its last epoch
SPLITS = {"train": "training", "valid": "validation", "test": "test"}  # as readers call them
RING: dict[str, Any] = {"markersize": 7, "fillstyle": "none"}
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
def learning_curves(
    history: pd.DataFrame,
    metric: str = "bpc",
    x: str = "epoch",
    splits: tuple[str, ...] = ("valid", "test"),
    evaluation: str | None = None,
    width: float = COLUMN,
    ax: Axes | None = None,
) -> Figure:
    """A metric against epochs or updates: every seed faint, the mean over seeds strong; colour is the model.

    The mean goes as far as all seeds do; a ring marks the end of runs that a rule has ended, or that are under way.

    Args:
        history: The histories of runs under each other, with their `model` and `seed`:
            `pd.concat(run.history.assign(model="nlstm", seed=run.seed) for run in runs)`; or
            `lab.runs.histories(runs)`, where experiments of one model are lines of their own.
        x: The horizontal axis, "epoch" or "update".
        splits: Solid for validation, dashed for test, dotted for training.
        evaluation: "blocks" or "streams", if the history has both.

    Raises:
        UsageError: There is no row of this metric, there are two evaluations and none is chosen, or nothing tells two
            runs apart.

    >>> import pandas as pd, nlstm_lab as lab
    >>> runs = [lab.runs.load("ptb_char_nlstm", seed, "small") for seed in range(5)]
    >>> history = pd.concat(run.history.assign(model="nlstm", seed=run.seed) for run in runs)
    >>> figure = lab.figures.learning_curves(history, evaluation="blocks")
    """
    chosen = history[(history["metric"] == metric) & history["split"].isin(splits)]
    if evaluation is not None:
        chosen = chosen[chosen["evaluation"] == evaluation]
    if chosen.empty:
        raise UsageError(f"the history has no {metric!r}; it has {', '.join(sorted(history['metric'].unique()))}")
    if chosen["evaluation"].nunique() > 1:
        raise UsageError(f"choose an evaluation: the history has {', '.join(sorted(chosen['evaluation'].unique()))}")
    looks = _looks(chosen)
    line = ["model", "experiment"] if len(looks) > chosen["model"].nunique() else ["model"]
    ended = ["state"] if "state" in chosen and (chosen["state"] != "done").any() else []
    kept = [name for name in (*line, "start", "seed", "split", *ended, x, "value") if name in chosen]
    frame = chosen[kept].sort_values([*line, "split", "seed", x])
    if (twice := frame[frame.duplicated([*line, "split", "seed", x])]).size:
        repeated = ", ".join(f"{name} {twice[name].iloc[0]}" for name in (*line, "split", "seed", x))
        raise UsageError(f"the history has several values of {repeated}: hand in fewer runs, or their `experiment`")
    figure, ax = canvas(ax, width, 0.72 * width)
    shown = [split for split in splits if (frame["split"] == split).any()]
    for (*named, split), rows in frame.groupby([*line, "split"]):
        colour = looks[str(named[0]), str(named[1]) if len(named) > 1 else ""][0]
        style: dict[str, Any] = {"color": colour, "linestyle": DASHES[str(split)]}
        if rows["seed"].nunique() > 1:
            for _, one in rows.groupby("seed"):
                ax.plot(one[x], one["value"], linewidth=0.6, alpha=0.35, **style)
        mean = rows.groupby(x)["value"].mean()[: rows.groupby("seed")[x].max().min()]
        ax.plot(mean.index, mean, **{**model_style(str(named[0])), **style})
        for end, marker in ENDS.items() if ended else ():
            last = rows[rows["state"].str.endswith(end)].groupby("seed").tail(1)
            ax.plot(last[x], last["value"], marker, color=colour, **RING)
    if frame[x].nunique() > 5:  # the first steep fall would flatten all that differs between the models
        settled = frame.loc[frame[x] >= frame[x].min() + 0.15 * (frame[x].max() - frame[x].min()), "value"]
        margin = 0.06 * (settled.max() - settled.min())
        ax.set_ylim(settled.min() - margin, settled.max() + margin)
    ax.set(xlabel=AXES.get(x, x), ylabel=AXES.get(metric, metric))
    if x == "epoch":
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(axis="y")
    handles = [
        Line2D([], [], label=label, **{**model_style(model), "color": colour})
        for (model, _), (colour, label) in looks.items()
    ]
    handles += [
        Line2D([], [], color="#404040", linestyle="", marker=marker, label=end, **RING)
        for end, marker in ENDS.items()
        if ended and frame["state"].str.endswith(end).any()
    ]
    if len(shown) > 1:
        handles += [Line2D([], [], color="#404040", linestyle=DASHES[split], label=SPLITS[split]) for split in shown]
    else:
        ax.set_ylabel(f"{ax.get_ylabel()}, {SPLITS[shown[0]]}")
    ax.legend(handles=handles, loc="best")
    return attach(figure, frame)


def _looks(history: pd.DataFrame) -> dict[tuple[str, str], tuple[Any, str]]:
    """Colour and label of every line by model and experiment, which is "" where no model has two of them."""
    names = {model: [""] for model in in_order(history["model"])}
    if "experiment" in history:
        by_model = {model: list(history.loc[history["model"] == model, "experiment"].unique()) for model in names}
        names = by_model if any(len(some) > 1 for some in by_model.values()) else names
    looks = {}
    for model, experiments in names.items():
        shared = set.intersection(*(set(name.split("+")) for name in experiments))
        for place, name in enumerate(experiments):
            apart = ", ".join(rows for rows in name.split("+") if rows not in shared)
            label = f"{look(model).label}, {apart}" if apart else look(model).label
            colour: Any = look(model).colour
            if place:  # paler from one to the next: mixed with white
                colour = tuple(each + 0.75 * place / len(experiments) * (1 - each) for each in to_rgb(colour))
            looks[model, name] = colour, label
    return looks


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


@styled
def first_updates_and_epochs(
    history: pd.DataFrame, metric: str = "bpc", width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """Above, the training metric in the first epoch against updates; below, valid and test against epochs.

    A column of panels is a start of the output bias; every seed is faint, the mean strong; colour is the model. The
    training metric at an update is that of the updates since the point before.

    Args:
        history: `lab.runs.histories(runs)`.

    Raises:
        UsageError: The history has no early rows of this metric.
    """
    mine = history[(history["metric"] == metric) & (history["evaluation"] == "blocks")]
    early = mine.loc[mine["split"] == "early", ["model", "start", "seed", "split", "update", "value"]]
    if early.empty:
        raise UsageError(f"the history tells nothing of {metric!r} in the first updates")
    columns, limits = starts(mine), []
    figure, axes = panels(ax, 2, len(columns), width, 4.0, sharey="row")
    for (upper, lower), start in zip(axes.T, columns, strict=True):
        for model in in_order(early["model"]):
            rows = early[(early["model"] == model) & (early["start"] == start)]
            seeds_and_mean(upper, rows, "update", "value", **model_style(model))
        upper.set(xscale="log", xlabel="updates")
        upper.set_title(STARTS[start])
        upper.xaxis.set_major_formatter("{x:g}")
        upper.grid(axis="both")
        learning_curves(mine[mine["start"] == start], metric, ax=lower)
        limits.append(lower.get_ylim())  # the panels share their axis: it must show what each would alone
        lower.xaxis.set_major_locator(MaxNLocator(integer=True))
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
