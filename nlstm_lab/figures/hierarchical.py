"""The HM-RNN drawn: figures 1 and 2 of Hierarchical Multiscale RNNs (Chung, Ahn & Bengio 2016).

Every arrow of figure 1 follows from the boundaries by equations 2 to 7. In figure 2 filled boxes have weights.
"""

from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from nlstm_lab.figures.sheets import CANDIDATE, GATE, INK, PLAIN, RADIUS, Sheet
from nlstm_lab.figures.style import OPERATIONS, PAGE, styled

COPY, UPDATE, FLUSH = (OPERATIONS[name].colour for name in ("COPY", "UPDATE", "FLUSH"))
QUIET = "#b4b4b4"  # a state that is copied
STEP, LAYER, NODE = 0.335, 0.62, 0.105
DOTS = (0, (1, 1.4))
MARGIN = 0.4  # of figure 2, at the left
BRIDGE = 0.05  # half of the gap that a wire leaves for the one it passes
Kind = Literal["given", "found"]

TEXT = "the_cat_s"
WORDS = ([0, 0, 1, 0, 0, 0, 1, 0, 0],)  # the last character of every word that ends, as the paper has it
FOUND = ([0, 0, 0, 1, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0, 1, 0])


@styled
def hierarchical_architectures(width: float = PAGE, ax: Axes | None = None) -> Figure:
    """Figure 1: a hierarchical RNN to which word boundaries are given, and an HM-RNN that finds its own.

    Args:
        width: Inches, 5.4 at least.

    Raises:
        UsageError: The width has no room for the letters.
    """
    sheet = Sheet(width, 2.85, ax)
    sheet.text(0.1, 2.72, "(a) HRNN: the ends of words are given", align="left")
    _unrolled(sheet, 0.34, 1.1, TEXT, WORDS, "given")
    sheet.text(3.5, 2.72, "(b) HM-RNN: each layer finds its own boundaries", align="left")
    _unrolled(sheet, 3.74, 1.1, TEXT, FOUND, "found")
    flush = "FLUSH: in (a) the upper state replaces the layer's own;"
    legend = ((0.3, 0.44, UPDATE, "UPDATE"), (1.4, 0.44, QUIET, "COPY"), (0.3, 0.24, FLUSH, flush))
    sheet.text(0.62, 0.09, "in (b) the cell starts anew, and reads the layer above", align="left")
    for x, y, colour, words in legend:
        sheet.arrow((x, y), (x + 0.26, y), colour, 1.1, dashes=DOTS if colour == QUIET else "-")
        sheet.text(x + 0.32, y, words, align="left")
    for x, fill, words in ((2.4, "white", "$z=1$: a segment ends"), (4.0, "black", "$z=0$")):
        _square(sheet, x, 0.44, fill)
        sheet.text(x + 0.1, 0.44, words, align="left")
    return sheet.finish()


def _unrolled(sheet: Sheet, x: float, y: float, text: str, z: Sequence[Sequence[int]], kind: Kind) -> None:
    """States of every layer along a text, lower left state at (x, y); the top layer has no boundaries."""
    layers = [*z, [0] * len(text)]
    for t, symbol in enumerate(text):
        across = x + t * STEP
        sheet.text(across, y - 0.4, symbol.replace("_", "␣"))
        sheet.wire([(across, y - 0.29), (across, y - NODE)])
        for k, ends in enumerate(layers):
            up = y + k * LAYER
            heard = k == 0 or layers[k - 1][t] == 1
            flushes = t > 0 and ends[t - 1] == 1 and (kind == "found" or heard)
            # given boundaries stay until the layer acts again; in layer 1, which always acts, that is the next step
            colour = FLUSH if flushes else UPDATE if heard else QUIET
            sheet.node(across, up, "", colour if colour != QUIET else "#f2f2f2", NODE)
            if t:
                past = (across - STEP, up)
                fresh = flushes and kind == "given"  # there h of the layer above takes the place of the layer's own
                if not fresh:
                    sheet.arrow(past, (across, up), colour, 1.1, dashes=DOTS if colour == QUIET else "-", shrink=NODE)
                if flushes:
                    sheet.arrow((across - STEP, up + LAYER), (across, up), FLUSH, 0.9, shrink=NODE)
            if k and heard:
                sheet.arrow((across, up - LAYER), (across, up), colour, 0.9, shrink=NODE)
            if k < len(layers) - 1:
                _square(sheet, across + 0.1, up + 0.125, "white" if ends[t] else "black")
    for k in range(len(layers)):
        sheet.text(x - 0.16, y + k * LAYER, f"$h^{k + 1}$", align="right")


