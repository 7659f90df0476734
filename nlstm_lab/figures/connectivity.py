"""What predictions depend on: connectivity of a sentence and the unrolled network (Madsen's article), patch maps."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from nlstm_lab.errors import UsageError
from nlstm_lab.figures import style
from nlstm_lab.figures.activations import broken_lines
from nlstm_lab.figures.plots import memory_label, subplots
from nlstm_lab.figures.saving import LIVE, attach
from nlstm_lab.figures.sheets import Point
from nlstm_lab.figures.style import COLUMN, PAGE, in_order, look, shades, sheet, styled, write
from nlstm_lab.settings import choice

Shading = Literal["row", "figure", "log"]
DECADES = 4  # of a logarithmic scale: what is weaker is as good as nothing

# inches: a character's width and height, and what stands around a facet's lines
PITCH, LINE, TITLE, GAP, BAR, SIDE = 0.083, 0.175, 0.22, 0.10, 0.36, 0.06
LETTER = 0.053  # of 7 points


@styled
def connectivity_sentence(
    data: Mapping[str, xr.Dataset], at: int, scale: Shading = "row", width: float = PAGE
) -> Figure:
    """Which characters the prediction at position `at` depends on, a facet for each network; red where negative.

    Args:
        data: By model, what `lab.probes.connectivity` gave, all of one text.
        at: The position that is selected, framed; beside each name stand its target and its three likeliest words.
        scale: Shades relative to each network's own largest connectivity ("row", as in the article), to the largest of
            all ("figure"), or its logarithm over four decades ("log").
    """
    frame = sentence_frame(data, at, scale)
    signed = bool((frame["shade"] < 0).any())
    names = in_order(data)
    symbols = [str(symbol) for symbol in data[names[0]]["symbol"].values]
    lines = broken_lines(symbols, int((width - 2 * SIDE) / PITCH))
    said = {name: _said(data[name].isel(time=at)) for name in names}
    narrow = max(map(len, said.values())) * LETTER + 0.8 > width  # then what is predicted has a line of its own
    title = TITLE * (2 if narrow else 1)
    facet = title + LINE * len(lines) + GAP
    height = facet * len(names) + BAR
    figure, ax = sheet(width, height)
    colours, norm = (style.DIVERGING, Normalize(-1, 1)) if signed else (style.STRENGTH, Normalize(0, 1))
    for k, name in enumerate(names):
        top = k * facet
        write(ax, SIDE, top + TITLE - 0.06, look(name).label, color=look(name).colour, fontweight="bold")
        place, align = (SIDE, "left") if narrow else (width - SIDE, "right")
        # words are no formula, whatever dollar signs they have
        write(ax, place, top + title - 0.06, said[name], align, parse_math=False)
        shade = frame.loc[frame["model"] == name, "shade"].to_numpy()
        for row, (start, stop) in enumerate(lines):
            y, tall = top + title + row * LINE, LINE - 0.03
            across = SIDE + PITCH * np.arange(stop - start + 1)
            ax.pcolormesh(across, [y, y + tall], shade[None, start:stop], cmap=colours, norm=norm, linewidth=0)
            for x, here in zip(across, range(start, stop), strict=False):
                if here == at:
                    ax.add_patch(Rectangle((x, y), PITCH, tall, fill=False, edgecolor="#b2182b", linewidth=1.0))
                # what comes after the selected character is faint
                colour = "#b0b0b0" if here > at else "white" if abs(shade[here]) > 0.6 else "#1c1c1c"
                how: dict[str, Any] = {"family": style.MONO, "color": colour, "parse_math": False}
                write(ax, x + PITCH / 2, y + 0.105, symbols[here].strip(), "center", **how)
    whose = {"row": "its own largest", "log": "the largest, logarithmic"}.get(scale, "the largest of all")
    weakest = f"10$^{{-{DECADES}}}$ or less" if scale == "log" else f"{norm.vmin:.0f}"
    left = SIDE + LETTER * (len(weakest) if scale != "log" else 11)
    shades(ax, left, height - BAR + 0.09, colours, norm, weakest, f"1, connectivity as a share of {whose}", 0.7)
    return attach(figure, frame, {"connectivity": LIVE, "shade": LIVE})


def _said(selected: xr.Dataset) -> str:
    """What the selected prediction should be, and what it is."""
    likeliest = zip(selected["prediction"].values, selected["probability"].values, strict=True)
    words = ",  ".join(f"{word} {100 * p:.0f} %" for word, p in likeliest)
    return f"target: {selected['target'].item() or 'none'}    likeliest: {words}"


def sentence_frame(data: Mapping[str, xr.Dataset], at: int, scale: Shading = "row") -> pd.DataFrame:
    """What the figure shows: model, time, symbol, connectivity, and its shade from 0 (or -1) to 1."""
    choice(scale, "scale", Shading)
    if not data or len({"".join(rows["symbol"].values) for rows in data.values()}) != 1:
        raise UsageError("the figure compares networks on one text: hand in at least one, all of the same text")
    length = next(iter(data.values())).sizes["time"]
    if not 0 <= at < length:
        raise UsageError(f"there is no position {at}: the text has the positions 0 to {length - 1}")
    frames = []
    for name in in_order(data):
        about = {"model": name, "time": range(length), "symbol": data[name]["symbol"]}
        frames.append(pd.DataFrame(about | {"connectivity": data[name]["connectivity"][at]}))
    frame = pd.concat(frames, ignore_index=True)
    size = frame["connectivity"].abs()
    largest = size.groupby(frame["model"]).transform("max") if scale == "row" else size.max()
    strength: Any = (size / largest).fillna(0)
    if scale == "log":
        strength = (1 + np.log10(strength.clip(10.0**-DECADES)) / DECADES).clip(0)
    return frame.assign(shade=strength * np.sign(frame["connectivity"].fillna(0)))


FADED = Normalize(-8, 0)  # decades of the unrolled network's shades: what is weaker is white
HEAD, ROW, RADIUS = 0.4, 0.36, 0.1  # inches: above a network, of a row, and of a state
DISTANCES = (0, 1, 2, 4, 8, 16, 32, 64)  # neighbours alone would end where the units begin to part


@styled
def unrolled_networks(means: pd.DataFrame, models: Sequence[str], width: float = COLUMN) -> Figure:
    """Networks unrolled back from their last step: each h and each input as dark as the gradient that reaches it.

    The gradient is that of the last hidden state. A shade is a logarithm over eight decades, relative to the same row's
    at distance 0, so that rows and networks are compared by how they fade. Dotted arrows stand for several steps.

    Args:
        means: `lab.probes.gather(networks, lab.probes.gradients, sequences)`, of one condition.
        models: The networks' names in `means`, from top to bottom, or on a page's width side by side.
    """
    frames = [_faded(means, model) for model in models]
    abreast = len(models) if width > PAGE - 0.5 else 1
    wide, rows = width / abreast, max(frame["where"].nunique() for frame in frames)
    tall = HEAD + ROW * rows + 0.3
    height = tall * -(-len(models) // abreast) + 0.2
    figure, ax = sheet(width, height)
    for k, frame in enumerate(frames):
        left, top = k % abreast * wide, k // abreast * tall
        write(ax, left + 0.04, top + 0.13, frame.attrs["title"])
        _unrolled(ax, frame, left + 0.25, top + HEAD, (wide - 0.3) / len(DISTANCES))
    words = f"10$^{{{FADED.vmin:g}}}$ or less", "1, gradient relative to its row's at $t$"
    shades(ax, 0.75, height - 0.14, style.STRENGTH, FADED, *words, 0.45)
    return attach(figure, pd.concat(frames, ignore_index=True))


def _faded(means: pd.DataFrame, model: str) -> pd.DataFrame:
    """The gradients of one network, each relative to the same row's at distance 0: where, lag, value, model."""
    frame = means[(means["model"] == model) & means["lag"].isin(DISTANCES)]
    conditions = frame["condition"].unique()
    if frame["lag"].nunique() < len(DISTANCES) or len(conditions) > 1:
        there = f"there are those to {frame['lag'].max()} of {', '.join(conditions) or 'no condition'}"
        raise UsageError(f"gradients of {model!r} to {max(DISTANCES)} steps back of one condition are needed: {there}")
    frame = frame.groupby(["where", "lag"])["value"].mean().reset_index()
    frame["value"] -= frame.groupby("where")["value"].transform("first")
    frame.attrs["title"] = f"{look(model).label}, {conditions[0]}"
    return frame.assign(model=model)


