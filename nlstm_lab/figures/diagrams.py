"""The units from inside and through time: figures 1 and 2 of Nested LSTMs, Madsen's LSTM, GRU and Nested LSTM.

Filled boxes have weights (blue: gates, sigma; orange: candidates); circles are pointwise. A thick wire is a memory.
Names are the papers' and PyTorch's: the article calls the candidate z.
"""

from itertools import pairwise
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from nlstm_lab.figures.sheets import CANDIDATE, GATE, INK, PLAIN, RADIUS, Point, Sheet
from nlstm_lab.figures.style import PAGE, look, styled

CELL, OUTER, INNER = look("cell").colour, look("outer").colour, look("inner").colour
THICK = 1.7
HALF = 0.11  # half the height of a box


@styled
def nested_architecture(width: float = PAGE, ax: Axes | None = None) -> Figure:
    """Figure 1 of Nested LSTMs: an LSTM whose sum is replaced by another LSTM (equations 7 to 15).

    Args:
        width: Inches, 5.4 at least.

    Raises:
        UsageError: The width has no room for the letters.
    """
    sheet = Sheet(width, 2.95, ax)
    _nested(sheet, 0.62, 0.12)
    return sheet.finish()


@styled
def unit_diagrams(width: float = PAGE, ax: Axes | None = None) -> Figure:
    """The article's three diagrams in one: LSTM and GRU above, the Nested LSTM below, all in one notation.

    Args:
        width: Inches, 5.4 at least.

    Raises:
        UsageError: The width has no room for the letters.
    """
    sheet = Sheet(width, 5.35, ax)
    for x, title in ((0.1, "LSTM"), (3.5, "GRU")):
        sheet.text(x, 5.2, title, align="left")
    sheet.text(0.1, 3.05, "Nested LSTM", align="left")
    _lstm(sheet, 0.62, 3.4)
    _gru(sheet, 4.02, 3.4)
    _nested(sheet, 0.62, 0.05)
    return sheet.finish()


def _lstm(sheet: Sheet, x: float, y: float, tilde: bool = False) -> None:
    """Equations 1 to 6, or 10 to 14 with tildes (and longer ends, through the frame around it); 2.6 inches wide."""
    colour = INNER if tilde else CELL
    f, i, g, o, end = (x + place for place in (0.45, 0.95, 1.4, 1.85, 2.3))
    bus, gates, product, memory = (y + place for place in (0.15, 0.5, 1.02, 1.45))
    _gates(sheet, bus, gates, {f: "f", i: "i", g: "g", o: "o"}, x + (0.2 if tilde else 0.1), tilde=tilde)
    left, right = x - (0.3 if tilde else 0.05), x + (2.9 if tilde else 2.7)
    _memory(sheet, [(left, memory), (f, memory), (g, memory), (right, memory)], colour)
    sheet.operation(f, memory, "×")
    sheet.wire([(f, gates + HALF), (f, memory - RADIUS)])
    sheet.operation(g, product, "×")
    sheet.wire([(i, gates + HALF), (i, product), (g - RADIUS, product)])
    sheet.wire([(g, gates + HALF), (g, product - RADIUS)])
    sheet.wire([(g, product + RADIUS), (g, memory - RADIUS)])
    sheet.operation(g, memory, "+")
    _output(sheet, end, memory, o, gates)
    _ends(sheet, left, right, memory, "c", tilde)
    if not tilde:
        sheet.wire([(end + RADIUS, gates + 0.28), (right, gates + 0.28)])
        sheet.text(x + 0.06, bus, "$x_t, h_{t-1}$", align="right")
        sheet.text(x + 2.74, y + 0.78, "$h_t$", align="left")


