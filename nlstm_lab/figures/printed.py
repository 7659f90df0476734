"""A printed table and its learning curves in one figure: figures 5 to 8 of Nested LSTMs, as far as they were run."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.learning import AXES, SPLITS
from nlstm_lab.figures.panels import LOGARITHMIC, STARTS, below, logarithmic, panels, seeds_and_mean, starts
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import MEMORIES, MODELS, PAGE, styled
from nlstm_lab.settings import HIGHER_IS_BETTER

# of tables 1 to 4, by the end of an experiment's name: label, colour, dashes, marker (diamonds are what is printed)
ROWS: dict[str, tuple[str, str, Any, str]] = {
    "_lstm1": ("LSTM, 1 layer", MEMORIES["layer 1"].colour, "-", "o"),
    "_lstm1_large": ("LSTM, 1 layer, wider", MEMORIES["layer 1"].colour, (0, (3, 1.2)), "s"),
    "_lstm2": ("LSTM, 2 layers", MEMORIES["layer 2"].colour, "-", "P"),
    "_lstm3": ("LSTM, 3 layers", MEMORIES["layer 3"].colour, "-", "X"),
    "_nlstm": ("Nested LSTM", MODELS["nlstm"].colour, "-", "^"),
}
FEW = 5  # epochs, of which all are shown
STRIP = 0.17  # of a panel's width: what is printed
COLUMNS = ["start", "metric", "split", "row", "seed", "epoch", "value"]


class Band(NamedTuple):
    """A row of panels: what it shows of a metric."""

    metric: str
    start: str
    title: str
    printed: bool
    measured: bool


@styled
def printed_and_measured(
    comparison: pd.DataFrame,
    history: pd.DataFrame | None,
    metrics: Sequence[str],
    splits: Sequence[str] = ("valid", "test"),
    substitute: str = "",
    each_seed: bool = True,
    width: float = PAGE,
    ax: Axes | None = None,
) -> Figure:
    """The printed best values as diamonds in a strip of their own, beside our curves; a column for each split.

    A row of panels is a metric and a start of the output bias; every seed is faint, the mean strong; a mark stands at
    each seed's best validation epoch, which the tables take.

    Args:
        comparison: The frame of `lab.targets.compare(...)`.
        history: `lab.runs.histories(runs)` of whatever is recorded, of which the comparison's experiments are drawn;
            None: then the panels hold what is printed.
        metrics: Names of metrics.
        substitute: What the runs read instead of the document's text; their curves then have panels of their own, since
            no printed number is about that text.
        each_seed: False leaves the means alone, and a mark at the mean of those epochs.

    Raises:
        UsageError: The comparison prints nothing of these metrics.
    """
    numbers = comparison[(comparison["kind"] == "number") & (comparison["setting"] == "as printed")]
    numbers = numbers[numbers["metric"].isin(metrics)].assign(row=lambda each: each["experiment"].map(row_of))
    printed = numbers.assign(value=numbers["printed"], start="zero", seed=-1, epoch=np.nan)
    measured = pd.DataFrame(columns=COLUMNS)
    if history is not None:
        chosen = history["metric"].isin(metrics) & history["split"].isin(splits) & (history["evaluation"] == "blocks")
        chosen &= history["experiment"].isin(comparison["experiment"])
        mine = history[chosen].assign(row=lambda each: each["experiment"].map(row_of))
        measured = mine.sort_values(COLUMNS[:-1], ignore_index=True)
    if printed.empty:
        raise UsageError(f"the table prints no {', '.join(metrics)}; it has {', '.join(comparison['metric'].unique())}")
    bands = [band for metric in metrics for band in _bands(metric, starts(measured), substitute)]
    key, valid = ["start", "metric", "row", "seed"], measured[measured["split"] == "valid"]
    losses = valid["value"].where(~valid["metric"].isin(HIGHER_IS_BETTER), -valid["value"])
    epochs = valid.loc[losses.groupby([valid[name] for name in key]).idxmin(), [*key, "epoch"]]
    best = measured.merge(epochs, on=[*key, "epoch"])  # the rows of each seed's best validation epoch
    figure, axes = panels(ax, len(bands), len(splits), width, 0.7 + 1.75 * len(bands))
    for band, across in zip(bands, axes, strict=True):
        lines, dots = (
            rows[(rows["metric"] == band.metric) & (rows["start"] == band.start) & band.measured]
            for rows in (measured, best)
        )
        targets = printed[(printed["metric"] == band.metric) & band.printed]
        for panel, split in zip(across, splits, strict=True):
            shown, best_of, printed_of = (rows[rows["split"] == split] for rows in (lines, dots, targets))
            _draw(panel, shown, best_of, printed_of, each_seed)
            title = band.title or ("" if len(measured) else "printed alone, nothing is run yet")
            panel.set_title(f"{SPLITS[split]}, {title}" if title else SPLITS[split])
        across[0].set_ylabel(AXES.get(band.metric, band.metric))
        curves, marks = (
            rows[(rows["metric"] == band.metric) & (band.measured or not substitute)] for rows in (measured, best)
        )
        values = printed[(printed["metric"] == band.metric) & (band.printed or not substitute)]
        _scale(across, splits, curves, pd.concat([values, marks]), band.metric in LOGARITHMIC)
    for panel in axes[-1]:
        panel.set_xlabel("epoch" if len(measured) else "")
    figure.align_ylabels()
    below(figure, _handles(printed, measured, each_seed), columns=3)
    return attach(figure, pd.concat([printed, measured])[COLUMNS] if len(measured) else printed[COLUMNS])


def _scale(
    across: Sequence[Axes], splits: Sequence[str], measured: pd.DataFrame, seen: pd.DataFrame, log: bool
) -> None:
    """One axis for the splits that are evaluated, and one for training; what is `seen` must be in sight."""
    for group in ([split for split in splits if split != "train"], ["train"]):
        mine = [panel for panel, split in zip(across, splits, strict=True) if split in group]
        curves, targets = (rows[rows["split"].isin(group)] for rows in (measured, seen))
        for panel in mine:
            if len(curves) or len(targets):
                panel.set_ylim(_limits(curves, targets, log))
            else:
                panel.set_yticks([])
            if log:
                logarithmic(panel)
            if panel is not mine[0]:
                panel.tick_params(axis="y", labelleft=False)


def _bands(metric: str, starts: Sequence[str], substitute: str) -> list[Band]:
    if substitute and starts:
        own = [Band(metric, start, substitute, False, True) for start in starts]
        return [Band(metric, "zero", "printed", True, False), *own]
    titles = {start: STARTS[start] if len(starts) > 1 else "" for start in starts or ["zero"]}
    return [Band(metric, start, title, start == "zero", True) for start, title in titles.items()]


def row_of(experiment: str) -> str:
    """Which of ROWS an experiment, or a variation of it, is."""
    name = experiment.partition("+")[0].removesuffix("_logfreq")
    return next(end for end in sorted(ROWS, key=len, reverse=True) if name.endswith(end))


def _draw(panel: Axes, measured: pd.DataFrame, best: pd.DataFrame, printed: pd.DataFrame, each_seed: bool) -> None:
    for end, (_, colour, dashes, marker) in ROWS.items():
        if len(rows := measured[measured["row"] == end]):
            strong = 1.0 if rows["seed"].nunique() > 1 else 0.6
            look: dict[str, Any] = {"strong": strong, "each": each_seed, "color": colour, "linestyle": dashes}
            seeds_and_mean(panel, rows, "epoch", "value", **look)
            dots = best[best["row"] == end]
            if not each_seed:
                dots = dots[["epoch", "value"]].mean().to_frame().T
            panel.plot(dots["epoch"], dots["value"], marker, markersize=4, zorder=4, color=colour, linestyle="",
                       markeredgecolor="white", markeredgewidth=0.5)  # fmt: skip
    for end, value, text in printed[["row", "value", "as_printed"]].itertuples(index=False):
        k = list(ROWS).index(end)  # a column each, since some values nearly coincide
        place = 0.12 + 0.19 * k if measured.empty else 1 - STRIP + 0.015 + 0.03 * k
        panel.plot([place], [value], "D", color=ROWS[end][1], markersize=3.5,
                   transform=panel.get_yaxis_transform(), **_filling(end))  # fmt: skip
        if measured.empty:
            near: dict[str, Any] = {"xytext": (0, 4), "textcoords": "offset points", "ha": "center", "fontsize": 6.5}
            panel.annotate(text, (place, value), xycoords=("axes fraction", "data"), **near)
    if measured.empty:
        panel.set(xticks=[], xlim=(0, 1))
    else:
        last = measured["epoch"].max()
        panel.set_xlim(left=0, right=1.02 * last / (1 - STRIP))
        ticks = MaxNLocator(integer=True, nbins=5).tick_values(0, last)
        panel.set_xticks(ticks[ticks <= last])
    if len(measured) and len(printed):
        grey: dict[str, Any] = {"transform": panel.transAxes, "color": "#808080"}
        panel.vlines(1 - STRIP, 0, 1, linewidth=0.5, **grey)
        panel.text(1 - STRIP / 2, 1, "printed", ha="center", va="top", fontsize=6.5, **grey)
    if measured.empty and printed.empty:
        middle: dict[str, Any] = {"xycoords": "axes fraction", "ha": "center", "va": "center", "color": "#757575"}
        panel.annotate("neither printed nor run", (0.5, 0.5), **middle)
    panel.grid(axis="y")


def _filling(end: str) -> dict[str, Any]:
    """The wider layer shares its colour with the other single layer; its diamond is hollow."""
    return {"markerfacecolor": "none"} if end == "_lstm1_large" else {}


def _limits(measured: pd.DataFrame, seen: pd.DataFrame, log: bool) -> tuple[float, float]:
    """Room for all that must be seen and for the curves after their first steep change, on an axis of either kind."""
    epochs = measured["epoch"].astype(float)
    few = epochs.nunique() <= FEW
    settled = measured if few else measured[epochs >= epochs.min() + 0.15 * (epochs.max() - epochs.min())]
    values = np.array([*seen["value"], *settled["value"]], float)
    places = np.log(values) if log else values
    margin = 0.06 * np.ptp(places)
    limits = np.array([places.min() - margin, places.max() + margin])
    low, high = np.exp(limits) if log else limits
    return low, high


def _handles(printed: pd.DataFrame, measured: pd.DataFrame, each_seed: bool) -> list[Line2D]:
    drawn, shown = set(measured["row"]), set(printed["row"]) | set(measured["row"])
    unrun = " (not run)" if drawn else ""
    handles = [
        Line2D([], [], label=label, color=colour, linestyle=dashes, marker=marker, markersize=4)
        if end in drawn
        else Line2D([], [], label=label + unrun, color=colour, linestyle="", marker="D", **_filling(end))
        for end, (label, colour, dashes, marker) in ROWS.items()
        if end in shown
    ]
    grey: dict[str, Any] = {"color": "#404040", "linestyle": ""}
    where = "above only; " if drawn and measured["start"].nunique() > 1 else ""
    text = f"printed best ({where}hollow: wider)" if drawn else "printed best"
    handles.append(Line2D([], [], label=text, marker="D", markersize=3.5, **grey))
    if drawn:
        text = "each seed's" if each_seed else "mean over seeds,"
        mark: dict[str, Any] = {"marker": "o", "markersize": 4, "markeredgecolor": "white", "markeredgewidth": 0.5}
        handles.append(Line2D([], [], label=f"{text} best validation epoch", **mark, **grey))
    return handles
