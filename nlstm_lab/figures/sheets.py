"""What diagrams are made of: boxes, circles, wires and labels, placed in inches."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import sheet

INK = "#1c1c1c"
GATE, CANDIDATE, PLAIN = "#dcebf5", "#fbe6c6", "#ffffff"
RADIUS = 0.085  # of a pointwise operation

Point = tuple[float, float]


class Sheet:
    """A drawing of so many inches, the origin at the lower left; it keeps a list of what was put where."""

    def __init__(self, width: float, height: float, ax: Axes | None = None) -> None:
        self.figure, self.ax = sheet(ax, width, height)
        self.ax.set_ylim(0, height)
        self.placed: list[dict[str, object]] = []

    def finish(self) -> Figure:
        """The figure, carrying what was placed as its data."""
        return attach(self.figure, pd.DataFrame(self.placed))

    def text(self, x: float, y: float, words: str, size: float = 8, align: str = "center", colour: str = INK) -> None:
        self.ax.text(x, y, words, ha=align, va="center", fontsize=size, color=colour, zorder=6)
        self.note("text", words, x, y)

    def box(self, x: float, y: float, words: str, fill: str = GATE, width: float = 0.32, height: float = 0.22) -> None:
        """A function with learned weights (filled), or a plain one (white), centred at (x, y)."""
        corner = (x - width / 2, y - height / 2)
        style = "round,pad=0,rounding_size=0.05"
        patch = FancyBboxPatch(corner, width, height, style, facecolor=fill, edgecolor=INK, linewidth=0.7, zorder=4)
        self.ax.add_patch(patch)
        self.text(x, y - 0.005, words, size=7.5 if len(words) == 1 else 6.5)

    def operation(self, x: float, y: float, sign: str) -> None:
        """A pointwise product or sum."""
        self.ax.add_patch(Circle((x, y), RADIUS, facecolor="white", edgecolor=INK, linewidth=0.7, zorder=4))
        arm = RADIUS * (0.62 if sign == "+" else 0.45)
        ends = [((x - arm, x + arm), (y, y)), ((x, x), (y - arm, y + arm))]
        if sign == "×":
            ends = [((x - arm, x + arm), (y - arm, y + arm)), ((x - arm, x + arm), (y + arm, y - arm))]
        for across, down in ends:
            self.ax.plot(across, down, color=INK, linewidth=0.8, zorder=5)
        self.note("operation", sign, x, y)

    def node(self, x: float, y: float, words: str, fill: str, radius: float = 0.155) -> None:
        """A state at one time."""
        self.ax.add_patch(Circle((x, y), radius, facecolor=fill, edgecolor=INK, linewidth=0.7, zorder=4))
        self.text(x, y - 0.005, words, size=7)

    def frame(self, x: float, y: float, width: float, height: float, fill: str, edge: str) -> None:
        """A unit's outline, lower left corner at (x, y)."""
        style = "round,pad=0,rounding_size=0.1"
        patch = FancyBboxPatch((x, y), width, height, style, facecolor=fill, edgecolor=edge, linewidth=0.9, zorder=1)
        self.ax.add_patch(patch)
        self.note("frame", "", x, y, x + width, y + height)

    def wire(self, points: Sequence[Point], colour: str = INK, width: float = 0.8, arrow: bool = True) -> None:
        """A line through the points, straight from each to the next, with a head at the last."""
        across, up = zip(*points, strict=True)
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
        self.ax.add_patch(
            FancyArrowPatch(start, end, arrowstyle="-|>,head_length=2.6,head_width=1.3", mutation_scale=1, color=colour,
                            linewidth=width, linestyle=dashes, connectionstyle=f"arc3,rad={bend}",
                            shrinkA=72 * shrink, shrinkB=72 * shrink, capstyle="butt", joinstyle="miter", zorder=3)
        )  # fmt: skip
        self.note("arrow", "", *start, *end)

    def note(self, kind: str, words: str, x: float, y: float, x2: float | None = None, y2: float | None = None) -> None:
        self.placed.append({"kind": kind, "text": words, "x": x, "y": y, "x2": x2, "y2": y2})
