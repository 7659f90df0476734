"""The death of the inner memory: what becomes of memory cells in the first updates of training."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.panels import (
    LOGARITHMIC,
    below,
    logarithmic,
    memories,
    memory_handles,
    memory_label,
    memory_style,
    model_handles,
    model_style,
    panels,
    seeds_and_mean,
    start_label,
    starts,
)
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import PAGE, in_order, look, styled
from nlstm_lab.statistics import t_interval

SHARES = {"latched": "latched cells, share of all", "silent": "silent cells, share of all"}
LOSSES = {"bpc": "bits per character", "perplexity": "perplexity"}
LEGEND = 0.3  # of the lowest perplexity, where its axis begins: room for the legend
MANY = 10  # epochs, after each of which a ring would be drawn: more run together
ROUNDED = 0.005  # a share below this is 0 %
LATCHED, SILENT = "#003d6b", "#b9c9d6"


def death_frame(history: pd.DataFrame, metric: str = "bpc") -> pd.DataFrame:
    """What the figure shows, long: model, start, seed, quantity, memory, update, split, value.

    The shares of latched and silent cells on validation blocks, after the logged updates of the first epoch and after
    each epoch; the loss of the updates since the row before (split "early") and on validation (split "valid").
    """
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

    history: `lab.runs.histories(runs)`. metric: what tells the loss, "bpc" or "perplexity" (on a logarithmic axis). One
    row of panels for each start of the output bias. Every seed faint, the mean strong; circles are the validation loss
    after each epoch, or a dashed line where there are many. The training loss at an update is that of the updates since
    the point before. Where several memories lie on one another at 0 %, the panel names them.

    UsageError: the history has no share of latched cells, or no such metric.
    """
    frame = death_frame(history, metric)
    shown = frame[frame["update"] >= 1]
    # where an epoch ends with a logged update, the shares were told twice
    again = shown.duplicated(["model", "start", "seed", "quantity", "memory", "update"]) & shown["memory"].notna()
    shown = shown[~again]
    if not (shown["quantity"] == "latched").any():
        raise UsageError("the history tells nothing of latched cells: these units have no memory cells")
    if metric not in LOSSES or not (shown["quantity"] == metric).any():
        raise UsageError(f"the history has no metric {metric!r} to draw; one of {', '.join(LOSSES)} can be")
    rows, quantities = starts(frame), {**SHARES, metric: LOSSES[metric]}
    figure, axes = panels(ax, len(rows), 3, width, 0.4 + 1.65 * len(rows), sharex=True, sharey="col")
    for line, start in zip(axes, rows, strict=True):
        for panel, quantity in zip(line, quantities, strict=True):
            here = shown[(shown["start"] == start) & (shown["quantity"] == quantity)]
            if quantity == metric:
                _losses(panel, here)
                if metric in LOGARITHMIC:
                    logarithmic(panel)
                    panel.set_ylim(bottom=LEGEND * here["value"].min())
            else:
                for memory in reversed(memories(here)):
                    seeds_and_mean(panel, here[here["memory"] == memory], "update", "value", **memory_style(memory))
                _nothing(panel, here)
                panel.set_ylim(-0.03, 1.03)
                panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
            panel.set_xscale("log")
            panel.grid(axis="both")
        line[0].set_ylabel(start_label(start))
    for panel, name in zip(axes[0], quantities.values(), strict=True):
        panel.set_title(name)
    for panel in axes[-1]:
        panel.set_xlabel("updates")
        panel.xaxis.set_major_formatter("{x:g}")
    for panel in axes[:-1].flat:
        panel.tick_params(axis="x", labelbottom=False)
    below(figure, memory_handles(frame))
    return attach(figure, frame)


def _nothing(panel: Axes, rows: pd.DataFrame) -> None:
    """Name the memories whose mean is 0 % at every update, where more than one is."""
    highest = rows.groupby(["memory", "update"])["value"].mean().groupby("memory").max()
    still = memories(rows[rows["memory"].isin(highest.index[highest < ROUNDED])])
    if len(still) > 1:
        names = "all memories" if len(still) == len(highest) else ";\n".join(map(memory_label, still))
        panel.text(0.04, 0.95, f"at 0 %: {names}", transform=panel.transAxes, va="top", fontsize=6.5)