def _square(sheet: Sheet, x: float, y: float, fill: str) -> None:
    half = 0.036
    patch = Rectangle(
        (sheet.across(x) - half, y - half), 2 * half, 2 * half, facecolor=fill, edgecolor=INK, linewidth=0.6, zorder=7
    )
    sheet.ax.add_patch(patch)
    sheet.note("boundary", "1" if fill == "white" else "0", x, y)


@styled
def hierarchical_gating(width: float = PAGE, ax: Axes | None = None) -> Figure:
    """Figure 2: a layer's step (equations 2 to 9) on the left, the output module of three layers on the right.

    Args:
        width: Inches, 5.4 at least.

    Raises:
        UsageError: The width has no room for the letters.
    """
    sheet = Sheet(width, 3.34, ax, left=MARGIN)
    sheet.text(0.1 - MARGIN, 3.22, r"a layer $\ell$ at step $t$", align="left")
    _gating(sheet)
    sheet.text(4.35, 3.22, "the output module", align="left")
    _output(sheet)
    return sheet.finish()


def _gating(sheet: Sheet) -> None:
    """Three sums, two of them gated by boundaries, into four gates and a detector."""
    bus, gates = 0.98, 1.42
    inputs = (
        (0.55, r"$h_{t-1}^{\ell+1}$", r"$U_{\ell+1}^{\ell}$", r"$z_{t-1}^{\ell}$"),
        (1.45, r"$h_{t-1}^{\ell}$", r"$U_{\ell}^{\ell}$", ""),
        (2.1, r"$h_{t}^{\ell-1}$", r"$W_{\ell-1}^{\ell}$", r"$z_{t}^{\ell-1}$"),
    )
    for x, state, weights, boundary in inputs:
        sheet.text(x, 0.12, state)
        sheet.wire([(x, 0.24), (x, 0.34)])
        sheet.box(x, 0.45, weights, GATE, width=0.42)
        if boundary:
            sheet.operation(x, 0.75, "×")
            sheet.wire([(x, 0.56), (x, 0.75 - RADIUS)])
            sheet.wire([(x - 0.3, 0.75), (x - RADIUS, 0.75)], FLUSH if "t-1" in boundary else UPDATE)
            sheet.text(x - 0.32, 0.75, boundary, align="right")
        sheet.wire([(x, 0.75 + RADIUS if boundary else 0.56), (x, bus)], arrow=False)
    sheet.text(2.62, 0.75, "$b^{\\ell}$")
    sheet.wire([(2.62, 0.84), (2.62, bus)], arrow=False)
    names = {0.75: ("σ", "f"), 1.2: ("σ", "i"), 1.65: ("tanh", "g"), 2.1: ("σ", "o"), 2.62: ("hard σ", r"\tilde{z}")}
    sheet.wire([(0.55, bus), (2.62, bus)], arrow=False)
    for x, (function, name) in names.items():
        wide = 0.4 if function == "hard σ" else 0.32
        sheet.box(x, gates, function, CANDIDATE if name == "g" else PLAIN, width=wide)
        sheet.wire([(x, bus), (x, gates - 0.11)])
        sheet.text(x + 0.1, gates + 0.18, rf"${name}_t^{{\ell}}$", align="left")
    sheet.text(2.88, gates + 0.07, r"$\max(0,\,\min(1,\,(a\,s+1)/2))$", align="left")
    sheet.text(2.88, gates - 0.08, "of its sum $s$, with slope $a$", align="left")
    _choice(sheet, gates + 0.11)
    sheet.wire([(2.62, gates + 0.11), (2.62, 1.94)])
    sheet.box(2.62, 2.05, "> 0.5", PLAIN, width=0.4)
    sheet.wire([(2.62, 2.16), (2.62, 2.58), (3.95, 2.58)])
    sheet.text(4.0, 2.58, r"$z_t^{\ell}$", align="left")


