"""Settings beside their reference, one line each: what a decision is worth."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.panels import below, panels
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import COLUMN, look, styled
from nlstm_lab.statistics import Interval, t_interval


@styled
def ablation(
    frame: pd.DataFrame, reference: str, unit: str = "bits per character", width: float = COLUMN, ax: Axes | None = None
) -> Figure:
    """One line a setting: every seed, the mean and its t interval; a thin line stands where the reference does.

    UsageError: no such reference.

    Args:
        frame: Columns setting, seed, value (NaN: its loss or gradient overflowed), model (whose colour it has), in the
            order of the lines. A setting that would take more than a quarter of the axis is written at its edge.
        reference: The setting that the others are compared with.
        unit: The unit of the axis.
    """
    settings = list(dict.fromkeys(frame["setting"]))
    if reference not in settings:
        raise UsageError(f"there is no setting {reference!r}; there are {', '.join(settings)}")
    figure, axes = panels(ax, 1, 1, width, 0.85 + 0.21 * len(settings))
    panel: Axes = axes[0, 0]
    intervals = {setting: t_interval(frame.loc[frame["setting"] == setting, "value"]) for setting in settings}
    beyond = _beyond(intervals, reference)
    for y, setting in enumerate(settings):
        rows = frame[frame["setting"] == setting]
        colour, (mean, low, high) = look(rows["model"].iloc[0]).colour, intervals[setting]
        if setting == beyond:
            words = f"{mean:.2f} ({low:.2f} to {high:.2f})"
            _tell(panel, y, words)
            panel.plot(1, y, ">", color=colour, transform=panel.get_yaxis_transform(), clip_on=False)
            continue
        if lost := int(rows["value"].isna().sum()):
            words = f"overflowed in {'every seed' if lost == len(rows) else f'{lost} of {len(rows)} seeds'}"
            _tell(panel, y, words)
        panel.plot(rows["value"], [y + 0.26] * len(rows), ".", color=colour, markersize=3, alpha=0.6)
        panel.plot([low, high], [y, y], color=colour, linewidth=1.4, solid_capstyle="butt")
        panel.plot(mean, y, "o", color=colour, markersize=4)
    panel.axvline(intervals[reference].mean, color="#9a9a9a", linewidth=0.6, zorder=0)
    panel.set(ylim=(len(settings) - 0.4, -0.6), xlabel=unit)
    panel.set_yticks(range(len(settings)), settings)
    panel.tick_params(axis="y", length=0)
    panel.grid(axis="x")
    below(figure, _ablation_key(reference), columns=2)
    return attach(figure, frame.reset_index(drop=True))


def _tell(panel: Axes, y: int, words: str) -> None:
    """Words in a line of the data, near the right edge."""
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "center"}
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    panel.annotate(words, (0.95, y), **place, fontsize=7, bbox=ground)


def _beyond(intervals: Mapping[str, Interval], reference: str) -> str | None:
    """The setting without which the axis would be less than 3/4 as long, if there is one beside the reference."""
    ends = pd.DataFrame({name: [*one] for name, one in intervals.items()}).T.dropna()

    def span(some: pd.DataFrame) -> float:
        return float(some.to_numpy().max() - some.to_numpy().min())

    others = [name for name in ends.index if name != reference and len(ends) > 2]
    return next((name for name in others if span(ends.drop(name)) < 0.75 * span(ends)), None)


def _ablation_key(reference: str) -> list[Line2D]:
    dark: dict[str, Any] = {"color": "#4d4d4d"}
    return [
        Line2D([], [], **dark, marker="o", markersize=4, linewidth=1.4, label="mean, 95 % t interval"),
        Line2D([], [], **dark, marker=".", markersize=3, linestyle="", alpha=0.6, label="every seed"),
        Line2D([], [], color="#9a9a9a", linewidth=0.6, label=reference),
    ]
