"""The death of the inner memory in the first updates of training, and what keeps it alive."""

from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from nlstm_lab.errors import UsageError
from nlstm_lab.figures import panels
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import NORMS, PAGE, in_order, look, styled

SHARES = {"latched": "latched cells, share of all", "silent": "silent cells, share of all"}
LOSSES = {"bpc": "bits per character", "perplexity": "perplexity"}
LEGEND = 0.3  # of the lowest perplexity, where its axis begins: room for the legend
MANY = 10  # epochs, after each of which a ring would be drawn: more run together
ROUNDED = 0.005  # a share below this is 0 %


def death_frame(history: pd.DataFrame, metric: str = "bpc") -> pd.DataFrame:
    """What the figure shows, long: model, start, seed, quantity, memory, update, split, value."""
    rows = history[history["split"].isin(["early", "valid"]) & (history["evaluation"] == "blocks")]
    kinds = rows["metric"].str.extract(r"(latched|silent)_share/(.+)").set_axis(["quantity", "memory"], axis=1)
    rows = rows.assign(**kinds)
    rows.loc[rows["metric"] == metric, "quantity"] = metric
    columns = ["model", "start", "seed", "quantity", "memory", "update", "split", "value"]
    return rows.loc[rows["quantity"].notna(), columns].reset_index(drop=True)


@styled
def inner_memory_death(
    history: pd.DataFrame, metric: str = "bpc", width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """Shares of latched and of silent cells of every memory, and the loss, against updates on a logarithmic axis.

    A row of panels is a start of the output bias. Every seed is faint, the mean strong; circles (a dashed line where
    there are many) are the validation loss after each epoch. Memories that lie on one another at 0 % are named.

    Args:
        history: `lab.runs.histories(runs)`.
        metric: What tells the loss, "bpc" or "perplexity" (on a logarithmic axis).

    Raises:
        UsageError: The history has no share of latched cells, or no such metric.
    """
    frame = death_frame(history, metric)
    shown = frame[frame["update"] >= 1]
    # where an epoch ends with a logged update, the shares were logged twice
    again = shown.duplicated(["model", "start", "seed", "quantity", "memory", "update"]) & shown["memory"].notna()
    shown = shown[~again]
    if not (shown["quantity"] == "latched").any():
        raise UsageError("the history tells nothing of latched cells: these units have no memory cells")
    if metric not in LOSSES or not (shown["quantity"] == metric).any():
        raise UsageError(f"the history has no metric {metric!r} to draw; one of {', '.join(LOSSES)} can be")
    rows, quantities = panels.starts(frame), {**SHARES, metric: LOSSES[metric]}
    figure, axes = panels.panels(ax, len(rows), 3, width, 0.4 + 1.65 * len(rows), sharex=True, sharey="col")
    for line, start in zip(axes, rows, strict=True):
        for panel, quantity in zip(line, quantities, strict=True):
            here = shown[(shown["start"] == start) & (shown["quantity"] == quantity)]
            if quantity == metric:
                _losses(panel, here)
                if metric in panels.LOGARITHMIC:
                    panels.logarithmic(panel)
                    panel.set_ylim(bottom=LEGEND * here["value"].min())
            else:
                panels.memory_lines(panel, here, "update", "value")
                _nothing(panel, here)
                panel.set_ylim(-0.03, 1.03)
                panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
            panel.set_xscale("log")
            panel.grid(axis="both")
        line[0].set_ylabel(panels.start_label(start))
    for panel, name in zip(axes[0], quantities.values(), strict=True):
        panel.set_title(name)
    for panel in axes[-1]:
        panel.set_xlabel("updates")
        panel.xaxis.set_major_formatter("{x:g}")
    for panel in axes[:-1].flat:
        panel.tick_params(axis="x", labelbottom=False)
    panels.below(figure, panels.memory_handles(frame))
    return attach(figure, frame)


def _nothing(panel: Axes, rows: pd.DataFrame) -> None:
    """Name the memories whose mean is 0 % at every update, where more than one is."""
    highest = rows.groupby(["memory", "update"])["value"].mean().groupby("memory").max()
    still = panels.memories(rows[rows["memory"].isin(highest.index[highest < ROUNDED])])
    if len(still) > 1:
        names = "all memories" if len(still) == len(highest) else ";\n".join(map(panels.memory_label, still))
        panel.text(0.04, 0.95, f"at 0 %: {names}", transform=panel.transAxes, va="top", fontsize=6.5)


def _losses(panel: Axes, rows: pd.DataFrame) -> None:
    """The training loss of each model, and its validation loss after an epoch: rings, or a line through many."""
    many = rows.loc[rows["split"] == "valid", "update"].nunique() > MANY
    rings: dict[str, Any] = {"marker": "o", "markerfacecolor": "white", "markersize": 3.5, "linestyle": ""}
    drawn = {"linestyle": (0, (3, 1.2)), "linewidth": 1.1} if many else rings
    for model in in_order(rows["model"]):
        mine = rows[rows["model"] == model]
        panels.seeds_and_mean(panel, mine[mine["split"] == "early"], "update", "value", **panels.model_style(model))
        valid = mine[mine["split"] == "valid"].groupby("update")["value"].mean()
        panel.plot(valid.index, valid, color=look(model).colour, zorder=4, **drawn)
    free = many and rows["quantity"].iloc[0] not in panels.LOGARITHMIC  # the upper right: no perplexity that rises
    labels = [
        Line2D([], [], color="#404040", label="training"),
        Line2D([], [], color="#404040", label="validation" if free else "validation, mean", **drawn),
    ]
    if panel.get_subplotspec().is_first_row():  # type: ignore[union-attr]
        handles = [*panels.model_handles(rows["model"]), *labels]
        corner: Literal["upper right", "lower left"] = "upper right" if free else "lower left"
        panel.legend(handles=handles, handlelength=1.6 if many else 1.2, borderaxespad=0.2, loc=corner)


LATCHED, SILENT, SEEDS = "#003d6b", "#b9c9d6", "#e69f00"
ROW = 0.2  # inches of a setting


@styled
def inner_memory_remedies(
    widths: pd.DataFrame, outcomes: pd.DataFrame, order: pd.DataFrame, width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """When the inner memory dies, what keeps it alive, what that costs, and the order of table 1 with it.

    Args:
        widths: Shares of dead cells in networks of several widths: columns width, seed, update, dead.
        outcomes: Of `lab.probes.remedy_outcomes`; settings are drawn in the order in which they come.
        order: Validation BPC of table 1's rows: columns row (its label), start (of the output bias), seed, value.
        width: Inches of the whole figure.
        ax: Axes to divide, in place of a new figure.
    """
    settings = list(dict.fromkeys(outcomes["setting"]))
    height = max(4.4, 1.1 + ROW * len(settings))
    figure, axes = panels.panels(ax, 1, 3, width, height, width_ratios=(1.5, 1, 1))
    (_, bars, costs), (_, ((dying,), (rows,))) = axes[0], panels.panels(axes[0, 0], 2, 1, width, height)
    _widths(dying, widths)
    _shares(bars, outcomes, settings)
    costs.axvline(0, color="#404040", linewidth=0.8)
    for y, setting in enumerate(settings):
        panels.seeds_and_interval(costs, y, outcomes.loc[outcomes["setting"] == setting, "gain"], SEEDS)
    costs.set(title="training BPC", xlabel="difference from\nas printed")
    panels.name_lines(costs, [""] * len(settings))
    _order(rows, order)
    for panel, letter in zip((dying, bars, costs, rows), "ABCD", strict=True):
        panel.set_title(f"{letter}  {panel.get_title(loc='left')}", loc="left")
    handles = [
        Line2D([], [], color=LATCHED, linewidth=6, label="latched"),
        Line2D([], [], color=SILENT, linewidth=6, label="silent"),
        Line2D([], [], color=SEEDS, marker="o", markersize=2.6, label="seeds, 95 % t interval of their mean"),
        *(Line2D([], [], linestyle="", markersize=3.5, label=f"D: {k}", **_dot(s)) for s, k in panels.STARTS.items()),
    ]
    panels.below(figure, handles, columns=3)
    parts = {"widths": widths, "remedies": outcomes, "order": order}
    return attach(figure, pd.concat([part.assign(panel=name) for name, part in parts.items()], ignore_index=True))


def _widths(panel: Axes, widths: pd.DataFrame) -> None:
    shown, units = widths[widths["update"] > 0], sorted(widths["width"].unique())
    for colour, one in zip(NORMS(np.linspace(0.35, 0.95, len(units))), units, strict=True):
        panels.seeds_and_mean(panel, shown[shown["width"] == one], "update", "dead", color=colour, label=str(one))
    handles, labels = panel.get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))  # of each width its mean, which is drawn last
    panel.legend(named.values(), named.keys(), title="units", loc="lower right")
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    panel.set(xlabel="updates", ylabel="dead inner cells", ylim=(-0.03, 1.03), title="the printed start, by width")
    panel.grid(axis="both")


