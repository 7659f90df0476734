"""What one ablation does along a text."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlstm_lab.errors import UsageError
from nlstm_lab.figures import panels
from nlstm_lab.figures.activations import MONO
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import PAGE, glyph, styled

BEFORE = 12  # characters that are drawn before a cut
INTACT, CUT = "#4d4d4d", "#b2182b"


@styled
def cut_along_text(
    symbols: Sequence[str],
    moment: int,
    intact: np.ndarray,
    cut: np.ndarray,
    divergence: np.ndarray,
    what: str = "",
    width: float = PAGE,
    ax: Axes | None = None,
) -> Figure:
    """What one cut does to every prediction that follows: surprise with and without it, and the divergence.

    The characters stand below, where they were read: the point above each is of the prediction of the next. They begin
    a few before the moment and end with the last that was read after it.

    Args:
        symbols: The text's symbols.
        moment: The step of the cut.
        intact: The surprisal of the whole text, [time], in bits.
        cut: The surprisal after the cut, [distance], from `moment` on, in bits.
        divergence: Of the predictions after the cut, [distance], in nats.
        what: What was cut, for the title.

    Raises:
        UsageError: Nothing was read after the cut.
    """
    if np.isnan(cut).all():
        raise UsageError("nothing follows the cut: make it earlier, or lengthen the text")
    start, stop = max(moment - BEFORE, 0), moment + len(cut)
    effect = pd.DataFrame({"time": np.arange(start, stop), "symbol": list(symbols[start:stop]), "moment": moment})
    effect["bits"] = intact[start:stop]
    for name, values in (("bits_cut", cut), ("divergence", divergence)):
        effect[name] = np.concatenate([np.full(moment - start, np.nan), values])
    figure, axes = panels.panels(ax, 2, 1, width, 2.9, sharex=True)
    (upper,), (lower,) = axes
    upper.plot(effect["time"], effect["bits"], color=INTACT, label="intact")
    upper.plot(effect["time"], effect["bits_cut"], color=CUT, label="cut", linestyle=(0, (3.5, 1.5)))
    upper.set_ylabel("surprise (bits)")
    upper.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    lower.plot(effect["time"], effect["divergence"], color=CUT)
    lower.set_ylabel("divergence (nats)")
    lower.set_ylim(bottom=0)
    for panel in (upper, lower):
        panel.axvline(moment - 0.5, color="#808080", linewidth=0.6, linestyle=(0, (3, 1.5)))
        panel.grid(axis="y")
    upper.set_title(what)
    glyphs = [glyph(symbol) for symbol in effect["symbol"]]
    lower.set_xticks(effect["time"], glyphs, family=MONO, fontsize=min(7.0, 560 / len(glyphs)))
    for label in lower.get_xticklabels():
        label.set_verticalalignment("baseline")
    lower.tick_params(axis="x", length=0, pad=8)
    upper.tick_params(axis="x", length=0, labelbottom=False)
    lower.set_xlim(effect["time"].iloc[0] - 0.5, effect["time"].iloc[-1] + 0.5)
    return attach(figure, effect, dict.fromkeys(("bits", "bits_cut", "divergence"), LIVE))
