"""Patch maps, and what share of a word's effect each memory carries."""

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.activations import MONO
from nlstm_lab.figures.panels import below, memory_grid, memory_handles, memory_label, panels
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import DIVERGING, PAGE, glyph, styled

KINDS = {"patched": "patched", "attributed": "first order"}
FEW = 0.1  # of the largest effect: where the pairs that are so long have less, a share is not drawn


@styled
def patch_map(found: xr.Dataset, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """What patching each memory before each character restores, and its first-order approximation below.

    Red restores nothing but the opposite, blue the clean preference.

    Args:
        found: `lab.probes.patch_map(...)`.

    Raises:
        UsageError: The clean and the corrupted text are followed by the same preference.
    """
    effect = found.attrs["clean"] - found.attrs["corrupted"]
    if effect == 0:
        raise UsageError("the two texts do not differ in the preference: there is nothing to restore")
    frame = found[list(KINDS)].to_dataframe().reset_index()
    for kind in KINDS:
        frame[kind] /= effect
    names = [str(name) for name in found["memory"].values][::-1]
    figure, axes = panels(ax, len(KINDS), 1, width, 0.9 + 0.4 * len(names), sharex=True)
    bound = max(1.0, float(np.abs(frame["patched"]).max()))
    for (panel,), (kind, label) in zip(axes, KINDS.items(), strict=True):
        values = found[kind].sel(memory=names).values / effect
        image = panel.imshow(values, cmap=DIVERGING, vmin=-bound, vmax=bound, aspect="auto", interpolation="nearest")
        panel.set_yticks(range(len(names)), [memory_label(name) for name in names])
        panel.set_title(label)
        panel.tick_params(length=0)
        panel.grid(False)
    panel.set_xticks(range(found.sizes["time"]), [glyph(str(each)) for each in found["symbol"].values], family=MONO)
    panel.set_xlabel("the character that is read next")
    figure.colorbar(image, ax=axes.ravel().tolist(), label="restored share")
    return attach(figure, frame, dict.fromkeys(KINDS, LIVE))


@styled
def carried(patches: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """The share of a word's effect that each memory carries, against the characters since the word.

    A column of panels is a network, a row what is read; every seed is faint, the mean strong; a hidden state is dashed.

    Args:
        patches: `lab.probes.gather(networks, lab.probes.patches)`.

    Raises:
        UsageError: No network can do any of the pairs.
    """
    keys = ["model", "start", "seed", "family", "memory", "time"]
    sums = patches[patches["effect"] > 0].groupby(keys, sort=False)[["patched", "effect"]].sum().reset_index()
    if sums.empty:
        raise UsageError("no network can do any of the pairs: there is nothing to draw")
    largest = sums.groupby(["model", "start", "seed", "family"])["effect"].transform("max")
    frame = sums[sums["effect"] >= FEW * largest].assign(share=lambda each: each["patched"] / each["effect"])
    families = dict.fromkeys(frame["family"])
    rows = {f"{family}\nrestored share": (frame[frame["family"] == family], "share") for family in families}
    size = width, 0.7 + 1.3 * len(families)
    figure, axes = memory_grid(ax, size, rows, "time", "characters since the word", sharex=True, sharey=True)
    for panel in axes.flat:
        panel.axhline(0, color="#808080", linewidth=0.6)
        panel.set_ylim(-0.3, 1.2)
    below(figure, memory_handles(frame))
    return attach(figure, frame)