def _choice(sheet: Sheet, top: float) -> None:
    """Equations 2 and 3: which of three cells it is, and the hidden state."""
    for x, y in ((0.75, 2.32), (1.2, 2.32), (1.65, 2.32), (2.1, 2.32)):
        sheet.wire([(x, top), (x, y - 0.14)])
    sheet.frame(0.55, 2.18, 1.75, 0.66, "#f7f7f7", INK)
    rows = ((UPDATE, "UPDATE", r"$c=f\,c_{t-1}+i\,g$"), (QUIET, "COPY", r"$c=c_{t-1},\ h=h_{t-1}$"),
            (FLUSH, "FLUSH", r"$c=i\,g$"))  # fmt: skip
    for k, (colour, name, words) in enumerate(rows):
        y = 2.7 - 0.18 * k
        sheet.text(0.62, y, name, align="left", colour=colour if colour != QUIET else "#707070")
        sheet.text(1.17, y, words, align="left")
    past = ((2.72, r"$c_{t-1}^{\ell}$"), (2.52, r"$h_{t-1}^{\ell}$"), (2.3, r"$z_{t-1}^{\ell}, z_t^{\ell-1}$"))
    for y, words in past:
        sheet.text(0.32, y, words, align="right")
        sheet.wire([(0.35, y), (0.55, y)])
    sheet.wire([(2.3, 2.74), (3.95, 2.74)])
    sheet.text(4.0, 2.76, r"$c_t^{\ell}$", align="left")
    sheet.wire([(2.3, 2.4), (2.62 - BRIDGE, 2.4)], arrow=False)  # it passes behind the detector's wire
    sheet.wire([(2.62 + BRIDGE, 2.4), (3.95, 2.4)])
    sheet.text(4.0, 2.38, r"$h_t^{\ell}=o\,\tanh c$", align="left")
    sheet.text(4.0, 2.2, "unless COPY", align="left")


def _output(sheet: Sheet) -> None:
    """Equations 11 and 12, and the softmax."""
    places = left, middle, right = (4.65, 5.35, 6.05)
    for k, x in enumerate(places, 1):
        sheet.text(x, 0.12, f"$h_t^{k}$")
        sheet.wire([(x, 0.22), (x, 0.85 - RADIUS)])
        sheet.operation(x, 0.85, "×")
        sheet.box(x - 0.26, 0.58, "σ", GATE, width=0.22, height=0.18)
        sheet.text(x - 0.34, 0.8, f"$g_t^{k}$")
        sheet.wire([(x - 0.26, 0.67), (x - 0.26, 0.85), (x - RADIUS, 0.85)])
        sheet.wire([(x - 0.26, 0.36), (x - 0.26, 0.49)])
        sheet.wire([(x, 0.85 + RADIUS), (x, 1.16)])
        sheet.box(x, 1.27, f"$W_{k}^e$", GATE, width=0.34)
        sheet.wire([(x, 1.38), (x, 1.68), (middle + (k - 2) * RADIUS, 1.68)]
                   if k != 2 else [(x, 1.38), (x, 1.68 - RADIUS)])  # fmt: skip
    sheet.wire([(left - 0.26, 0.36), (right, 0.36)], arrow=False)  # each gate sees all layers
    sheet.operation(middle, 1.68, "+")
    sheet.wire([(middle, 1.68 + RADIUS), (middle, 1.96)])
    sheet.box(middle, 2.07, "ReLU", PLAIN, width=0.42)
    sheet.wire([(middle, 2.18), (middle, 2.46)])
    sheet.text(middle + 0.05, 2.31, "$h_t^e$", align="left")
    sheet.box(middle, 2.57, "softmax", GATE, width=0.56)
    sheet.wire([(middle, 2.68), (middle, 2.86)])
    sheet.text(middle, 2.94, "$p(x_{t+1})$")
