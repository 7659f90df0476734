"""What is lost when a memory is cut, and how far back a network looks."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter

from nlstm_lab.errors import UsageError
from nlstm_lab.figures import panels
from nlstm_lab.figures.activations import MONO
from nlstm_lab.figures.plotted import LIVE, attach
from nlstm_lab.figures.style import COLUMN, PAGE, glyph, in_order, look, styled

EFFECTS = {"kl": "KL(intact ‖ cut), nats", "loss_increase": "loss increase, nats"}
KINDS = {"zero": "set to zero", "swap": "swapped with\nanother text's"}
DASHES: dict[str, Any] = {"zero": "-", "log_frequencies": (0, (3.5, 1.5))}
LINEAR = 0.01  # nats; losses may fall, too: within this the axis of the loss is linear
FLOOR = 1e-5  # nats, the lowest divergence that the axis reaches
LAST = 40  # predictions after a cut that are drawn: later ones differ by nothing that can be seen
BINS = 24  # of the distances
BEFORE = 12  # characters that are drawn before a cut
GREY = "#ededed"
INTACT, CUT = "#4d4d4d", "#b2182b"


def binned(cuts: pd.DataFrame) -> pd.DataFrame:
    """Means over distances that grow by a constant ratio; `prediction`, from 1, is the geometric middle of a bin."""
    last = int(cuts["distance"].max()) + 1
    edges = np.unique(np.geomspace(1, last + 1, BINS + 1).round().astype(int))
    middle = [float(np.exp(np.log(np.arange(a, b)).mean())) for a, b in pairwise(edges)]
    place = np.searchsorted(edges, cuts["distance"].to_numpy() + 1, side="right") - 1
    keys = ["model", "start", "seed", "memory", "kind", "prediction"]
    labelled = cuts.assign(prediction=np.array(middle)[place])
    return labelled.groupby(keys, sort=False)[list(EFFECTS)].mean().reset_index()


@styled
def cut_effects(cuts: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """Divergence and loss increase against the predictions since a cut, a column of panels for each network.

    Every seed is faint, the mean strong; a hidden state is dashed. Forty predictions are drawn, the frame has all. Both
    axes are logarithmic (that of the loss linear around 0, on grey).

    Args:
        cuts: `lab.probes.gather(networks, lab.probes.cuts, excerpt)`.

    Raises:
        UsageError: There is no cut of a kind that is drawn.
    """
    drawn = cuts[cuts["kind"].isin(list(KINDS))]
    if drawn.empty:
        raise UsageError(f"there is no cut to draw; kinds are {', '.join(KINDS)}")
    frame = binned(drawn)
    kinds = [(effect, kind) for effect in EFFECTS for kind in KINDS if (frame["kind"] == kind).any()]
    rows = {f"{KINDS[kind]}\n{EFFECTS[effect]}": (frame[frame["kind"] == kind], effect) for effect, kind in kinds}
    size = width, 0.6 + 1.25 * len(rows)
    how: dict[str, Any] = {"sharex": True, "sharey": "row"}
    figure, axes = panels.memory_grid(ax, size, rows, "prediction", "predictions since the cut", **how)
    for line, (effect, kind) in zip(axes, kinds, strict=True):
        for panel in line:
            panel.set_xscale("log")
            if effect == "kl":
                panel.set_yscale("log")
            else:
                panel.set_yscale("symlog", linthresh=LINEAR)
                panel.axhspan(-LINEAR, LINEAR, color=GREY, zorder=0)
        positive = frame.loc[(frame["kind"] == kind) & (frame["kl"] > 0), "kl"]
        if effect == "kl" and len(positive):  # a divergence may be nothing at all, which has no logarithm
            line[0].set_ylim(max(FLOOR, 0.7 * positive.min()), 1.4 * positive.max())
    for panel in axes[-1]:
        panel.set_xlim(right=LAST)
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
    for panel in axes[:-1].flat:
        panel.tick_params(axis="x", labelbottom=False, which="both")
    for panel in axes[:, 1:].flat:
        panel.tick_params(axis="y", labelleft=False, which="both")
    linear = Patch(color=GREY, label=f"axis linear within ±{LINEAR:g}")
    panels.below(figure, [*panels.memory_handles(frame), linear])
    return attach(figure, frame)


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
    upper.plot(effect["time"], effect["bits_cut"], color=CUT, label="cut", linestyle=DASHES["log_frequencies"])
    upper.set_ylabel("surprise (bits)")
    upper.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    lower.plot(effect["time"], effect["divergence"], color=CUT)
    lower.set_ylabel(EFFECTS["kl"])
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


@styled
def memory_horizon(horizons: pd.DataFrame, width: float = COLUMN, ax: Axes | None = None) -> Figure:
    """The loss against how many characters the network was allowed to see; colour is the model, dashes the start.

    Marks stand where it was measured, at a sample of the text's characters: the level is that of the sample.

    Args:
        horizons: `lab.probes.gather(networks, lab.probes.loss_by_context, excerpt)`, losses in nats; drawn in bits.
    """
    frame = horizons[["model", "start", "seed", "context"]].assign(bpc=horizons["loss"] / np.log(2))
    figure, (line,) = panels.panels(ax, 1, 1, width, min(0.8 * width, 2.6))
    (panel,) = line
    models, biases = in_order(frame["model"]), panels.starts(frame)
    for (model, start), rows in frame.groupby(["model", "start"]):
        drawn: dict[str, Any] = {"color": look(str(model)).colour, "marker": look(str(model)).marker, "markersize": 3}
        panels.seeds_and_mean(panel, rows, "context", "bpc", **drawn, linestyle=DASHES[str(start)])
    panel.set(xscale="log", xlabel="characters seen", ylabel="bits per character")
    panel.xaxis.set_major_formatter("{x:g}")
    panel.grid(axis="both")
    handles = panels.model_handles(models, markersize=3)
    dark: dict[str, Any] = {"color": "#404040"}
    handles += [Line2D([], [], **dark, linestyle=DASHES[start], label=panels.STARTS[start]) for start in biases]
    panel.legend(handles=handles, loc="upper right")
    return attach(figure, frame)
