"""Boundaries judged: F1 beside detectors that know nothing, lengths of segments, and what a FLUSH does to the loss."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.panels import below, panels
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import COLUMN, OPERATIONS, PAGE, look, styled
from nlstm_lab.statistics import t_interval

# detectors: label, colour, marker; the network's own first
DETECTORS = {
    "network": ("z of the network", look("hmlstm").colour, "o"),
    "surprise": ("fires on surprise", "#e69f00", "D"),
    "periodic": ("periodic", "#56b4e9", "|"),
    "random": ("random", "#4d4d4d", "x"),
}


@styled
def boundary_scores(
    scores: pd.DataFrame, within: str = "0", metric: str = "f1", width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """How well z of each layer meets each truth, beside detectors that fire as often: a panel a layer, a line a truth.

    scores: `lab.probes.gather(networks, lab.probes.segment_studies.scores, excerpt)` of the seeds of one experiment.
    within: a window's name. Seeds are small, the bar is the t interval of their mean; rivals are means over seeds.

    UsageError: nothing was judged within that window, or more than one experiment.
    """
    rows = scores[scores["within"] == within]
    if rows.empty:
        raise UsageError(
            f"nothing was judged within {within!r}; there are {', '.join(sorted(scores['within'].unique()))}"
        )
    if rows["experiment"].nunique() > 1:
        raise UsageError("the figure shows the seeds of one experiment: choose one")
    frame = rows[["layer", "truth", "detector", "seed", metric]].rename(columns={metric: "value"})
    layers, truths = sorted(frame["layer"].unique()), list(dict.fromkeys(frame["truth"]))
    figure, axes = panels(ax, 1, len(layers), width, 0.95 + 0.27 * len(truths), sharex=True, sharey=True)
    for panel, layer in zip(axes[0], layers, strict=True):
        for y, truth in enumerate(truths):
            here = frame[(frame["layer"] == layer) & (frame["truth"] == truth)].set_index("detector")["value"]
            for detector, (_, colour, marker) in reversed(DETECTORS.items()):
                values = here.loc[[detector]]
                if detector != "network":
                    drawn = {"color": colour, "markersize": 4.5, "markeredgewidth": 1.1}
                    panel.plot(values.mean(), y - 0.24, marker, **drawn, zorder=3)
                    continue
                mean, low, high = t_interval(values)
                panel.plot([low, high], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt", zorder=4)
                panel.plot(values, [y + 0.28] * len(values), ".", color=colour, markersize=3, alpha=0.6)
                panel.plot(mean, y, marker, color=colour, markersize=4.5, zorder=5)
        panel.set(title=f"$z^{layer}$", xlim=(0, 1), ylim=(len(truths) - 0.5, -0.5), xlabel=_metric(metric, within))
        panel.tick_params(axis="y", length=0)
        panel.grid(axis="both")
    axes[0, 0].set_yticks(range(len(truths)), truths)
    below(figure, [_handle(*told) for told in DETECTORS.values()])
    return attach(figure, frame.reset_index(drop=True))


def _metric(metric: str, within: str) -> str:
    name = {"f1": "F1"}.get(metric, metric)
    return name if within == "0" else f"{name}, {within.replace('±1', '±1 step')}"


def _handle(label: str, colour: str, marker: str) -> Line2D:
    return Line2D([], [], color=colour, marker=marker, linestyle="", markersize=4.5, markeredgewidth=1.1, label=label)


SERIES = {"layer 1": "segments of layer 1", "layer 2": "segments of layer 2", "word ends": "words"}
LONGEST = 20
ENOUGH = 20  # of segments, steps or moments in a run; what was met less often is not drawn


@styled
def segment_lengths(
    lengths: pd.DataFrame, since: pd.DataFrame, turned: pd.DataFrame, width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """Three panels: how long segments are, the loss against the steps since a FLUSH, and what turning one costs.

    lengths, since, turned: `segment_studies.lengths`, `.since_flush` and `.flushes` of the seeds of one experiment,
    gathered. Every seed faint, the mean strong. Lengths from 20 on stand together; what a run
    met fewer than 20 times is left out.
    """
    figure, axes = panels(ax, 1, 3, width, 2.35)
    parts = [
        _lengths(axes[0, 0], lengths),
        _since(axes[0, 1], since),
        _turned(axes[0, 2], turned),
    ]
    names = [*SERIES.values()]
    styles: list[Mapping[str, Any]] = [_series(name) for name in SERIES]
    handles = [Line2D([], [], label=name, **style) for name, style in zip(names, styles, strict=True)]
    below(figure, handles, columns=3)
    return attach(figure, pd.concat(parts, ignore_index=True))


def _series(name: str) -> dict[str, Any]:
    if name.startswith("layer"):
        return {"color": look(name).colour}
    return {"color": "#4d4d4d", "linestyle": (0, (3, 1.4))}


def _curves(panel: Axes, frame: pd.DataFrame, style: Mapping[str, Any]) -> None:
    """Columns seed, x, value: every seed faint, the mean strong."""
    wide = frame.pivot(index="x", columns="seed", values="value").sort_index()
    for seed in wide:
        panel.plot(wide.index, wide[seed], linewidth=0.5, alpha=0.35, **style)
    panel.plot(wide.index, wide.mean(axis=1), linewidth=1.4, **style)


def _lengths(panel: Axes, lengths: pd.DataFrame) -> pd.DataFrame:
    rows = lengths[lengths["series"].isin(list(SERIES))].assign(x=lengths["length"].clip(upper=LONGEST))
    rows = rows[rows.groupby(["series", "seed"])["count"].transform("sum") >= ENOUGH]
    sums = rows.groupby(["series", "seed", "x"])["count"].sum()
    shares = (sums / sums.groupby(["series", "seed"]).transform("sum")).rename("value")
    runs = rows[["series", "seed"]].drop_duplicates()
    frame = runs.merge(pd.DataFrame({"x": range(1, LONGEST + 1)}), how="cross")
    frame = frame.merge(shares.reset_index(), how="left").fillna({"value": 0.0})
    for name in SERIES:
        if (frame["series"] == name).any():
            _curves(panel, frame[frame["series"] == name], _series(name))
    panel.set(xlabel="length of a segment (steps)", ylabel="share of segments", ylim=(0, None))
    panel.set_xticks([1, 5, 10, 15, 20], ["1", "5", "10", "15", "20+"])
    panel.grid(axis="y")
    return frame.assign(panel="lengths")


def _since(panel: Axes, since: pd.DataFrame) -> pd.DataFrame:
    since = since[since["count"] >= ENOUGH]
    frame = since.rename(columns={"since": "x", "bits": "value"}).assign(series="layer " + since["layer"].astype(str))
    for name in SERIES:
        if (frame["series"] == name).any():
            _curves(panel, frame[frame["series"] == name], _series(name))
    panel.set(xlabel="steps since the layer's FLUSH", ylabel="bits, next character")
    panel.grid(axis="y")
    return frame[["series", "seed", "x", "value"]].assign(panel="since")


def _turned(panel: Axes, turned: pd.DataFrame) -> pd.DataFrame:
    turned = turned[turned["number"] >= ENOUGH]
    frame = turned.assign(series="layer " + turned["layer"].astype(str), x=turned["distance"] + 1)
    frame["value"] = frame["loss_increase"] / np.log(2)
    frame = frame[frame["x"] <= LONGEST]
    dashes: dict[str, Any] = {"withheld": "-", "forced": (0, (1, 1))}
    for (name, kind), part in frame.groupby(["series", "kind"]):
        _curves(panel, part, {**_series(str(name)), "linestyle": dashes[str(kind)]})
    panel.axhline(0, color="#9a9a9a", linewidth=0.6)
    panel.set(xlabel="predictions since", ylabel="loss increase (bits)")
    handles = [Line2D([], [], color="#4d4d4d", linestyle=dashes[kind], label=f"FLUSH {kind}") for kind in dashes]
    panel.legend(handles=handles, loc="upper right")
    panel.grid(axis="y")
    return frame[["series", "seed", "x", "value"]].assign(panel=frame["kind"].to_numpy())


@styled
def ablation(
    frame: pd.DataFrame, reference: str, unit: str = "bits per character", width: float = COLUMN, ax: Axes | None = None
) -> Figure:
    """One line a setting: every seed, the mean and its t interval; a thin line stands where the reference does.

    frame: columns setting, seed, value, in the order of the lines. UsageError: no such reference.
    """
    settings = list(dict.fromkeys(frame["setting"]))
    if reference not in settings:
        raise UsageError(f"there is no setting {reference!r}; there are {', '.join(settings)}")
    figure, axes = panels(ax, 1, 1, width, 0.5 + 0.21 * len(settings))
    panel: Axes = axes[0, 0]
    for y, setting in enumerate(settings):
        values = frame.loc[frame["setting"] == setting, "value"]
        mean, low, high = t_interval(values)
        colour = OPERATIONS["FLUSH"].colour if setting == reference else look("hmlstm").colour
        panel.plot(values, [y + 0.26] * len(values), ".", color=colour, markersize=3, alpha=0.6)
        panel.plot([low, high], [y, y], color=colour, linewidth=1.4, solid_capstyle="butt")
        panel.plot(mean, y, "o", color=colour, markersize=4)
    panel.axvline(frame.loc[frame["setting"] == reference, "value"].mean(), color="#9a9a9a", linewidth=0.6, zorder=0)
    panel.set(ylim=(len(settings) - 0.4, -0.6), xlabel=unit)
    panel.set_yticks(range(len(settings)), settings)
    panel.tick_params(axis="y", length=0)
    panel.grid(axis="x")
    return attach(figure, frame.reset_index(drop=True))