def _nested(sheet: Sheet, x: float, y: float) -> None:
    """The outer LSTM with, where its sum was, an inner one; 6 inches wide."""
    f, i, g, o, end = (x + place for place in (0.4, 0.85, 1.25, 4.85, 5.3))
    bus, gates, product, memory = (y + place for place in (0.12, 0.46, 0.98, 1.42))
    left, right = x + 1.62, x + 4.58
    _gates(sheet, bus, gates, {f: "f", i: "i", g: "g", o: "o"}, x + 0.1, identity=True)
    sheet.text(x + 0.06, bus, "$x_t, h_{t-1}$", align="right")
    sheet.frame(left, y + 0.78, right - left, 1.95, "#eef4f9", INNER)
    sheet.text(left + 0.1, y + 2.58, "inner LSTM", align="left", colour=INNER)
    # the outer memory after its forget gate (the inner hidden state), and what is written to it (the inner input)
    _memory(sheet, [(x - 0.05, memory), (f, memory), (left + 0.33, memory)], OUTER, last=False)
    sheet.operation(f, memory, "×")
    sheet.wire([(f, gates + HALF), (f, memory - RADIUS)])
    sheet.operation(g, product, "×")
    sheet.wire([(i, gates + HALF), (i, product), (g - RADIUS, product)])
    sheet.wire([(g, gates + HALF), (g, product - RADIUS)])
    sheet.wire([(g + RADIUS, product), (left + 0.34, product)], arrow=False)
    sheet.text(left - 0.2, memory + 0.11, r"$\tilde{h}_{t-1}$")
    sheet.text(left - 0.14, product + 0.11, r"$\tilde{x}_t$")
    inside = (left + 0.14, y + 0.83)  # its bus is level with the input
    sheet.wire([(left + 0.34, memory), (left + 0.34, inside[1] + 0.15)], arrow=False)
    _lstm(sheet, *inside, tilde=True)
    # its output is the outer memory (equation 15)
    out = inside[1] + 0.78
    sheet.wire([(inside[0] + 2.3 + RADIUS, out), (x + 5.72, out)], OUTER, THICK)
    sheet.text(x + 4.66, out + 0.12, r"$\tilde{h}_t = c_t$", align="left")
    sheet.text(x + 5.76, out, "$c_t$", align="left")
    _output(sheet, end, out, o, gates)
    sheet.wire([(end + RADIUS, gates + 0.28), (x + 5.72, gates + 0.28)])
    sheet.text(x + 5.76, gates + 0.28, "$h_t$", align="left")
    sheet.text(x - 0.09, memory, "$c_{t-1}$", align="right")


def _gru(sheet: Sheet, x: float, y: float) -> None:
    """The article's equations: the reset stands before the matrix; h itself is the memory."""
    u, r, g = x + 0.45, x + 1.05, x + 2.0
    bus, gates, product, memory = (y + place for place in (0.15, 0.5, 1.02, 1.45))
    _gates(sheet, bus, gates, {u: "u", r: "r"}, x + 0.1)
    sheet.text(x + 0.06, bus, "$x_t, h_{t-1}$", align="right")
    sheet.box(g, gates, "tanh", CANDIDATE)
    sheet.text(g + 0.2, gates + 0.2, "$g_t$")
    sheet.wire([(g, bus), (g, gates - HALF)])
    sheet.text(g + 0.06, bus, "$x_t$", align="left")
    _memory(sheet, [(x - 0.05, memory), (u, memory), (g, memory), (x + 2.45, memory)], look("gru").colour)
    sheet.operation(u, memory, "×")
    sheet.wire([(u, gates + HALF), (u, memory - RADIUS)])
    sheet.wire([(u, product), (x + 1.36, product)])
    sheet.box(x + 1.5, product, "1−", PLAIN, width=0.27)
    sheet.wire([(x + 1.635, product), (g - RADIUS, product)])
    sheet.operation(g, product, "×")
    sheet.operation(g, memory, "+")
    sheet.wire([(g, gates + HALF), (g, product - RADIUS)])
    sheet.wire([(g, product + RADIUS), (g, memory - RADIUS)])
    reset = gates + 0.32
    sheet.operation(r, reset, "×")
    sheet.wire([(r, gates + HALF), (r, reset - RADIUS)])
    sheet.wire([(r - 0.22, reset), (r - RADIUS, reset)])
    sheet.text(r - 0.23, reset + 0.01, "$h_{t-1}$", align="right")
    sheet.wire([(r + RADIUS, reset), (x + 1.55, reset), (x + 1.55, gates), (g - 0.16, gates)])
    _ends(sheet, x - 0.05, x + 2.45, memory, "h", False)


