"""The units from inside and through time: figures 1 and 2 of Nested LSTMs, Madsen's LSTM, GRU and Nested LSTM.

Filled boxes have weights (blue: gates, sigma; orange: candidates); circles are pointwise. A thick wire is a memory.
Names are the papers' and PyTorch's: the article calls the candidate z.
"""

from itertools import pairwise
from typing import NamedTuple

from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from nlstm_lab.figures.sheets import CANDIDATE, GATE, INK, PLAIN, Point, Sheet
from nlstm_lab.figures.style import COLUMN, PAGE, look, styled

CELL, OUTER, INNER = look("cell").colour, look("outer").colour, look("inner").colour
THICK = 1.7


@styled
def nested_architecture(width: float = COLUMN) -> Figure:
    """Figure 1 of Nested LSTMs: an LSTM whose sum is replaced by another LSTM (equations 7 to 15)."""
    sheet = Sheet(width, [3.3])
    sheet.next()
    _nested(sheet)
    return sheet.finish()


@styled
def unit_diagrams(width: float = PAGE) -> Figure:
    """The article's three diagrams in one, LSTM, GRU and Nested LSTM, all in one notation."""
    sheet = Sheet(width, [1.85, 1.85], [3.7])
    for title, draw, top in (("LSTM", _lstm, 1.75), ("GRU", _gru, 1.75), ("Nested LSTM", _nested, 3.6)):
        sheet.next(title, top)
        draw(sheet)
    return sheet.finish()


def _lstm(sheet: Sheet) -> None:
    """Equations 1 to 6."""
    end = _inner(sheet, 0.5, 0, 2.95, CELL, "")
    sheet.wires([(0.6, 0.15), (0.9, 0.15)], arrow=False)
    sheet.text(0.56, 0.15, "$x_t, h_{t-1}$", align="right")
    sheet.wires([end, (2.95, end[1])])
    sheet.text(2.99, end[1], "$h_t$", align="left")


def _inner(sheet: Sheet, x: float, y: float, right: float, colour: str, tilde: str) -> Point:
    """An LSTM's gates and memory, its bus at y + 0.15; where its output is."""
    f, i, g, o, end = (x + place for place in (0.4, 0.85, 1.25, 1.65, 2.1))
    bus, gates, product, memory = (y + place for place in (0.15, 0.5, 1.02, 1.45))
    _gates(sheet, bus, gates, {f: "f", i: "i", g: "g", o: "o"}, tilde)
    sheet.operation(f, memory, "×")
    sheet.operation(g, memory, "+")
    sheet.wires(*pairwise([(x - 0.15, memory), (f, memory), (g, memory), (right, memory)]), colour=colour, width=THICK)
    _written(sheet, f, i, g, gates, product, memory)
    sheet.wires([(g, product), (g, memory)])
    symbol = rf"{tilde}{{c}}"
    sheet.text(x - 0.18, memory, f"${symbol}_{{t-1}}$", align="right")
    sheet.text(right + 0.04, memory, f"${symbol}_t$", align="left")
    return _output(sheet, end, memory, o, gates)


def _nested(sheet: Sheet) -> None:
    """The outer LSTM with, where its sum was, an inner one above it."""
    f, i, g, o, end, right = 0.72, 1.1, 1.5, 2.35, 2.86, 3.0
    bus, gates, product, above = 0.12, 0.46, 0.98, 1.5
    _gates(sheet, bus, gates, {f: "f", i: "i", g: "g", o: "o"}, identity=True)
    sheet.wires([(0.5, bus), (f, bus)], arrow=False)
    sheet.text(0.46, bus, "$x_t, h_{t-1}$", align="right")
    sheet.frame(0.5, above - 0.14, 2.2, 1.86, "#eef4f9", INNER)
    sheet.text(0.6, above + 1.6, "inner LSTM", align="left", colour=INNER)
    # the outer memory after its forget gate (the inner hidden state), and what is written to it (the inner input)
    sheet.operation(f, product, "×")
    _written(sheet, f, i, g, gates, product, product)
    sheet.text(0.32, product, "$c_{t-1}$", align="right")
    sheet.wires([(0.35, product), (f, product)], colour=OUTER, width=THICK)
    sheet.wires([(f, product), (f, above)], colour=OUTER, width=THICK, arrow=False)
    sheet.wires([(g, product), (g, above)], [(f, above), (0.82, above)], arrow=False)
    sheet.text(f + 0.05, product + 0.25, r"$\tilde{h}_{t-1}$", align="left")
    sheet.text(g + 0.05, product + 0.25, r"$\tilde{x}_t$", align="left")
    out = _inner(sheet, 0.42, above - 0.15, right - 0.1, INNER, r"\tilde")
    # its output is the outer memory (equation 15)
    sheet.wires([out, (right, out[1])], colour=OUTER, width=THICK)
    sheet.text(3.2, out[1] + 0.14, r"$\tilde{h}_t = c_t$", align="right")
    hidden = _output(sheet, end, out[1], o, gates)
    sheet.wires([hidden, (right + 0.06, hidden[1])])
    sheet.text(right + 0.1, hidden[1], "$h_t$", align="left")