def _shares(panel: Axes, outcomes: pd.DataFrame, settings: list[str]) -> None:
    for y, setting in enumerate(settings):
        here = outcomes[outcomes["setting"] == setting]
        latched = here["latched"].mean()
        panel.barh(y, latched, height=0.62, color=LATCHED)
        panel.barh(y, here["silent"].mean(), left=latched, height=0.62, color=SILENT)
        panels.seeds_and_interval(panel, y, here["dead"], SEEDS)
    panel.set(xlim=(0, 1), title="dead inner cells")
    panel.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    panels.name_lines(panel, settings)


def _order(panel: Axes, order: pd.DataFrame) -> None:
    """Rows by the mean of their better start, the best first."""
    means = order.groupby(["row", "start"])["value"].mean()
    best = means.groupby("row").min().sort_values()
    for y, row in enumerate(best.index):
        for start, seeds in order[order["row"] == row].groupby("start"):
            panels.seeds_and_interval(panel, y, seeds["value"], **_dot(str(start)))
    panel.set(title="table 1, two epochs", xlabel="validation BPC")
    panels.name_lines(panel, list(best.index))


def _dot(start: str) -> dict[str, Any]:
    """A seed of one start of the output bias: hollow as printed."""
    colour = look("nlstm").colour
    return {"color": colour, "marker": "o", "markerfacecolor": "white" if start == "zero" else colour}