def _gates(
    sheet: Sheet,
    bus: float,
    row: float,
    names: dict[float, str],
    start: float,
    tilde: bool = False,
    identity: bool = False,
) -> None:
    """Gates and candidate in a row above the bus that brings all of them the same input."""
    sheet.wire([(start, bus), (max(names), bus)], arrow=False)
    for place, name in names.items():
        candidate = name == "g"
        sheet.box(place, row, ("id" if identity else "tanh") if candidate else "σ", CANDIDATE if candidate else GATE)
        sheet.wire([(place, bus), (place, row - HALF)])
        symbol = rf"\tilde{{{name}}}_t" if tilde else f"{name}_t"
        sheet.text(place + 0.11, row + 0.185, f"${symbol}$")


def _memory(sheet: Sheet, points: list[tuple[float, float]], colour: str, last: bool = True) -> None:
    """A thick wire from the left that stops at every operation on its way."""
    for k, (start, end) in enumerate(pairwise(points)):
        from_left = start[0] + (RADIUS if k else 0)
        final = k == len(points) - 2
        sheet.wire(
            [(from_left, start[1]), (end[0] - (0 if final else RADIUS), end[1])], colour, THICK, arrow=last or not final
        )


def _output(sheet: Sheet, x: float, memory: float, gate: float, gates: float) -> None:
    """h = o * tanh(c): down from the memory to the product with the output gate (equation 6)."""
    level = gates + 0.28
    sheet.wire([(x, memory), (x, (memory + level) / 2 + 0.1)])
    sheet.box(x, (memory + level) / 2 + 0.02, "tanh", PLAIN, height=0.18)
    sheet.wire([(x, (memory + level) / 2 - 0.07), (x, level + RADIUS)])
    sheet.wire([(gate, gates + HALF), (gate, level), (x - RADIUS, level)])
    sheet.operation(x, level, "×")


def _ends(sheet: Sheet, left: float, right: float, y: float, name: str, tilde: bool) -> None:
    symbol = rf"\tilde{{{name}}}" if tilde else name
    sheet.text(left - 0.04, y, f"${symbol}_{{t-1}}$", align="right")
    sheet.text(right + 0.04, y, f"${symbol}_t$", align="left")


STEP, ROW, NODE = 0.74, 0.56, 0.155  # inches between times and between states, and a state's radius
TIMES = ("t-1", "t", "t+1")
KEPT, CONTENT, GATES = "kept", "content", "gates"
TILDE = r"\tilde{c}"


class Edge(NamedTuple):
    """From a state (of the time before, if `past`) to a state of this time; how it gets there."""

    source: str
    target: str
    kind: str
    past: bool = False
    bend: float = 0.0


# What the equations say: `kept` is multiplied by a forget gate and added to, `content` enters a candidate or is passed
# on through an output gate, `gates` only opens and shuts. States from the bottom up.
def _layer(below: str, c: str, h: str) -> tuple[Edge, ...]:
    return (
        Edge(below, c, CONTENT),
        Edge(c, c, KEPT, past=True),
        Edge(h, c, CONTENT, past=True),
        Edge(c, h, CONTENT),
        Edge(below, h, GATES, bend=-0.45),
        Edge(h, h, GATES, past=True),
    )