def _gru(sheet: Sheet) -> None:
    """The article's equations: the reset stands before the matrix; h itself is the memory."""
    u, r, g = 0.95, 1.55, 2.5
    bus, gates, reset, product, memory = 0.15, 0.5, 0.82, 1.02, 1.45
    _gates(sheet, bus, gates, {u: "u", r: "r"})
    sheet.wires([(0.6, bus), (u, bus)], arrow=False)
    sheet.text(0.56, bus, "$x_t, h_{t-1}$", align="right")
    sheet.box(g, gates, "tanh", CANDIDATE)
    sheet.text(g + 0.2, gates + 0.2, "$g_t$")
    sheet.text(g + 0.06, bus, "$x_t$", align="left")
    sheet.box(2.0, product, "1−", PLAIN, width=0.27)
    for place, sign in (((u, memory), "×"), ((g, product), "×"), ((g, memory), "+"), ((r, reset), "×")):
        sheet.operation(*place, sign)
    ends = [(0.45, memory), (u, memory), (g, memory), (2.95, memory)]
    sheet.wires(*pairwise(ends), colour=look("gru").colour, width=THICK)
    sheet.wires([(u, gates), (u, memory)], [(u, product), (2.0, product)], [(2.0, product), (g, product)])
    sheet.wires([(g, bus), (g, gates)], [(g, gates), (g, product)], [(g, product), (g, memory)])
    sheet.wires([(r, gates), (r, reset)], [(r - 0.22, reset), (r, reset)])
    sheet.wires([(r, reset), (2.05, reset), (2.05, gates), (g, gates)])
    sheet.text(r - 0.23, reset + 0.01, "$h_{t-1}$", align="right")
    sheet.text(0.41, memory, "$h_{t-1}$", align="right")
    sheet.text(2.99, memory, "$h_t$", align="left")


def _gates(
    sheet: Sheet, bus: float, row: float, names: dict[float, str], tilde: str = "", identity: bool = False
) -> None:
    """Gates and candidate in a row above the bus that brings all of them the same input."""
    sheet.wires([(min(names), bus), (max(names), bus)], arrow=False)
    for place, name in names.items():
        candidate = name == "g"
        sheet.box(place, row, ("id" if identity else "tanh") if candidate else "σ", CANDIDATE if candidate else GATE)
        sheet.wires([(place, bus), (place, row)])
        sheet.text(place + 0.11, row + 0.185, rf"${tilde}{{{name}}}_t$")


def _written(sheet: Sheet, f: float, i: float, g: float, gates: float, product: float, memory: float) -> None:
    """The forget gate up to the memory, and i * g."""
    sheet.operation(g, product, "×")
    sheet.wires([(f, gates), (f, memory)], [(i, gates), (i, product), (g, product)], [(g, gates), (g, product)])


def _output(sheet: Sheet, x: float, memory: float, gate: float, gates: float) -> Point:
    """h = o * tanh(c): down from the memory to the product with the output gate (equation 6), where it is."""
    level = gates + 0.28
    sheet.box(x, level + 0.36, "tanh", PLAIN, height=0.18)
    sheet.operation(x, level, "×")
    sheet.wires([(x, memory), (x, level + 0.36)], [(x, level + 0.36), (x, level)])
    sheet.wires([(gate, gates), (gate, level), (x, level)])
    return x, level


STEP, ROW, NODE = 0.55, 0.56, 0.155  # inches between times and between states, and a state's radius
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
        Edge(below, h, GATES, bend=-0.38),
        Edge(h, h, GATES, past=True),
    )


LSTM = ("x", "c", "h"), _layer("x", "c", "h")
STACKED = ("x", "c^1", "h^1", "c^2", "h^2"), _layer("x", "c^1", "h^1") + _layer("h^1", "c^2", "h^2")
INSIDE = _layer("x", TILDE, "c")
NESTED = (
    ("x", TILDE, "c", "h"),
    (
        *INSIDE[:3],
        Edge("h", TILDE, CONTENT, past=True),
        *INSIDE[3:],
        Edge("h", "c", GATES, past=True),
        Edge("c", "h", CONTENT),
        Edge("x", "h", GATES, bend=-0.5),
        Edge("h", "h", GATES, past=True),
    ),
)
MEMORY = {"c": "cell", "c^1": "layer 1", "c^2": "layer 2", TILDE: "inner"}  # whose colour a state has


@styled
def computational_graphs(width: float = COLUMN) -> Figure:
    """LSTM, stacked LSTM and Nested LSTM over two steps: hidden state h, memory c, inner memory c with a tilde.

    Drawn from the equations, so it shows more than the paper's figure: which arrows only open and shut gates.
    """
    sheet = Sheet(width, [3.45])
    sheet.next()
    for x, title, graph in ((0.26, "LSTM", LSTM), (1.32, "stacked LSTM", STACKED), (2.5, "Nested LSTM", NESTED)):
        _graph(sheet, x, 0.72, graph)
        sheet.text(x - 0.2, 0.72 + (len(graph[0]) - 1) * ROW + 0.34, title, align="left")
    legend = ((0.1, 0.28, KEPT, "kept (times a forget gate)"), (2.1, 0.28, CONTENT, "content"))
    for x, y, kind, words in (*legend, (0.1, 0.1, GATES, "opens and shuts gates only")):
        _arrow(sheet, (x, y), (x + 0.3, y), kind, INK, shrink=0)
        sheet.text(x + 0.36, y, words, align="left")
    return sheet.finish()


def _graph(sheet: Sheet, x: float, y: float, graph: tuple[tuple[str, ...], tuple[Edge, ...]]) -> None:
    """One unit over two times, lower left state at (x, y)."""
    states, edges = graph
    colours = {state: look(name).colour for state, name in MEMORY.items()}
    if TILDE in states:
        colours["c"] = look("outer").colour
    for column, time in enumerate(("t-1", "t")):
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
    looks = {KEPT: (memory, 1.9, "-"), CONTENT: (INK, 0.9, "-"), GATES: ("#8a8a8a", 0.7, (0, (2.2, 1.6)))}
    colour, width, dashes = looks[kind]
    sheet.arrow(start, end, colour, width, bend, dashes, shrink)
