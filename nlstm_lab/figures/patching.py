"""Patch maps."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.plots import memory_label, subplots
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import COLUMN, DIVERGING, MONO, glyph, styled

KINDS = {"patched": "patched", "attributed": "first order"}


@styled
def patch_map(found: xr.Dataset, width: float = COLUMN) -> Figure:
    """What patching each memory before each character restores, and its first-order approximation below.

    Red restores nothing but the opposite, blue the clean preference.

    Args:
        found: `lab.probes.patch(...)` of one pair.

    Raises:
        UsageError: The clean and the corrupted text are followed by the same preference.
    """
    effect = float(found["effect"])
    if effect == 0:
        raise UsageError("the two texts do not differ in the preference: there is nothing to restore")
    frame = found[list(KINDS)].to_dataframe().reset_index()
    for kind in KINDS:
        frame[kind] /= effect
    names = [str(name) for name in found["memory"].values][::-1]
    figure, axes = subplots(len(KINDS), 1, width=width, height=1.3 + 0.36 * len(names), sharex=True)
    bound = max(1.0, float(np.abs(frame["patched"]).max()))
    for (panel,), (kind, label) in zip(axes, KINDS.items(), strict=True):
        values = found[kind].sel(memory=names).values / effect
        image = panel.imshow(values, cmap=DIVERGING, vmin=-bound, vmax=bound, aspect="auto", interpolation="nearest")
        panel.set_yticks(range(len(names)), [memory_label(name) for name in names])
        panel.set_title(label)
        panel.tick_params(length=0)
        panel.grid(False)
    symbols = [glyph(str(each)) or "␣" for each in found["symbol"].values]
    panel.set_xticks(range(found.sizes["time"]), symbols, family=MONO)
    panel.set_xlabel("the character that is read next")
    figure.colorbar(image, ax=axes.ravel().tolist(), location="bottom", shrink=0.6, label="restored share")
    return attach(figure, frame, dict.fromkeys(KINDS, LIVE))
