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
from nlstm_lab.figures.curves import AXES, SPLITS
from nlstm_lab.figures.panels import LOGARITHMIC, STARTS, below, logarithmic, panels, seeds_and_mean, starts
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import MEMORIES, MODELS, PAGE, styled
from nlstm_lab.settings import HIGHER_IS_BETTER

# the rows that tables 1 to 4 share: by the end of an experiment's name, what it is called, its colour, its dashes
ROWS: dict[str, tuple[str, str, Any]] = {
    "_lstm1": ("LSTM, 1 layer", MEMORIES["layer 1"].colour, "-"),
    "_lstm1_large": ("LSTM, 1 layer, wider", MEMORIES["layer 1"].colour, (0, (3, 1.2))),
    "_lstm2": ("LSTM, 2 layers", MEMORIES["layer 2"].colour, "-"),
    "_lstm3": ("LSTM, 3 layers", MEMORIES["layer 3"].colour, "-"),
    "_nlstm": ("Nested LSTM", MODELS["nlstm"].colour, "-"),
}
FEW = 5  # epochs, of which all are shown
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
    reader: str = "blocks",
    substitute: str = "",
    width: float = PAGE,
    ax: Axes | None = None,
) -> Figure:
    """The printed best values as diamonds at the right, our curves by epoch beside them; a column for each split.

    comparison: the frame of `lab.targets.compare(...)`. history: `lab.runs.histories(runs)` of whatever is recorded, or
    None: then the panels hold what is printed, and say so. A row of panels for each metric, and for each start of the
    output bias that was run; every seed faint, the mean strong, a dot at each seed's best validation epoch, which the
    tables take. What is printed stands beside the start at zero. substitute: what the runs read instead of the
    document's text; their curves then have panels of their own, since no printed number is about that text.
    Perplexities are drawn on a logarithmic axis.

    UsageError: the comparison prints nothing of these metrics.
    """
    printed, measured = _printed(comparison, metrics), _measured(history, metrics, splits, reader)
    if printed.empty:
        raise UsageError(f"the table prints no {', '.join(metrics)}; it has {', '.join(comparison['metric'].unique())}")
    bands = [band for metric in metrics for band in _bands(metric, starts(measured), substitute)]
    best = _best(measured)
    figure, axes = panels(ax, len(bands), len(splits), width, 0.7 + 1.75 * len(bands), sharey="row")
    for band, across in zip(bands, axes, strict=True):
        part, dots = (
            rows[(rows["metric"] == band.metric) & (rows["start"] == band.start) & band.measured]
            for rows in (measured, best)
        )
        targets = printed[(printed["metric"] == band.metric) & band.printed]
        for panel, split in zip(across, splits, strict=True):
            _draw(panel, *(rows[rows["split"] == split] for rows in (part, dots, targets)))
            panel.set_title(f"{SPLITS[split]}, {band.title}" if band.title else SPLITS[split])
        across[0].set_ylabel(AXES.get(band.metric, band.metric))
        log = band.metric in LOGARITHMIC
        if len(part) or len(targets):
            across[0].set_ylim(_limits(part, targets, log))
        else:
            across[0].set_yticks([])
        for panel in across if log else ():
            logarithmic(panel)
    for panel in axes[-1]:
        panel.set_xlabel("epoch")
    below(figure, _handles(printed, measured), columns=3)
    return attach(figure, pd.concat([printed, measured])[COLUMNS] if len(measured) else printed[COLUMNS])


def _bands(metric: str, found: Sequence[str], substitute: str) -> list[Band]:
    if substitute:
        own = [Band(metric, start, substitute, False, True) for start in found or ["zero"]]
        return [Band(metric, "zero", "printed", True, False), *own]
    titles = [STARTS[start] if len(found) > 1 else "" for start in found]
    return [
        Band(metric, start, title, start == "zero", True)
        for start, title in zip(found or ["zero"], titles or [""], strict=True)
    ]


def row_of(experiment: str) -> str:
    """Which of ROWS an experiment is."""
    name = experiment.removesuffix("_logfreq")
    return next((end for end in sorted(ROWS, key=len, reverse=True) if name.endswith(end)), "")