def _unrolled(ax: Axes, frame: pd.DataFrame, left: float, top: float, pitch: float) -> None:
    """One network: a column a distance, the nearest at the right."""
    rows = sorted(frame["where"].unique(), key=lambda where: (where != "input", where))

    def at(k: int, row: int) -> Point:
        return left + (len(DISTANCES) - k - 0.5) * pitch, top + (len(rows) - row - 0.5) * ROW

    for where, lag, value in frame[["where", "lag", "value"]].itertuples(index=False):
        k, row = DISTANCES.index(lag), rows.index(where)
        _arrow(ax, at(k, row), at(k, row + 1), faint=k > 0 and row + 1 == len(rows))
        if row and k:
            _arrow(ax, at(k, row), at(k - 1, row), dotted=lag - DISTANCES[k - 1] > 1)
        shade = style.STRENGTH(FADED(max(value, FADED.vmin)))
        ax.add_patch(Circle(at(k, row), RADIUS, facecolor=shade, edgecolor="#404040", linewidth=0.7, zorder=3))
    for k, lag in enumerate(DISTANCES):
        write(ax, at(k, 0)[0], at(k, 0)[1] + 0.24, f"$t-{lag}$" if lag else "$t$", "center", 6)
    for row, where in enumerate(rows):
        words = f"$h^{{{where.split()[-1]}}}$" if row else "$x$"
        write(ax, at(len(DISTANCES) - 1, row)[0] - 0.14, at(0, row)[1], words, "right", va="center")
    write(ax, *at(0, len(rows)), "target", "center", 6)


