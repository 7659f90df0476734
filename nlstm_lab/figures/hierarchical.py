"""The HM-RNN drawn: figures 1 and 2 of Hierarchical Multiscale RNNs (Chung, Ahn & Bengio 2016).

Every arrow of figure 1 follows from the boundaries by equations 2 to 7. In figure 2 blue boxes have weights.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from matplotlib.figure import Figure

from nlstm_lab.figures.sheets import CANDIDATE, GATE, INK, PLAIN, Sheet
from nlstm_lab.figures.style import OPERATIONS, PAGE, styled

COPY, UPDATE, FLUSH = (OPERATIONS[name].colour for name in ("COPY", "UPDATE", "FLUSH"))
QUIET = "#b4b4b4"  # a state that is copied
STEP, LAYER, NODE = 0.335, 0.62, 0.105
DOTS = (0, (1, 1.4))
BRIDGE = 0.05  # half of the gap that a wire leaves for the one it passes
Kind = Literal["given", "found"]

TEXT = "the_cat_s"
WORDS = ([0, 0, 1, 0, 0, 0, 1, 0, 0],)  # the last character of every word that ends, as the paper has it
FOUND = ([0, 0, 0, 1, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0, 0, 1, 0])


@styled
def hierarchical_architectures(width: float = PAGE) -> Figure:
    """Figure 1: a hierarchical RNN to which word boundaries are given, and an HM-RNN that finds its own."""
    sheet = Sheet(width, [1.72, 0.5], [2.22, 0.5])
    sheet.next("(a) HRNN: the ends of words are given", 1.6)
    _unrolled(sheet, TEXT, WORDS, "given")
    sheet.next()
    for x, y, colour, words in ((0.1, 0.38, UPDATE, "UPDATE"), (1.2, 0.38, QUIET, "COPY"), (0.1, 0.2, FLUSH, "FLUSH:")):
        sheet.arrow((x, y), (x + 0.26, y), colour, 1.1, dashes=DOTS if colour == QUIET else "-")
        sheet.text(x + 0.32, y, words, align="left")
    sheet.text(0.84, 0.2, "in (a) from the layer above alone,", align="left")
    sheet.text(0.84, 0.06, "(b) also reads h, and its cell starts anew", align="left")
    sheet.next("(b) HM-RNN: each layer finds its own boundaries", 2.1)
    _unrolled(sheet, TEXT, FOUND, "found")
    sheet.next()
    for y, ends, words in ((0.38, True, "$z=1$: a segment ends"), (0.2, False, "$z=0$: none does")):
        sheet.square(0.2, y, ends)
        sheet.text(0.3, y, words, align="left")
    return sheet.finish()


def _unrolled(sheet: Sheet, text: str, z: Sequence[Sequence[int]], kind: Kind) -> None:
    """States of every layer along a text; the top layer has no boundaries."""
    x, y = 0.34, 0.56
    layers = [*z, [0] * len(text)]
    for t, symbol in enumerate(text):
        across = x + t * STEP
        sheet.text(across, y - 0.4, symbol.replace("_", "␣"))
        sheet.wires([(across, y - 0.29), (across, y - NODE)])
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
                sheet.square(across + 0.1, up + 0.125, ends[t] == 1)
    for k in range(len(layers)):
        sheet.text(x - 0.16, y + k * LAYER, f"$h^{k + 1}$", align="right")


@styled
def hierarchical_gating(width: float = PAGE) -> Figure:
    """Figure 2: a layer's step (equations 2 to 9) on the left, the output module of three layers on the right."""
    sheet = Sheet(width, [3.45], [3.45])
    sheet.next(r"a layer $\ell$ at step $t$", 3.35)
    _gating(sheet)
    sheet.next("the output module", 3.35)
    _output(sheet)
    return sheet.finish()