def _printed(comparison: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    told = comparison[(comparison["kind"] == "number") & (comparison["setting"] == "as printed")]
    told = told[told["metric"].isin(metrics)]
    row = told["experiment"].map(row_of)
    return told.assign(row=row, value=told["printed"], start="zero", seed=-1, epoch=np.nan)


def _measured(history: pd.DataFrame | None, metrics: Sequence[str], splits: Sequence[str], reader: str) -> pd.DataFrame:
    if history is None:
        return pd.DataFrame(columns=COLUMNS)
    mine = history[history["metric"].isin(metrics) & history["split"].isin(splits) & (history["reader"] == reader)]
    mine = mine.assign(row=mine["experiment"].map(row_of))
    return mine[mine["row"] != ""].sort_values(COLUMNS[:-1], ignore_index=True)


def _best(measured: pd.DataFrame) -> pd.DataFrame:
    """The rows of each seed's best validation epoch, by the metric itself."""
    key = ["start", "metric", "row", "seed"]
    valid = measured[measured["split"] == "valid"]
    losses = valid["value"].where(~valid["metric"].isin(HIGHER_IS_BETTER), -valid["value"])
    epochs = valid.loc[losses.groupby([valid[name] for name in key]).idxmin(), [*key, "epoch"]]
    return measured.merge(epochs, on=[*key, "epoch"])


def _draw(panel: Axes, measured: pd.DataFrame, best: pd.DataFrame, printed: pd.DataFrame) -> None:
    for end, (_, colour, dashes) in ROWS.items():
        if len(part := measured[measured["row"] == end]):
            seeds_and_mean(panel, part, "epoch", "value", strong=1.0, color=colour, linestyle=dashes)
            dots = best[best["row"] == end]
            panel.plot(dots["epoch"], dots["value"], "o", markersize=3.2, zorder=4, color=colour,
                       markeredgecolor="white", markeredgewidth=0.5)  # fmt: skip
    for end, value in printed[["row", "value"]].itertuples(index=False):
        place = 1.03 + 0.022 * list(ROWS).index(end)  # a column each, since some values nearly coincide
        panel.plot([place], [value], "D", color=ROWS[end][1], markersize=3.5, transform=panel.get_yaxis_transform(),
                   clip_on=False, **_filling(end))  # fmt: skip
    if measured.empty:
        panel.set(xticks=[], xlim=(0, 1))
        panel.annotate("not run", (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", color="#757575")
    else:
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    panel.grid(axis="y")


def _filling(end: str) -> dict[str, Any]:
    """The wider layer shares its colour with the other single layer; its diamond is hollow."""
    return {"markerfacecolor": "none"} if end == "_lstm1_large" else {}


def _limits(measured: pd.DataFrame, printed: pd.DataFrame, log: bool) -> tuple[float, float]:
    """Room for every printed value and for the curves after their first steep change, on an axis of either kind."""
    epochs = measured["epoch"].astype(float)
    few = epochs.nunique() <= FEW
    settled = measured if few else measured[epochs >= epochs.min() + 0.15 * (epochs.max() - epochs.min())]
    values = np.array([*printed["value"], *settled["value"]], float)
    places = np.log(values) if log else values
    margin = 0.06 * np.ptp(places)
    limits = np.array([places.min() - margin, places.max() + margin])
    low, high = np.exp(limits) if log else limits
    return low, high


def _handles(printed: pd.DataFrame, measured: pd.DataFrame) -> list[Line2D]:
    drawn, shown = set(measured["row"]), set(printed["row"]) | set(measured["row"])
    handles = [
        Line2D([], [], label=label, color=colour, linestyle=dashes)
        if end in drawn
        else Line2D([], [], label=f"{label} (not run)", color=colour, linestyle="", marker="D", **_filling(end))
        for end, (label, colour, dashes) in ROWS.items()
        if end in shown
    ]
    grey: dict[str, Any] = {"color": "#404040", "linestyle": ""}
    handles.append(Line2D([], [], label="printed best (hollow: wider)", marker="D", markersize=3.5, **grey))
    if drawn:
        handles.append(Line2D([], [], label="ours, best validation epoch", marker="o", markersize=3.2, **grey))
    return handles
