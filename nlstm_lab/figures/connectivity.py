"""Connectivity: the article's figure for one sentence, and how far it reaches over many texts and seeds."""

from collections.abc import Mapping
from textwrap import fill
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.activations import MONO, wrap
from nlstm_lab.figures.panels import model_handles, model_style
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import COLUMN, DIVERGING, PAGE, canvas, in_order, look, sheet, styled
from nlstm_lab.statistics import t_interval

Scale = Literal["row", "figure", "log"]
STRENGTH = LinearSegmentedColormap.from_list("strength", ["#ffffff", "#c6def0", "#6aaad2", "#2166ac", "#053061"])
DECADES = 4  # of a logarithmic scale: what is weaker is as good as nothing
MARKS = (20, 20)  # lags: a line may leave the axis before its last point
GREY, DASHED = "#404040", (0, (2, 1.2))
INTERVAL, PUBLISHED = "95 % t interval", "published (one sentence)"

# inches: a character's width and height, and what stands around a facet's lines
PITCH, LINE, TITLE, GAP, BAR, SIDE = 0.083, 0.175, 0.22, 0.10, 0.36, 0.06


@styled
def connectivity_sentence(
    data: Mapping[str, xr.Dataset], at: int, scale: Scale = "row", width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """Which characters the prediction at position `at` depends on, a facet for each network (Madsen's article).

    Signed connectivities are red where negative.

    Args:
        data: By model, what `lab.probes.connectivity` (or `published_connectivity`) gave, all of one text.
        at: The position that is selected, framed; beside each name stand its target and its three likeliest words.
        scale: Shades relative to each network's own largest connectivity ("row", as in the article), to the largest of
            all ("figure"), or its logarithm over four decades ("log").

    Raises:
        UsageError: There is no network, no such position or scale, or the texts differ.
    """
    frame = sentence_frame(data, at, scale)
    signed = bool((frame["shade"] < 0).any())
    names = in_order(data)
    symbols = [str(symbol) for symbol in data[names[0]]["symbol"].values]
    lines = wrap(symbols, int((width - 2 * SIDE) / PITCH))
    facet = TITLE + LINE * len(lines) + GAP
    height = facet * len(names) + BAR
    figure, ax = sheet(ax, width, height)
    colours, norm = (DIVERGING, Normalize(-1, 1)) if signed else (STRENGTH, Normalize(0, 1))
    for k, name in enumerate(names):
        top = k * facet
        ax.text(SIDE, top + TITLE - 0.06, look(name).label, color=look(name).colour, fontweight="bold")
        # words are no formula, whatever dollar signs they have
        style: dict[str, Any] = {"ha": "right", "fontsize": 7, "parse_math": False}
        selected = data[name].isel(time=at)
        likeliest = zip(selected["prediction"].values, selected["probability"].values, strict=True)
        words = ",  ".join(f"{word} {100 * p:.0f} %" for word, p in likeliest)
        said = f"target: {selected['target'].item() or 'none'}    likeliest: {words}"
        ax.text(width - SIDE, top + TITLE - 0.06, said, **style)
        shades = frame.loc[frame["model"] == name, "shade"].to_numpy()
        for row, (start, stop) in enumerate(lines):
            y = top + TITLE + row * LINE
            across = SIDE + PITCH * np.arange(stop - start + 1)
            drawn: dict[str, Any] = {"cmap": colours, "norm": norm, "linewidth": 0}
            ax.pcolormesh(across, [y, y + LINE - 0.03], shades[None, start:stop], **drawn)
            for place in range(start, stop):
                _character(ax, SIDE + (place - start + 0.5) * PITCH, y, symbols[place], shades[place], place - at)
    _bar(ax, width, height, colours, norm, scale)
    return attach(figure, frame, {"connectivity": LIVE, "shade": LIVE})


def sentence_frame(data: Mapping[str, xr.Dataset], at: int, scale: Scale = "row") -> pd.DataFrame:
    """What the figure shows: model, time, symbol, connectivity, and its shade from 0 (or -1) to 1."""
    if scale not in get_args(Scale):
        raise UsageError(f"scale must be one of {', '.join(map(repr, get_args(Scale)))}, not {scale!r}")
    if not data or len({"".join(rows["symbol"].values) for rows in data.values()}) != 1:
        raise UsageError("the figure compares networks on one text: hand in at least one, all of the same text")
    length = next(iter(data.values())).sizes["time"]
    if not 0 <= at < length:
        raise UsageError(f"there is no position {at}: the text has the positions 0 to {length - 1}")
    frames = []
    for name in in_order(data):
        row = data[name].isel(time=at)
        values, start = np.zeros(length), int(row["window"])
        here = row["connectivity"].values[: length - start]
        values[start : start + len(here)] = here
        symbols = data[name]["symbol"].values
        about = {"model": name, "time": np.arange(length), "symbol": symbols}
        frames.append(pd.DataFrame(about | {"connectivity": values}))
    frame = pd.concat(frames, ignore_index=True)
    size = frame["connectivity"].abs()
    largest = size.groupby(frame["model"]).transform("max") if scale == "row" else size.max()
    strength = (size / largest).fillna(0).to_numpy()
    if scale == "log":
        strength = np.maximum(1 + np.log10(np.maximum(strength, 10.0**-DECADES)) / DECADES, 0)
    return frame.assign(shade=strength * np.sign(frame["connectivity"].fillna(0).to_numpy()))


def _character(ax: Axes, x: float, y: float, symbol: str, shade: float, place: int) -> None:
    """One character on its shade; the selected one (place 0) in a frame, what comes after it faint."""
    if place == 0:
        corners = np.array([[-0.5, 0], [0.5, 0], [0.5, 1], [-0.5, 1], [-0.5, 0]]) * (PITCH, LINE - 0.03)
        ax.plot(x + corners[:, 0], y + corners[:, 1], color="#b2182b", linewidth=1.0)
    colour = "#b0b0b0" if place > 0 else "white" if abs(shade) > 0.6 else "#1c1c1c"
    style: dict[str, Any] = {"fontsize": 7, "family": MONO, "color": colour, "parse_math": False}
    ax.text(x, y + 0.105, symbol.strip(), ha="center", va="baseline", **style)


def _bar(ax: Axes, width: float, height: float, colours: Colormap, norm: Normalize, scale: Scale) -> None:
    """What the shades mean."""
    low, high = float(norm.vmin or 0), float(norm.vmax or 1)
    left, top = width / 2 - 0.7, height - BAR + 0.06
    shades = np.linspace(low, high, 128)
    ax.pcolormesh(left + np.linspace(0, 1.4, 129), [top, top + 0.07], shades[None], cmap=colours, norm=norm)
    all_of = "of the largest of all"
    whose = {"row": "of its own largest", "log": f"{all_of}, logarithmic"}.get(scale, all_of)
    weakest = f"10$^{{-{DECADES}}}$ or less" if scale == "log" else f"{low:.0f}"
    ax.text(left - 0.05, top + 0.06, weakest, ha="right", va="baseline", fontsize=6)
    ax.text(left + 1.45, top + 0.06, f"1, connectivity as a share {whose}", va="baseline", fontsize=6)


@styled
def lag_profiles(
    means: pd.DataFrame,
    published: pd.DataFrame | None = None,
    ours: str = "ours",
    width: float = COLUMN,
    ax: Axes | None = None,
) -> Figure:
    """The share of the connectivity at each lag: seeds faint, the mean strong, its t interval a band; five decades.

    Mean and interval are those of the logarithm, as the axis is: an interval of shares themselves would reach below
    zero.

    Args:
        means: `lab.probes.gather(networks, lab.probes.connectivity_lags, sequences)`, of which all positions are drawn.
        published: The same columns without seeds, dashed.
        ours: What the legend calls what is not published.

    Raises:
        UsageError: There is nothing to draw.
    """
    frame = _chosen(means, "all", "share_at_lag", published)
    figure, ax = canvas(ax, width, 0.82 * width)
    seed_lines(ax, frame, logarithmic=True)
    lowest = max(float(frame["value"].min()), 10.0**-DECADES / 10)
    ax.set(xlabel="lag (characters)", ylabel="share of the connectivity", yscale="log", ylim=(lowest, 1))
    ax.grid(axis="y")
    handles = seed_handles(frame, f"{ours}, geometric mean")
    for handle in handles:
        handle.set_label(fill(str(handle.get_label()), 25))  # two columns of them are as wide as the figure
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, columnspacing=1)
    return attach(figure, frame)