def _gating(sheet: Sheet) -> None:
    """Three sums, two of them gated by boundaries, into four gates and a detector."""
    bus, gates, detector = 1.18, 1.6, 2.6
    inputs = (
        (0.75, r"$h_{t-1}^{\ell+1}$", r"$U_{\ell+1}^{\ell}$", r"$z_{t-1}^{\ell}$"),
        (1.45, r"$h_{t-1}^{\ell}$", r"$U_{\ell}^{\ell}$", ""),
        (2.1, r"$h_{t}^{\ell-1}$", r"$W_{\ell-1}^{\ell}$", r"$z_{t}^{\ell-1}$"),
    )
    for x, state, weights, boundary in inputs:
        sheet.text(x, 0.32, state)
        sheet.box(x, 0.65, weights, GATE, width=0.42)
        sheet.wires([(x, 0.44), (x, 0.65)])
        if boundary:
            sheet.operation(x, 0.95, "×")
            sheet.wires([(x, 0.65), (x, 0.95)])
            sheet.wires([(x - 0.3, 0.95), (x, 0.95)], colour=FLUSH if "t-1" in boundary else UPDATE)
            sheet.text(x - 0.32, 0.95, boundary, align="right")
        sheet.wires([(x, 0.95 if boundary else 0.65), (x, bus)], arrow=False)
    sheet.text(detector, 0.95, "$b^{\\ell}$")
    sheet.wires([(detector, 1.04), (detector, bus)], [(0.75, bus), (detector, bus)], arrow=False)
    names = {0.75: ("σ", "f"), 1.2: ("σ", "i"), 1.65: ("tanh", "g"), 2.1: ("σ", "o")}
    for x, (function, name) in (names | {detector: ("hard σ", r"\tilde{z}")}).items():
        wide = 0.42 if x == detector else 0.32
        sheet.box(x, gates, function, CANDIDATE if name == "g" else PLAIN, width=wide)
        sheet.wires([(x, bus), (x, gates)])
        sheet.text(x + 0.06, gates + 0.2, rf"${name}_t^{{\ell}}$", align="left")
    sheet.text(0.1, 0.08, r"hard σ of a sum $s$: $\max(0,\,\min(1,\,(a\,s+1)/2))$, slope $a$", align="left")
    _choice(sheet, names, gates, detector)
    sheet.box(detector, 2.05, "> 0.5", PLAIN, width=0.42)
    sheet.wires([(detector, gates), (detector, 2.05)], [(detector, 2.05), (detector, 2.78), (2.9, 2.78)])
    sheet.text(2.95, 2.78, r"$z_t^{\ell}$", align="left")


def _choice(sheet: Sheet, places: Iterable[float], gates: float, detector: float) -> None:
    """Equations 2 and 3: which of three cells it is, and the hidden state."""
    sheet.wires(*([(x, gates), (x, 2.3)] for x in places))
    sheet.frame(0.6, 2.3, 1.75, 0.86, "#f7f7f7", INK)
    rows = ((UPDATE, "UPDATE", r"$c=f\,c_{t-1}+i\,g$"), ("#707070", "COPY", r"$c=c_{t-1},\ h=h_{t-1}$"),
            (FLUSH, "FLUSH", r"$c=i\,g$"), (INK, "", r"$h=o\,\tanh\,c$, unless COPY"))  # fmt: skip
    for k, (colour, name, words) in enumerate(rows):
        y = 3.04 - 0.19 * k
        sheet.text(0.67, y, name, align="left", colour=colour)
        sheet.text(1.13 if name else 0.67, y, words, align="left")
    past = ((3.04, r"$c_{t-1}^{\ell}$"), (2.84, r"$h_{t-1}^{\ell}$"), (2.62, r"$z_{t-1}^{\ell},$"))
    for y, words in past:
        sheet.text(0.38, y, words, align="right")
        sheet.wires([(0.41, y), (0.6, y)])
    sheet.text(0.38, 2.42, r"$z_t^{\ell-1}$", align="right")
    sheet.text(2.95, 3.0, r"$c_t^{\ell}$", align="left")
    sheet.wires([(2.35, 2.5), (detector - BRIDGE, 2.5)], arrow=False)  # it passes behind the detector's wire
    sheet.wires([(2.35, 3.0), (2.9, 3.0)], [(detector + BRIDGE, 2.5), (2.9, 2.5)])
    sheet.text(2.95, 2.5, r"$h_t^{\ell}$", align="left")


def _output(sheet: Sheet) -> None:
    """Equations 11 and 12, and the softmax."""
    places = left, middle, right = (0.85, 1.65, 2.45)
    sheet.operation(middle, 1.68, "+")
    for k, x in enumerate(places, 1):
        gate = x - 0.26
        sheet.text(x, 0.12, f"$h_t^{k}$")
        sheet.text(x - 0.34, 0.8, f"$g_t^{k}$")
        sheet.operation(x, 0.85, "×")
        sheet.box(gate, 0.58, "σ", GATE, width=0.22, height=0.18)
        sheet.box(x, 1.27, f"$W_{k}^e$", GATE, width=0.34)
        sheet.wires([(x, 0.22), (x, 0.85)], [(gate, 0.36), (gate, 0.58)], [(gate, 0.58), (gate, 0.85), (x, 0.85)])
        sheet.wires([(x, 0.85), (x, 1.27)], [(x, 1.27), *([(x, 1.68)] if x != middle else []), (middle, 1.68)])
    sheet.wires([(left - 0.26, 0.36), (right, 0.36)], arrow=False)  # each gate sees all layers
    sheet.box(middle, 2.07, "ReLU", PLAIN, width=0.42)
    sheet.text(middle + 0.05, 2.31, "$h_t^e$", align="left")
    sheet.box(middle, 2.57, "softmax", GATE, width=0.56)
    sheet.wires([(middle, 1.68), (middle, 2.07)], [(middle, 2.07), (middle, 2.57)], [(middle, 2.57), (middle, 2.86)])
    sheet.text(middle, 2.94, "$p(x_{t+1})$")