def _losses(panel: Axes, rows: pd.DataFrame) -> None:
    """The training loss of each model, and its validation loss after an epoch: rings, or a line through many."""
    many = rows.loc[rows["split"] == "valid", "update"].nunique() > MANY
    rings: dict[str, Any] = {"marker": "o", "markerfacecolor": "white", "markersize": 3.5, "linestyle": ""}
    drawn = {"linestyle": (0, (3, 1.2)), "linewidth": 1.1} if many else rings
    for model in in_order(rows["model"]):
        mine = rows[rows["model"] == model]
        seeds_and_mean(panel, mine[mine["split"] == "early"], "update", "value", **model_style(model))
        valid = mine[mine["split"] == "valid"].groupby("update")["value"].mean()
        panel.plot(valid.index, valid, color=look(model).colour, zorder=4, **drawn)
    labels = [
        Line2D([], [], color="#404040", label="training"),
        Line2D([], [], color="#404040", label="validation, mean", **drawn),
    ]
    if panel.get_subplotspec().is_first_row():  # type: ignore[union-attr]
        handles = [*model_handles(rows["model"]), *labels]
        panel.legend(handles=handles, loc="lower left", handlelength=1.6 if many else 1.2, borderaxespad=0.2)


@styled
def inner_memory_ablations(
    shares: pd.DataFrame, memory: str = "inner", width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """Dead cells of one memory after a few updates, a bar for each setting: latched dark, silent light.

    shares: `lab.runs.dead_shares(lab.runs.histories({setting: runs, ...}), updates=(10, 30, 100))`; settings are drawn
    in the order in which they come, with how many seeds they have where that differs. Dots are the seeds' shares of
    dead cells, which are both, the line through them the t interval of their mean.

    UsageError: no such memory.
    """
    rows = shares[shares["memory"] == memory]
    if rows.empty:
        raise UsageError(f"there is no memory {memory!r}; there are {', '.join(sorted(shares['memory'].unique()))}")
    frame = rows[["setting", "seed", "update", "latched", "silent"]].reset_index(drop=True)
    settings, updates = list(dict.fromkeys(frame["setting"])), sorted(frame["update"].unique())
    figure, axes = panels(ax, 1, len(updates), width, 0.75 + 0.24 * len(settings), sharey=True)
    for panel, update in zip(axes[0], updates, strict=True):
        for y, setting in enumerate(settings):
            here = frame[(frame["update"] == update) & (frame["setting"] == setting)]
            latched, dead = here["latched"].mean(), here["latched"] + here["silent"]
            panel.barh(y, latched, height=0.62, color=LATCHED)
            panel.barh(y, here["silent"].mean(), left=latched, height=0.62, color=SILENT)
            _, low, high = t_interval(dead)
            panel.plot([low, high], [y, y], color="#e69f00", linewidth=1.2, solid_capstyle="butt", zorder=3)
            panel.plot(dead, [y] * len(dead), "o", color="#e69f00", markersize=2.6, zorder=4, clip_on=False)
        panel.set(xlim=(0, 1), ylim=(len(settings) - 0.5, -0.5))
        panel.set_title(f"after {update} updates")
        panel.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
        panel.tick_params(axis="y", length=0)
        panel.grid(axis="x")
    axes[0, len(updates) // 2].set_xlabel(f"share of the {look(memory).label}'s cells")
    seeds = frame.groupby("setting")["seed"].nunique()[settings]
    labels = "{} ({} seeds)" if seeds.nunique() > 1 else "{}"
    axes[0, 0].set_yticks(range(len(settings)), [labels.format(*one) for one in seeds.items()])
    for panel in axes[0, 1:]:
        panel.tick_params(axis="y", labelleft=False)
    handles = [
        Line2D([], [], color=LATCHED, linewidth=6, label="latched"),
        Line2D([], [], color=SILENT, linewidth=6, label="silent"),
        Line2D(
            [],
            [],
            color="#e69f00",
            marker="o",
            markersize=2.6,
            label="dead, latched or silent: seeds, 95 % t interval",
        ),
    ]
    below(figure, handles, columns=3)
    return attach(figure, frame)
