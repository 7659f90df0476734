"""What diagrams are made of: boxes, circles, wires and labels, placed in inches."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.saving import attach
from nlstm_lab.figures.style import COLUMN, PAGE, sheet

INK = "#1c1c1c"
GATE, CANDIDATE, PLAIN = "#dcebf5", "#fbe6c6", "#ffffff"
RADIUS = 0.085  # of a pointwise operation
LEAST = 3.0  # inches: in fewer, letters of 7 points stand on each other

Point = tuple[float, float]


class Sheet:
    """A drawing of blocks, each planned for one column of a paper, in inches, the origin at its lower left.

    On a page's width they stand in columns (of blocks of these heights, from the top), on less below each other. They
    are stretched sideways to the width; letters, boxes and circles are not. What was put where is listed, as planned.
    """

    def __init__(self, width: float, *columns: Sequence[float]) -> None:
        if width < LEAST:
            raise UsageError(f"a diagram needs {LEAST:g} inches: {width:g} are too few")
        if width < PAGE - 0.25:
            columns = ([height for column in columns for height in column],)
        wide = width / len(columns)
        self.stretch = wide / COLUMN
        self.origins = [(k * wide, sum(one[below + 1 :])) for k, one in enumerate(columns) for below in range(len(one))]
        self.figure, self.ax = sheet(width, max(map(sum, columns)))
        self.ax.invert_yaxis()
        self.block = -1
        self.placed: list[dict[str, object]] = []
        self.sizes: dict[Point, Point] = {}  # of what wires end at: half its width and its height

    def next(self, title: str = "", top: float = 0) -> None:
        """Draw into the next block, with its title at a height."""
        self.block += 1
        self.left, self.bottom = self.origins[self.block]
        self.sizes.clear()
        if title:
            self.text(0.06, top, title, align="left")

    def at(self, x: float, y: float) -> Point:
        """Where a planned place is drawn."""
        return self.left + x * self.stretch, self.bottom + y

    def finish(self) -> Figure:
        """The figure, carrying what was placed as its data."""
        return attach(self.figure, pd.DataFrame(self.placed))

    def text(self, x: float, y: float, words: str, align: str = "center", colour: str = INK) -> None:
        self.ax.text(*self.at(x, y), words, ha=align, va="center", fontsize=7, color=colour, zorder=6)
        self._note("text", words, x, y)

    def box(self, x: float, y: float, words: str, fill: str = GATE, width: float = 0.32, height: float = 0.22) -> None:
        """A function with learned weights (filled), or a plain one (white), centred at (x, y)."""
        across, up = self.at(x, y)
        self._rounded((across - width / 2, up - height / 2), width, height, 0.05, fc=fill, ec=INK, zorder=4)
        self.sizes[x, y] = width / 2, height / 2
        self.text(x, y - 0.005, words)

    def frame(self, x: float, y: float, width: float, height: float, fill: str, edge: str) -> None:
        """A unit's outline, lower left corner at (x, y)."""
        self._rounded(self.at(x, y), width * self.stretch, height, 0.1, fc=fill, ec=edge, zorder=1)
        self._note("frame", "", x, y, x + width, y + height)

    def _rounded(self, corner: Point, width: float, height: float, radius: float, **how: Any) -> None:
        self.ax.add_patch(FancyBboxPatch(corner, width, height, f"round,pad=0,rounding_size={radius}", lw=0.7, **how))

    def operation(self, x: float, y: float, sign: str) -> None:
        """A pointwise product or sum."""
        across, up = self.at(x, y)
        self.ax.add_patch(Circle((across, up), RADIUS, facecolor="white", edgecolor=INK, linewidth=0.7, zorder=4))
        arm = RADIUS * (0.62 if sign == "+" else 0.45)
        for right, rise in ((arm, 0), (0, arm)) if sign == "+" else ((arm, arm), (arm, -arm)):
            ends = [across - right, across + right], [up - rise, up + rise]
            self.ax.plot(*ends, color=INK, linewidth=0.8, zorder=5)
        self.sizes[x, y] = RADIUS, RADIUS
        self._note("operation", sign, x, y)

    def node(self, x: float, y: float, words: str, fill: str, radius: float = 0.155) -> None:
        """A state at one time."""
        self.ax.add_patch(Circle(self.at(x, y), radius, facecolor=fill, edgecolor=INK, linewidth=0.7, zorder=4))
        self.text(x, y - 0.005, words)

    def square(self, x: float, y: float, ends: bool) -> None:
        """A boundary, white where a segment ends."""
        across, up = self.at(x, y)
        how: dict[str, Any] = {"facecolor": "white" if ends else "black", "edgecolor": INK, "linewidth": 0.6}
        self.ax.add_patch(Rectangle((across - 0.036, up - 0.036), 0.072, 0.072, zorder=7, **how))
        self._note("boundary", str(int(ends)), x, y)

    def wires(self, *paths: Sequence[Point], colour: str = INK, width: float = 0.8, arrow: bool = True) -> None:
        """Lines, each straight from point to point, between the edges of what stands at its ends; heads at the last."""
        how: dict[str, Any] = {"solid_capstyle": "round", "solid_joinstyle": "round", "zorder": 3}
        for path in paths:
            points = [self._edge(path[0], path[1]), *path[1:-1], self._edge(path[-1], path[-2])]
            across, up = zip(*(self.at(*point) for point in points[: -1 if arrow else None]), strict=True)
            self.ax.plot(across, up, color=colour, linewidth=width, **how)
            if arrow:
                self.arrow(points[-2], points[-1], colour, width)
            else:
                self._note("wire", "", *points[0], *points[-1])

    def _edge(self, end: Point, other: Point) -> Point:
        """Where a level or upright line from `other` meets what stands at `end`."""
        wide, tall = self.sizes.get(end, (0, 0))
        (x, y), (right, up) = end, np.sign(np.subtract(other, end))
        return x + wide * right, y + tall * up

    def arrow(self, start: Point, end: Point, colour: str = INK, width: float = 0.8, bend: float = 0,
              dashes: object = "-", shrink: float = 0) -> None:  # fmt: skip
        """An arrow, curved by `bend`, that keeps `shrink` inches away from both ends."""
        how: dict[str, Any] = {"arrowstyle": "-|>,head_length=2.6,head_width=1.3", "mutation_scale": 1, "color": colour}
        how |= {"linewidth": width, "linestyle": dashes, "connectionstyle": f"arc3,rad={bend}", "zorder": 3}
        how |= {"shrinkA": 72 * shrink, "shrinkB": 72 * shrink, "capstyle": "butt", "joinstyle": "miter"}
        tail, head = np.array([self.at(*start), self.at(*end)])
        if dashes != "-":  # its head is solid, and an arrow of its own along the end of the curve
            self.ax.add_patch(FancyArrowPatch(tail, head, **how | {"arrowstyle": "-", "shrinkB": 72 * shrink + 2}))
            along = (head - tail) / 2 + bend * (tail - head)[::-1] * (1, -1)
            tail = head - along / np.hypot(*along) * (shrink + 0.03)
            how |= {"linestyle": "-", "shrinkA": 0, "connectionstyle": "arc3"}
        self.ax.add_patch(FancyArrowPatch(tail, head, **how))
        self._note("arrow", "", *start, *end)

    def _note(self, kind: str, text: str, x: float, y: float, x2: float | None = None, y2: float | None = None) -> None:
        self.placed.append({"block": self.block, "kind": kind, "text": text, "x": x, "y": y, "x2": x2, "y2": y2})