@styled
def connectivity_reach(
    means: pd.DataFrame,
    published: pd.DataFrame | None = None,
    ours: str = "ours",
    width: float = COLUMN,
    ax: Axes | None = None,
) -> Figure:
    """The mean lag of each model at all positions, word starts and within words.

    A dot stands for each seed, a bar for their mean, a line for its t interval (from three seeds on).

    Args:
        means: As for `lag_profiles`.
        published: The article's own, without seeds, as open diamonds.
        ours: As for `lag_profiles`.

    Raises:
        UsageError: There is nothing to draw.
    """
    frame = _chosen(means, None, "mean_lag", published)
    models, places = in_order(frame["model"]), ["all", "word start", "within word"]
    figure, ax = canvas(ax, width, 0.68 * width)
    for k, place in enumerate(places):
        for m, model in enumerate(models):
            here = frame[(frame["where"] == place) & (frame["model"] == model)]
            x, colour = k + (m - (len(models) - 1) / 2) * 0.24, look(model).colour
            seeds = here.loc[here["source"] == "ours", "value"].to_numpy()
            interval = t_interval(seeds)
            ax.plot(np.full(len(seeds), x), seeds, "o", color=colour, alpha=0.45, markersize=2.5, markeredgewidth=0)
            ax.plot([x - 0.09, x + 0.09], [interval.mean] * 2, color=colour, linewidth=2)
            ax.plot([x, x], [interval.low, interval.high], color=colour, linewidth=0.9)
            theirs = here.loc[here["source"] == "published", "value"]
            diamond: dict[str, Any] = {"color": colour, "markerfacecolor": "white", "markersize": 4.5, "zorder": 1}
            ax.plot(np.full(len(theirs), x), theirs, "D", **diamond)
    ax.set_xticks(range(len(places)), ["all positions", "word starts", "within words"])
    ax.tick_params(axis="x", length=0)
    ax.set(ylabel="mean lag (characters)", ylim=(0, None))
    ax.grid(axis="y")
    handles = model_handles(models, linewidth=2, marker="")
    handles.append(Line2D([], [], color=GREY, linewidth=2, label=f"{ours}, mean"))
    handles.append(Line2D([], [], color=GREY, marker="|", markersize=7, linestyle="", label=INTERVAL))
    if published is not None:
        handles.append(Line2D([], [], color=GREY, marker="D", linestyle="", markerfacecolor="white", label=PUBLISHED))
    ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, columnspacing=1)
    return attach(figure, frame)


