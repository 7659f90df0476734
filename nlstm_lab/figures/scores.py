"""Boundaries judged: F1 beside detectors that know nothing, lengths of segments, what a FLUSH does, and the ladder."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.panels import below, name_lines, panels, seeds_and_interval, seeds_and_mean
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import PAGE, look, styled
from nlstm_lab.statistics import t_interval

# detectors: label, colour, marker, place in the line of its truth; the network's own first
DETECTORS = {
    "network": ("z: mean, 95 % t interval over seeds", look("hmlstm").colour, "o", -0.32),
    "surprise": ("fires on surprise (mean)", "#e69f00", "D", 0.02),
    "periodic": ("periodic (mean)", "#56b4e9", "|", 0.19),
    "random": ("random (mean)", "#4d4d4d", "x", 0.36),
    "best": ("the best at that rate", "#4d4d4d", ">", 0.36),
}
RARE = 0.01  # share of steps: a layer that fires less often in every seed has too few boundaries to be judged
AFTER = "or one after"  # the window of a boundary at a space or after it
SEEDS = -0.16  # the place of the network's single seeds


@styled
def boundary_scores(scores: pd.DataFrame, within: str = "0", width: float = PAGE, ax: Axes | None = None) -> Figure:
    """How well z of each layer meets each truth, beside detectors that fire as often: a panel a layer, a line a truth.

    Seeds are small, the bar is the t interval of their mean; rivals are means over seeds; from "random" to "best" is
    what F1 can tell at that rate. A layer that fires at less than 1 % of steps in every seed has no panel.

    Args:
        scores: `lab.probes.gather(networks, lab.probes.segment_scores, excerpt)` of the seeds of one experiment.
        within: A window's name; beside the exact spaces stands what the paper says of them, "or one after".

    Raises:
        UsageError: Nothing was judged within that window, or there is more than one experiment.
    """
    rows = scores[scores["within"] == within]
    after = scores[(scores["within"] == AFTER) & (scores["truth"] == "spaces")].assign(truth=f"spaces, {AFTER}")
    if rows.empty:
        raise UsageError(f"nothing was judged within {within!r}; there are {', '.join(scores['within'].unique())}")
    if rows["experiment"].nunique() > 1:
        raise UsageError("the figure shows the seeds of one experiment: choose one")
    if within == "0":
        rows = pd.concat([rows, after])
    best = rows[rows["detector"] == "network"].assign(detector="best")
    best["f1"] = 2 * best[["rate", "base"]].min(axis=1) / (best["rate"] + best["base"])
    rows = pd.concat([rows, best])
    frame = rows[["layer", "truth", "detector", "seed", "rate", "f1"]].rename(columns={"f1": "value"})
    layers, truths = sorted(frame["layer"].unique()), list(dict.fromkeys([*after["truth"], *frame["truth"]]))
    by_layer = frame[frame["detector"] == "network"].groupby("layer")
    rates = {layer: found.groupby("seed")["rate"].first() for layer, found in by_layer}
    judged = [layer for layer in layers if rates[layer].max() >= RARE] or layers[:1]
    rare = [f"$z^{layer}$ at {_rates(rates[layer])}" for layer in layers if layer not in judged]
    label = "F1" if within == "0" else f"F1, {within.replace('±1', '±1 step')}"
    figure, axes = panels(ax, 1, len(judged), width, 1.1 + 0.44 * len(truths), sharey=True)
    for panel, layer in zip(axes[0], judged, strict=True):
        _layer(panel, frame[frame["layer"] == layer], truths)
        last = f"; {', '.join(rare)}: too rarely to be judged" if rare and layer == judged[-1] else ""
        panel.set(title=f"$z^{layer}$ fires at {_rates(rates[layer])}{last}", xlabel=label)
    _, colour, *_ = DETECTORS["network"]
    seeds = Line2D([], [], color=colour, marker=".", linestyle="", markersize=4, alpha=0.6, label="z: every seed")
    look_alike: dict[str, Any] = {"linestyle": "", "markersize": 4.5, "markeredgewidth": 1.1}
    own, *rivals = [
        Line2D([], [], label=label, color=colour, marker=marker, **look_alike)
        for label, colour, marker, _ in DETECTORS.values()
    ]
    own.set(linestyle="-", linewidth=1.6)
    below(figure, [own, seeds, *rivals], columns=3)
    return attach(figure, frame.reset_index(drop=True))


def _layer(panel: Axes, scores: pd.DataFrame, truths: list[str]) -> None:
    """One layer's scores, a line a truth."""
    for y, truth in enumerate(truths):
        values = scores[scores["truth"] == truth].set_index("detector")["value"]  # one a seed
        for detector in [name for name in DETECTORS if name in values.index]:
            _, colour, marker, place = DETECTORS[detector]
            seeds = values.loc[[detector]]
            mean, low, high = t_interval(seeds)
            drawn: dict[str, Any] = {"color": colour, "markersize": 4.5, "clip_on": False, "zorder": 4}
            panel.plot(mean, y + place, marker, markeredgewidth=1.1, **drawn)
            if detector == "network":
                panel.plot([low, high], [y + place] * 2, color=colour, linewidth=1.6, solid_capstyle="butt")
                panel.plot(seeds, [y + SEEDS] * len(seeds), ".", **drawn | {"markersize": 4, "alpha": 0.6})
        panel.axhline(y + 0.5, color="#e4e4e4", linewidth=0.4, zorder=0)
    panel.set_xlim(0, min(1.0, panel.dataLim.xmax * 1.05) or 1.0)
    panel.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    name_lines(panel, truths)


