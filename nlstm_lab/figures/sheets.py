"""What diagrams are made of: boxes, circles, wires and labels, placed in inches."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import PAGE, sheet

INK = "#1c1c1c"
GATE, CANDIDATE, PLAIN = "#dcebf5", "#fbe6c6", "#ffffff"
RADIUS = 0.085  # of a pointwise operation

Point = tuple[float, float]


LEAST = 5.4  # inches: in fewer, letters of 7 points stand on each other


class Sheet:
    """A drawing that is planned for a page's width, in inches, the origin at the lower left.

    In fewer inches it is squeezed sideways, and letters and circles stay as they are. It keeps a list of what was put
    where, as planned.
    """

    def __init__(self, width: float, height: float, ax: Axes | None = None, left: float = 0.0) -> None:
        if width < LEAST:
            raise UsageError(f"a diagram needs {LEAST:g} inches, which is two columns: {width:g} are too few")
        self.figure, self.ax = sheet(ax, width, height)
        self.ax.set_ylim(0, height)
        self.squeeze, self.left = width / PAGE, left
        self.placed: list[dict[str, object]] = []

    def across(self, x: float) -> float:
        """Where a planned x is drawn."""
        return (x + self.left) * self.squeeze

    def finish(self) -> Figure:
        """The figure, carrying what was placed as its data."""
        return attach(self.figure, pd.DataFrame(self.placed))

    def text(self, x: float, y: float, words: str, align: str = "center", colour: str = INK) -> None:
        self.ax.text(self.across(x), y, words, ha=align, va="center", fontsize=7, color=colour, zorder=6)
        self.note("text", words, x, y)

    def box(self, x: float, y: float, words: str, fill: str = GATE, width: float = 0.32, height: float = 0.22) -> None:
        """A function with learned weights (filled), or a plain one (white), centred at (x, y)."""
        width *= self.squeeze
        corner = (self.across(x) - width / 2, y - height / 2)
        style = "round,pad=0,rounding_size=0.05"
        patch = FancyBboxPatch(corner, width, height, style, facecolor=fill, edgecolor=INK, linewidth=0.7, zorder=4)
        self.ax.add_patch(patch)
        self.text(x, y - 0.005, words)

    def operation(self, x: float, y: float, sign: str) -> None:
        """A pointwise product or sum."""
        place = self.across(x)
        self.ax.add_patch(Circle((place, y), RADIUS, facecolor="white", edgecolor=INK, linewidth=0.7, zorder=4))
        arm = RADIUS * (0.62 if sign == "+" else 0.45)
        ends = [((place - arm, place + arm), (y, y)), ((place, place), (y - arm, y + arm))]
        if sign == "×":
            ends = [((place - arm, place + arm), (y - arm, y + arm)), ((place - arm, place + arm), (y + arm, y - arm))]
        for across, down in ends:
            self.ax.plot(across, down, color=INK, linewidth=0.8, zorder=5)
        self.note("operation", sign, x, y)

    def node(self, x: float, y: float, words: str, fill: str, radius: float = 0.155) -> None:
        """A state at one time."""
        self.ax.add_patch(Circle((self.across(x), y), radius, facecolor=fill, edgecolor=INK, linewidth=0.7, zorder=4))
        self.text(x, y - 0.005, words)

    def frame(self, x: float, y: float, width: float, height: float, fill: str, edge: str) -> None:
        """A unit's outline, lower left corner at (x, y)."""
        style = "round,pad=0,rounding_size=0.1"
        corner, wide = (self.across(x), y), width * self.squeeze
        patch = FancyBboxPatch(corner, wide, height, style, facecolor=fill, edgecolor=edge, linewidth=0.9, zorder=1)
        self.ax.add_patch(patch)
        self.note("frame", "", x, y, x + width, y + height)

    def wire(self, points: Sequence[Point], colour: str = INK, width: float = 0.8, arrow: bool = True) -> None:
        """A line through the points, straight from each to the next, with a head at the last."""
        across, up = [self.across(x) for x, _ in points], [y for _, y in points]
        self.ax.plot(across[:-1] if arrow else across, up[:-1] if arrow else up, color=colour, linewidth=width,
                     solid_capstyle="round", solid_joinstyle="round", zorder=3)  # fmt: skip
        if arrow:
            self.arrow(points[-2], points[-1], colour, width)
        else:
            self.note("wire", "", *points[0], *points[-1])

    def arrow(
        self,
        start: Point,
        end: Point,
        colour: str = INK,
        width: float = 0.8,
        bend: float = 0,
        dashes: object = "-",
        shrink: float = 0,
    ) -> None:
        """An arrow, curved by `bend`, that keeps `shrink` inches away from both ends."""
        ends: dict[str, Any] = {"posA": (self.across(start[0]), start[1]), "posB": (self.across(end[0]), end[1])}
        how: dict[str, Any] = {"arrowstyle": "-|>,head_length=2.6,head_width=1.3", "mutation_scale": 1, "color": colour}
        how |= {"linewidth": width, "linestyle": dashes, "connectionstyle": f"arc3,rad={bend}", "zorder": 3}
        how |= {"shrinkA": 72 * shrink, "shrinkB": 72 * shrink, "capstyle": "butt", "joinstyle": "miter"}
        self.ax.add_patch(FancyArrowPatch(**ends, **how))
        self.note("arrow", "", *start, *end)

    def note(self, kind: str, words: str, x: float, y: float, x2: float | None = None, y2: float | None = None) -> None:
        self.placed.append({"kind": kind, "text": words, "x": x, "y": y, "x2": x2, "y2": y2})