def _chosen(means: pd.DataFrame, where: str | None, quantity: str, published: pd.DataFrame | None) -> pd.DataFrame:
    """The rows to draw, ours and the published, distinguished by `source`."""
    frames = [means.assign(source="ours"), *([published.assign(source="published")] if published is not None else [])]
    frame = pd.concat(frames, ignore_index=True)
    chosen = frame[(frame["quantity"] == quantity) & ((frame["where"] == where) if where else True)]
    if chosen.empty:
        raise UsageError(f"there is nothing to draw: no {quantity!r}{f' at {where!r}' if where else ''} was measured")
    return chosen.reset_index(drop=True)


def seed_lines(ax: Axes, frame: pd.DataFrame, logarithmic: bool = False) -> None:
    """value against lag for each model: its seeds faint, their mean (of log10) strong, its interval a band."""
    for model in in_order(frame["model"]):
        rows, colour = frame[frame["model"] == model], look(model).colour
        ours, theirs = (rows[rows["source"] == source] for source in ("ours", "published"))
        for _, one in ours.groupby("seed"):
            ax.plot(one["lag"], one["value"], color=colour, linewidth=0.6, alpha=0.35)
        if len(ours):
            by_lag = (np.log10(ours["value"]) if logarithmic else ours["value"]).groupby(ours["lag"])
            style = np.array([t_interval(values) for _, values in by_lag]).T
            mean, low, high = 10**style if logarithmic else style
            lags = np.sort(ours["lag"].unique())
            ax.plot(lags, mean, **model_style(model) | {"markevery": MARKS})
            ax.fill_between(lags, low, high, color=colour, alpha=0.15, linewidth=0)
        if len(theirs):
            ax.plot(theirs["lag"], theirs["value"], color=colour, linestyle=DASHED, linewidth=0.9)


def seed_handles(frame: pd.DataFrame, line: str) -> list[Artist]:
    """Legend entries of `seed_lines` on a logarithmic axis: models, what their `line` is, the published, the band."""
    handles: list[Artist] = [*model_handles(frame["model"]), Line2D([], [], color=GREY, label=line)]
    if (frame["source"] == "published").any():
        handles.append(Line2D([], [], color=GREY, linestyle=DASHED, linewidth=0.9, label=PUBLISHED))
    return [*handles, Patch(color=GREY, alpha=0.15, linewidth=0, label=f"{INTERVAL} of the logarithm")]