def _rates(rates: pd.Series) -> str:
    """How often the detectors fire, seed by seed where they differ."""
    percents = [100 * float(share) for share in rates]
    texts = [f"{percent:.0f}" if percent >= 10 or percent < 0.05 else f"{percent:.2g}" for percent in percents]
    return f"{texts[0] if len(set(texts)) == 1 else ', '.join(texts)} % of steps"


SERIES = {"layer 1": "segments of layer 1", "layer 2": "segments of layer 2", "word ends": "words"}
LONGEST = 20
ENOUGH = 20  # of segments, steps or moments in a run; what was met less often is not drawn
FLUSHES: dict[str, Any] = {"withheld": "-", "forced": (0, (1, 1))}


@styled
def segment_lengths(
    lengths: pd.DataFrame, since: pd.DataFrame, turned: pd.DataFrame, width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """Three panels: how long segments are, the loss against the steps since a FLUSH, and what turning one costs.

    Every seed is faint, the mean strong. Lengths from 20 on stand together; what a run met fewer than 20 times is left
    out. Colour is the layer; in the right panel dashes are what was turned.

    Args:
        lengths: `length_counts` of the seeds of one experiment, gathered.
        since: `surprisal_since_flush` of the same.
        turned: `flush_effects` of the same.
    """
    figure, axes = panels(ax, 1, 3, width, 2.35)
    frames = [_lengths(axes[0, 0], lengths), _since(axes[0, 1], since), _turned(axes[0, 2], turned)]
    frame = pd.concat(frames, ignore_index=True)
    below(figure, [_key(name, frame[frame["series"] == name]) for name in SERIES], columns=3)
    return attach(figure, frame)


def _key(name: str, drawn: pd.DataFrame) -> Line2D:
    """A series' entry in the legend; drawn: its rows, which may be of the right panel alone, or none."""
    style, label = _series(name), SERIES[name]
    if drawn.empty:
        return Line2D([], [], **style | {"linestyle": ""}, label=f"{label}: fewer than {ENOUGH} in a run, not drawn")
    turned = [kind for kind in FLUSHES if (drawn["panel"] == kind).any()]
    if set(drawn["panel"]) == set(turned):
        label = f"{name} (right panel alone: too few segments for the others)"
    return Line2D([], [], label=label, **style)


def _series(name: str) -> dict[str, Any]:
    if name.startswith("layer"):
        return {"color": look(name).colour}
    return {"color": "#4d4d4d", "linestyle": (0, (3, 1.4))}


def _curves(panel: Axes, frame: pd.DataFrame, style: Mapping[str, Any]) -> None:
    """Columns seed, x, value: every seed faint, the mean strong, where every seed has a value."""
    wide = frame.pivot(index="x", columns="seed", values="value").sort_index()
    for seed in wide:
        panel.plot(wide.index, wide[seed], linewidth=0.5, alpha=0.35, **style)
    panel.plot(wide.index, wide.mean(axis=1, skipna=False), linewidth=1.4, **style)


def _lengths(panel: Axes, lengths: pd.DataFrame) -> pd.DataFrame:
    rows = lengths[lengths["series"].isin(list(SERIES))].assign(x=lengths["length"].clip(upper=LONGEST))
    rows = rows[rows.groupby(["series", "seed"])["count"].transform("sum") >= ENOUGH]
    sums = rows.groupby(["series", "seed", "x"])["count"].sum()
    shares = (sums / sums.groupby(["series", "seed"]).transform("sum")).rename("value")
    runs = rows[["series", "seed"]].drop_duplicates()
    frame = runs.merge(pd.DataFrame({"x": range(1, LONGEST + 1)}), how="cross")
    frame = frame.merge(shares.reset_index(), how="left").fillna({"value": 0.0})
    for name in frame["series"].unique():
        _curves(panel, frame[frame["series"] == name], _series(name))
    panel.set(xlabel="length of a segment (steps)", ylabel="share of segments", ylim=(0, None))
    panel.set_xticks([1, 5, 10, 15, 20], ["1", "5", "10", "15", "20+"])
    panel.grid(axis="y")
    return frame.assign(panel="lengths")


def _since(panel: Axes, since: pd.DataFrame) -> pd.DataFrame:
    since = since[since["count"] >= ENOUGH]
    frame = since.rename(columns={"since": "x", "bits": "value"}).assign(series="layer " + since["layer"].astype(str))
    for name in frame["series"].unique():
        _curves(panel, frame[frame["series"] == name], _series(name))
    panel.set(xlabel="steps since the layer's FLUSH", ylabel="bits, next character")
    panel.grid(axis="y")
    return frame[["series", "seed", "x", "value"]].assign(panel="since")


def _turned(panel: Axes, turned: pd.DataFrame) -> pd.DataFrame:
    turned = turned[turned["number"] >= ENOUGH]
    frame = turned.assign(series="layer " + turned["layer"].astype(str), x=turned["distance"] + 1)
    frame["value"] = frame["loss_increase"] / np.log(2)
    frame = frame[frame["x"] <= LONGEST]
    for (name, kind), rows in frame.groupby(["series", "kind"]):
        _curves(panel, rows, {**_series(str(name)), "linestyle": FLUSHES[str(kind)]})
    panel.axhline(0, color="#9a9a9a", linewidth=0.6)
    panel.set(xlabel="predictions since the change", ylabel="loss increase (bits)")
    handles = [Line2D([], [], color="#4d4d4d", linestyle=dash, label=f"FLUSH {kind}") for kind, dash in FLUSHES.items()]
    panel.legend(handles=handles, loc="upper right")
    panel.grid(axis="y")
    return frame[["series", "seed", "x", "value"]].assign(panel=frame["kind"].to_numpy())


SHOWN = {"f1": "F1 above chance", "bits": "bits given the symbol,\nabove shuffled", "rate": "boundaries a step"}
QUANTITIES = {
    "boundary_rate": "boundaries a step",
    "clamped_share": "clamped $\\tilde{z}$, share of steps",
    "explained_share": "entropy of $z$ explained\nby the current symbol",
}
ROW = 0.19  # inches of a setting


@styled
def boundary_ladder(scores: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """How far the first layer's boundaries follow words in every setting: a row of panels for each text.

    Args:
        scores: Of `lab.probes.ladder_scores`; settings are drawn in the order in which they come.
        width: Inches of the whole figure.
        ax: Axes to divide, in place of a new figure.
    """
    texts, settings = list(dict.fromkeys(scores["text"])), list(dict.fromkeys(scores["setting"]))
    values = scores.assign(f1=scores["f1"] - scores["chance"], bits=scores["bits"] - scores["shuffled"])
    figure, axes = panels(ax, len(texts), 3, width, (0.7 + ROW * len(settings)) * len(texts), sharey=True)
    for line, text in zip(axes, texts, strict=True):
        here = values[values["text"] == text]
        for panel, (name, label) in zip(line, SHOWN.items(), strict=True):
            for y, setting in enumerate(settings):
                seeds_and_interval(panel, y, here.loc[here["setting"] == setting, name], color=look("hmlstm").colour)
            panel.axvline(here["base"].mean() if name == "rate" else 0, color="#404040", linewidth=0.8)
            panel.set_xlabel(label)
            name_lines(panel, settings)
        line[0].set_title(text, loc="left")
        line[2].set_title("line: of the words", loc="right", fontsize=6)
    frame = values.melt(["text", "setting", "seed"], list(SHOWN), var_name="quantity")
    return attach(figure, frame)


def detector_frame(history: pd.DataFrame) -> pd.DataFrame:
    """What training says of the first layer's detector on validation text: setting, seed, quantity, update, value."""
    named = history["metric"].str.extract(r"(\w+)/layer 1$")[0]
    rows = history.assign(quantity=named)[named.isin(list(QUANTITIES)) & history["split"].isin(["early", "valid"])]
    rows = rows.drop_duplicates(["setting", "seed", "quantity", "update"])
    return rows[["setting", "seed", "quantity", "update", "value"]].reset_index(drop=True)


@styled
def detector_training(history: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """The first layer's detector during training: its rate, what is clamped, and what the current symbol explains.

    Args:
        history: `lab.runs.histories({setting: runs, ...})`; the first setting is black, the mean of its seeds strong.
        width: Inches of the whole figure.
        ax: Axes to divide, in place of a new figure.
    """
    frame = detector_frame(history)
    settings = list(dict.fromkeys(frame["setting"]))
    hues = [colormaps["turbo"](place) for place in np.linspace(0.05, 0.95, max(len(settings) - 1, 1))]
    colours = dict(zip(settings, ["black", *hues], strict=False))
    figure, axes = panels(ax, 1, 3, width, 2.5)
    for panel, (name, label) in zip(axes[0], QUANTITIES.items(), strict=True):
        for setting in settings:
            here = frame[(frame["quantity"] == name) & (frame["setting"] == setting) & (frame["update"] > 0)]
            seeds_and_mean(panel, here, "update", "value", each=False, strong=1.0, color=colours[setting])
        panel.set_xscale("log")
        panel.set(xlabel="updates", ylabel=label, ylim=(-0.03, 1.03))
        panel.grid(axis="both")
    below(figure, [Line2D([], [], color=colours[setting], label=setting) for setting in settings])
    return attach(figure, frame)
