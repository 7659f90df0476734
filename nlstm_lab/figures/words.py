"""Madsen's autocomplete: training curves against mini-batches and time, accuracy, and one moment of it."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.activations import MONO
from nlstm_lab.figures.learning import AXES, DASHES, SPLITS
from nlstm_lab.figures.panels import below, model_handles, model_style, panels, seeds_and_mean
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import PAGE, canvas, in_order, look, styled

TOPS: dict[int, Any] = {1: "-", 2: (0, (3.5, 1.5)), 3: (0, (1, 1.2))}
KNOWN = 6  # characters of a word, up to which the article draws accuracy
SOURCES = ("ours", "published")
TIMES = {"update": "mini-batches", "minutes": "minutes of training"}


@styled
def training_curves(
    curves: pd.DataFrame,
    published: pd.DataFrame | None = None,
    ours: str = "ours",
    width: float = PAGE,
    ax: Axes | None = None,
) -> Figure:
    """The training and validation loss against mini-batches, and against time; ours above, the published below.

    Training is dotted, validation solid; every seed is faint, the mean strong.

    Args:
        curves: `lab.runs.curves(runs)`.
        published: `lab.probes.published_training()`.
        ours: What stands above our own panels, which should say their scale.

    Raises:
        UsageError: There is nothing to draw.
    """
    if curves.empty:
        raise UsageError("there is nothing to draw: the runs recorded no loss")
    frames = [curves.assign(source="ours")]
    if published is not None:
        frames.append(published.assign(source="published", seed=0, minutes=published["seconds"] / 60))
    frame = pd.concat(frames, ignore_index=True)[["source", "model", "seed", "split", "update", "minutes", "value"]]
    figure, axes = panels(ax, len(frames), 2, width, 0.4 + 2.1 * len(frames), sharey="row")
    for row, source in zip(axes, SOURCES, strict=False):
        here = frame[frame["source"] == source]
        for panel, x in zip(row, TIMES, strict=True):
            for model in in_order(here["model"]):
                for split in ("train", "valid"):
                    _curve(panel, here[(here["model"] == model) & (here["split"] == split)], x, split)
            # the first steep fall would flatten all that differs
            top = float(here.loc[here["update"] > 0.02 * here["update"].max(), "value"].max())
            lowest = float(here["value"].min())
            panel.set(xlabel=TIMES[x], ylim=(lowest - 0.05 * (top - lowest), top))
            panel.grid(axis="y")
            panel.xaxis.set_major_locator(MaxNLocator(5))
        row[0].set_ylabel(AXES["nll_nats"])
        row[0].set_title(ours if source == "ours" else "as published", loc="left")
    dark: dict[str, Any] = {"color": "#404040"}
    splits = [Line2D([], [], **dark, linestyle=DASHES[split], label=SPLITS[split]) for split in ("train", "valid")]
    handles = model_handles(frame["model"]) + splits
    below(figure, handles, columns=len(handles))
    return attach(figure, frame)


def _curve(ax: Axes, rows: pd.DataFrame, x: str, split: str) -> None:
    """Seeds faint, their mean strong: against time too, at the same mini-batch."""
    if rows.empty:
        return
    style = model_style(str(rows["model"].iloc[0])) | {"linestyle": DASHES[split]}
    if split == "valid" and rows["update"].nunique() < 20:
        style["markevery"] = None  # at all of them
    if x == "update":
        seeds_and_mean(ax, rows, x, "value", **style)
        return
    for _, one in rows.groupby("seed"):
        ax.plot(one[x], one["value"], **{**style, "linewidth": 0.5, "alpha": 0.35, "marker": ""})
    mean = rows.groupby("update")[[x, "value"]].mean()
    ax.plot(mean[x], mean["value"], **{"linewidth": 1.4, "zorder": 3, **style})


@styled
def accuracy_by_known(
    accuracy: pd.DataFrame,
    published: pd.DataFrame | None = None,
    ours: str = "ours",
    width: float = PAGE,
    ax: Axes | None = None,
) -> Figure:
    """How often a word is among the 1, 2 and 3 suggestions, by how many of its characters are known.

    Over all words, as the article counts. Every seed is faint, the mean strong.

    Args:
        accuracy: `lab.probes.gather(networks, lab.probes.context_accuracy, ...)`.
        published: `lab.probes.published_accuracy()`, in a panel of its own.
        ours: As for `training_curves`.

    Raises:
        UsageError: There is nothing to draw.
    """
    frames = [accuracy.assign(source="ours", value=accuracy["accuracy_unmasked_pct"])]
    if published is not None:
        frames.append(published.assign(source="published", seed=0, value=published["accuracy_pct"]))
    frame = pd.concat(frames, ignore_index=True)[["source", "model", "seed", "top", "known", "value"]]
    frame = frame[frame["known"] <= KNOWN].reset_index(drop=True)
    if frame.empty:
        raise UsageError("there is nothing to draw: no accuracy was measured")
    figure, axes = panels(ax, 1, len(frames), width if len(frames) > 1 else width / 2, 2.6, sharey=True)
    for panel, source in zip(axes[0], SOURCES, strict=False):
        here = frame[frame["source"] == source]
        for (model, top), rows in here.groupby(["model", "top"]):
            marked = {} if top == 1 else {"marker": ""}  # three markers a model would hide each other
            style = model_style(str(model)) | marked
            seeds_and_mean(panel, rows, "known", "value", **style, linestyle=TOPS[int(str(top))])
        panel.set_title(ours if source == "ours" else "as published", loc="left")
        panel.set_xlabel("characters of the word that are known")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.grid(axis="y")
    axes[0, 0].set_ylabel("the word is suggested (%)")
    axes[0, 0].set_ylim(bottom=0)
    handles = model_handles(frame["model"])
    tops = {1: "likeliest", 2: "among two", 3: "among three"}
    handles += [Line2D([], [], color="#404040", linestyle=TOPS[top], label=label) for top, label in tops.items()]
    below(figure, handles, columns=len(handles))
    return attach(figure, frame)


HEAD, BAR, FOOT, TYPED = 0.22, 0.17, 0.36, 0.26  # inches
GAP = 0.09  # of a column's width, between networks
LONGEST = 90  # characters of the text that are shown, its last


@styled
def completions(suggestions: pd.DataFrame, text: str, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """The likeliest words after `text`, a column of bars for each network, all on one scale from 0 to 1.

    Args:
        suggestions: Model, place (1 is likeliest), word, probability.
        text: What was typed.

    Raises:
        UsageError: There is nothing to draw.
    """
    if suggestions.empty:
        raise UsageError("there is nothing to draw: no network has a word for this text")
    names, places = in_order(suggestions["model"]), int(suggestions["place"].max())
    height = TYPED + HEAD + BAR * places + FOOT
    figure, ax = canvas(ax, width, height)
    ax.set_xlim(0, len(names) + GAP * (len(names) - 1))
    ax.set_ylim(places + 0.2, -(HEAD + TYPED) / BAR)
    shown = text.replace("\n", " ")
    shown = shown if len(shown) <= LONGEST else "…" + shown[-LONGEST:]
    ax.text(0, -(HEAD + TYPED) / BAR + 0.9, f"{shown.strip()}▏", family=MONO, fontsize=8, parse_math=False)
    ticks = []
    for k, name in enumerate(names):
        left = k * (1 + GAP)
        ticks += [left, left + 0.5, left + 1]
        ax.text(left, -0.35, look(name).label, color=look(name).colour, fontweight="bold")
        here = suggestions[suggestions["model"] == name]
        columns = (here[column].tolist() for column in ("place", "word", "probability"))
        for place, word, p in zip(*columns, strict=True):
            y = place - 0.5
            ax.barh(y, p, 0.82, left=left, color=look(name).colour, alpha=0.35)
            ax.text(left + 0.015, y, word, va="center_baseline", parse_math=False)
            ax.text(left + 1, y, f"{100 * p:.1f} %", va="center_baseline", ha="right", fontsize=7)
    ax.set_xticks(ticks, ["0", "0.5", "1"] * len(names))
    ax.set_yticks([])
    ax.set_xlabel("probability among all words")
    ax.spines[["left", "bottom"]].set_visible(False)
    return attach(figure, suggestions, {"probability": LIVE})
