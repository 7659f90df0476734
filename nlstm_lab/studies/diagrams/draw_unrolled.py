"""Computational graphs through time: figure 2 of Nested LSTMs."""

from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from nlstm_lab.figures.style import PAGE, look, styled
from nlstm_lab.studies.diagrams.sheet import INK, Sheet

STEP, ROW, NODE = 0.74, 0.56, 0.155  # inches between times and between states, and a state's radius
TIMES = ("t-1", "t", "t+1")
KEPT, CONTENT, GATES = "kept", "content", "gates"
INNER = r"\tilde{c}"


class Edge(NamedTuple):
    """From a state (of the time before, if `past`) to a state of this time; how it gets there."""

    source: str
    target: str
    kind: str
    past: bool = False
    bend: float = 0.0


# What the equations say: `kept` is multiplied by a forget gate and added to, `content` enters a candidate or is passed
# on through an output gate, `gates` only opens and shuts. States from the bottom up.
LSTM = (
    ("x", "c", "h"),
    (
        Edge("x", "c", CONTENT),
        Edge("c", "c", KEPT, past=True),
        Edge("h", "c", CONTENT, past=True),
        Edge("c", "h", CONTENT),
        Edge("x", "h", GATES, bend=-0.45),
        Edge("h", "h", GATES, past=True),
    ),
)
STACKED = (
    ("x", "c^1", "h^1", "c^2", "h^2"),
    tuple(
        edge
        for below, c, h in (("x", "c^1", "h^1"), ("h^1", "c^2", "h^2"))
        for edge in (
            Edge(below, c, CONTENT),
            Edge(c, c, KEPT, past=True),
            Edge(h, c, CONTENT, past=True),
            Edge(c, h, CONTENT),
            Edge(below, h, GATES, bend=-0.45),
            Edge(h, h, GATES, past=True),
        )
    ),
)
NESTED = (
    ("x", INNER, "c", "h"),
    (
        Edge("x", INNER, CONTENT),
        Edge(INNER, INNER, KEPT, past=True),
        Edge("c", INNER, CONTENT, past=True),
        Edge("h", INNER, CONTENT, past=True),
        Edge(INNER, "c", CONTENT),
        Edge("x", "c", GATES, bend=-0.45),
        Edge("c", "c", GATES, past=True),
        Edge("h", "c", GATES, past=True),
        Edge("c", "h", CONTENT),
        Edge("x", "h", GATES, bend=-0.5),
        Edge("h", "h", GATES, past=True),
    ),
)
MEMORY = {
    "c": "cell",
    "c^1": "layer 1",
    "c^2": "layer 2",
    INNER: "inner",
}  # whose colour a state has, here and elsewhere


@styled
def computational_graphs(ax: Axes | None = None) -> Figure:
    """LSTM, stacked LSTM and Nested LSTM over three steps: hidden state h, memory c, inner memory c with a tilde.

    Drawn from the equations, so it shows more than the paper's figure: which arrows only open and shut gates. The
    outer memory of a Nested LSTM has no thick arrow of its own: what it keeps, it keeps through the inner one.
    """
    sheet = Sheet(PAGE, 3.4, ax)
    for k, (title, graph) in enumerate((("LSTM", LSTM), ("stacked LSTM", STACKED), ("Nested LSTM", NESTED))):
        _graph(sheet, 0.34 + k * 2.28, 0.62, graph)
        top = 0.62 + (len(graph[0]) - 1) * ROW
        sheet.text(0.34 + k * 2.28 - NODE, top + 0.36, title, size=9, align="left")
    legend = ((KEPT, "kept (times a forget gate)"), (CONTENT, "content"), (GATES, "opens and shuts gates only"))
    for x, (kind, words) in zip((0.3, 2.55, 3.85), legend, strict=True):
        _arrow(sheet, (x, 0.14), (x + 0.36, 0.14), kind, INK, shrink=0)
        sheet.text(x + 0.44, 0.14, words, size=7, align="left")
    return sheet.finish()


def _graph(sheet: Sheet, x: float, y: float, graph: tuple[tuple[str, ...], tuple[Edge, ...]]) -> None:
    """One unit over the three times, lower left state at (x, y)."""
    states, edges = graph
    colours = {state: look(name).colour for state, name in MEMORY.items()}
    if INNER in states:
        colours["c"] = look("outer").colour
    for column, time in enumerate(TIMES):
        for row, state in enumerate(states):
            name, _, layer = state.partition("^")
            index = f"_{{{time}}}" + (f"^{{{layer}}}" if layer else "")
            sheet.node(x + column * STEP, y + row * ROW, f"${name}{index}$", _fill(state, colours))
        for edge in edges:
            if edge.past and column == 0:
                continue
            start = (x + (column - edge.past) * STEP, y + states.index(edge.source) * ROW)
            end = (x + column * STEP, y + states.index(edge.target) * ROW)
            _arrow(sheet, start, end, edge.kind, colours.get(edge.target, INK), bend=edge.bend)


def _fill(state: str, colours: Mapping[str, str]) -> str:
    """White of an input, grey of a hidden state, and of a memory its own colour, half as strong."""
    if state in colours:
        red, green, blue = to_rgb(colours[state])
        return to_hex(((1 + red) / 2, (1 + green) / 2, (1 + blue) / 2))
    return "#ffffff" if state == "x" else "#e9e9e9"


def _arrow(
    sheet: Sheet,
    start: tuple[float, float],
    end: tuple[float, float],
    kind: str,
    memory: str,
    bend: float = 0,
    shrink: float = NODE,
) -> None:
    """An edge in the manner of its kind; what is kept has its memory's colour."""
    if kind == KEPT:
        sheet.arrow(start, end, memory, 1.9, bend, shrink=shrink)
    elif kind == CONTENT:
        sheet.arrow(start, end, INK, 0.9, bend, shrink=shrink)
    else:
        sheet.arrow(start, end, "#8a8a8a", 0.7, bend, (0, (2.2, 1.6)), shrink=shrink)