def _arrow(ax: Axes, start: Point, end: Point, faint: bool = False, dotted: bool = False) -> None:
    """From node to node; faint where no gradient is computed, dotted where steps are left out."""
    how: dict[str, Any] = {"arrowstyle": "-|>,head_width=0.12,head_length=0.2", "linewidth": 0.7}
    how |= dict.fromkeys(("shrinkA", "shrinkB"), 72 * (RADIUS + 0.015)) | {"color": "#d0d0d0" if faint else "#404040"}
    if dotted:  # and level; its head is solid
        ax.annotate("", end, start, arrowprops=how | {"arrowstyle": "-", "linestyle": (0, (1, 2))})
        start, how["shrinkA"] = (end[0] - RADIUS - 0.045, end[1]), 0
    ax.annotate("", end, start, arrowprops=how)


KINDS = {"patched": "patched", "attributed": "first order"}


@styled
def patch_map(found: xr.Dataset, width: float = COLUMN) -> Figure:
    """What patching each memory before each character restores (red the opposite), and its first-order approximation.

    Args:
        found: `lab.probes.patch(...)` of one pair, whose texts are followed by different preferences (or UsageError).
    """
    if not set(KINDS) <= set(found) or set(found["patched"].dims) != {"memory", "time"}:
        raise UsageError("found must be lab.probes.patch(...) of one pair, over memory and time alone")
    effect = float(found["effect"])
    if effect == 0:
        raise UsageError("the two texts do not differ in the preference: there is nothing to restore")
    found = found[list(KINDS)].transpose("memory", "time") / effect
    names = found["memory"].values.astype(str)[::-1]
    figure, axes = subplots(len(KINDS), 1, width=width, height=1.3 + 0.36 * len(names), sharex=True)
    bound = max(1.0, float(np.abs(found["patched"]).max()))
    how: dict[str, Any] = {"cmap": style.DIVERGING, "vmin": -bound, "vmax": bound, "interpolation": "nearest"}
    for (panel,), (kind, label) in zip(axes, KINDS.items(), strict=True):
        image = panel.imshow(found[kind].sel(memory=names), aspect="auto", **how)
        panel.set_yticks(range(len(names)), [memory_label(name, names) for name in names])
        panel.set_title(label)
        panel.tick_params(length=0)
        panel.grid(False)
    if "symbol" in found.coords:
        symbols = [style.glyph(str(each)) or "␣" for each in found["symbol"].values]
        panel.set_xticks(range(found.sizes["time"]), symbols, family=style.MONO)
    panel.set_xlabel(f"the {'character' if 'symbol' in found.coords else 'step'} that is read next")
    figure.colorbar(image, ax=axes.ravel().tolist(), location="bottom", shrink=0.6, label="restored share")
    frame = found.to_dataframe()[[*KINDS, *({"symbol"} & set(found.coords))]].reset_index()
    return attach(figure, frame, dict.fromkeys(KINDS, LIVE))