LSTM = ("x", "c", "h"), _layer("x", "c", "h")
STACKED = ("x", "c^1", "h^1", "c^2", "h^2"), _layer("x", "c^1", "h^1") + _layer("h^1", "c^2", "h^2")
NESTED = (
    ("x", TILDE, "c", "h"),
    (
        Edge("x", TILDE, CONTENT),
        Edge(TILDE, TILDE, KEPT, past=True),
        Edge("c", TILDE, CONTENT, past=True),
        Edge("h", TILDE, CONTENT, past=True),
        Edge(TILDE, "c", CONTENT),
        Edge("x", "c", GATES, bend=-0.45),
        Edge("c", "c", GATES, past=True),
        Edge("h", "c", GATES, past=True),
        Edge("c", "h", CONTENT),
        Edge("x", "h", GATES, bend=-0.5),
        Edge("h", "h", GATES, past=True),
    ),
)
MEMORY = {"c": "cell", "c^1": "layer 1", "c^2": "layer 2", TILDE: "inner"}  # whose colour a state has


@styled
def computational_graphs(width: float = PAGE, ax: Axes | None = None) -> Figure:
    """LSTM, stacked LSTM and Nested LSTM over three steps: hidden state h, memory c, inner memory c with a tilde.

    Drawn from the equations, so it shows more than the paper's figure: which arrows only open and shut gates. The
    outer memory of a Nested LSTM has no thick arrow of its own: what it keeps, it keeps through the inner one.

    Args:
        width: Inches, 5.4 at least.

    Raises:
        UsageError: The width has no room for the letters.
    """
    sheet = Sheet(width, 3.4, ax)
    for k, (title, graph) in enumerate((("LSTM", LSTM), ("stacked LSTM", STACKED), ("Nested LSTM", NESTED))):
        _graph(sheet, 0.34 + k * 2.28, 0.62, graph)
        top = 0.62 + (len(graph[0]) - 1) * ROW
        sheet.text(0.34 + k * 2.28 - NODE, top + 0.36, title, align="left")
    legend = ((KEPT, "kept (times a forget gate)"), (CONTENT, "content"), (GATES, "opens and shuts gates only"))
    for x, (kind, words) in zip((0.3, 2.55, 3.85), legend, strict=True):
        _arrow(sheet, (x, 0.14), (x + 0.36, 0.14), kind, INK, shrink=0)
        sheet.text(x + 0.44, 0.14, words, align="left")
    return sheet.finish()


def _graph(sheet: Sheet, x: float, y: float, graph: tuple[tuple[str, ...], tuple[Edge, ...]]) -> None:
    """One unit over the three times, lower left state at (x, y)."""
    states, edges = graph
    colours = {state: look(name).colour for state, name in MEMORY.items()}
    if TILDE in states:
        colours["c"] = look("outer").colour
    for column, time in enumerate(TIMES):
        for row, state in enumerate(states):
            name, _, layer = state.partition("^")
            index = f"_{{{time}}}" + (f"^{{{layer}}}" if layer else "")
            fill = "#ffffff" if state == "x" else "#e9e9e9"  # of an input, and of a hidden state
            if state in colours:  # a memory has its own colour, half as strong
                red, green, blue = to_rgb(colours[state])
                fill = to_hex(((1 + red) / 2, (1 + green) / 2, (1 + blue) / 2))
            sheet.node(x + column * STEP, y + row * ROW, f"${name}{index}$", fill)
        for edge in edges:
            if edge.past and column == 0:
                continue
            start = (x + (column - edge.past) * STEP, y + states.index(edge.source) * ROW)
            end = (x + column * STEP, y + states.index(edge.target) * ROW)
            _arrow(sheet, start, end, edge.kind, colours.get(edge.target, INK), bend=edge.bend)


def _arrow(
    sheet: Sheet, start: Point, end: Point, kind: str, memory: str, bend: float = 0, shrink: float = NODE
) -> None:
    """An edge in the manner of its kind; what is kept has its memory's colour."""
    if kind == KEPT:
        sheet.arrow(start, end, memory, 1.9, bend, shrink=shrink)
    elif kind == CONTENT:
        sheet.arrow(start, end, INK, 0.9, bend, shrink=shrink)
    else:
        sheet.arrow(start, end, "#8a8a8a", 0.7, bend, (0, (2.2, 1.6)), shrink=shrink)
