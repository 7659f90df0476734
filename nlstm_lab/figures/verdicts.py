"""How the verdicts fall, document by document: one bar a table for its numbers, one for what is said about it."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.panels import below, panels
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import PAGE, VERDICTS, styled
from nlstm_lab.targets.verdicts import printed_numbers

SHORT = {"nested_lstm": "Nested LSTMs", "hm_rnn": "HM-RNN", "madsen": "Madsen"}
OWN = "our own questions"
AGAINST = ("differs", "fails")
SIDES = {
    "printed numbers": ("match", "close", "differs", "smaller scale", "not run"),
    "orderings and claims": ("holds", "inconclusive", "fails", "not run"),
}


@styled
def verdict_overview(verdicts: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """Left, how many printed numbers of each table got which verdict; right, the same for what the documents say.

    Only rows that count (`anchor`) and are not cited from others are drawn, a bar for each split. Questions of our own
    are bars of their own.

    Args:
        verdicts: The frame of `lab.targets.verdicts(...)`.

    Raises:
        UsageError: There are no verdicts.
    """
    counted = verdicts[verdicts["anchor"] & (verdicts["kind"] != "reference")]
    if counted.empty:
        raise UsageError("there is no verdict to draw")
    number, claim = printed_numbers(counted), counted["kind"] == "claim"
    places = counted["where"].str.rpartition(", ")[2]  # of a number that is claimed: the figure which it belongs to
    about = counted["document"].map(SHORT) + ", " + places.where(number, "claims").where(claim, counted["where"])
    sides = number.map({True: "printed numbers", False: "orderings and claims"})
    frame = counted.assign(about=about.where(~counted["own"], OWN), side=sides)
    frame["about"] += frame["split"].map({"valid": ", validation", "test": ", test"}).fillna("")
    frame = frame.groupby(["side", "about", "verdict"], sort=False).size().rename("count").reset_index()
    every = [frame.loc[frame["side"] == side, "about"].unique() for side in SIDES]
    lines = [sorted(names, key=lambda about: about.startswith(OWN)) for names in every]
    figure, axes = panels(ax, 1, 2, width, 0.75 + 0.19 * max(map(len, lines)), sharex="row")
    for panel, (side, order), names in zip(axes[0], SIDES.items(), lines, strict=True):
        wide = frame[frame["side"] == side].pivot(index="about", columns="verdict", values="count").fillna(0)
        wide = wide.reindex(index=names, columns=list(order), fill_value=0)
        start = pd.Series(0.0, index=names)
        for verdict in order:
            bars = panel.barh(range(len(names)), wide[verdict], left=start, height=0.66, **_fill(verdict))
            counts = [f"{count:.0f}" if count else "" for count in wide[verdict]]
            ink = "#1c1c1c" if verdict in (*AGAINST, "smaller scale", "not run") else "white"
            for words in panel.bar_label(bars, counts, label_type="center", fontsize=6, color=ink):
                if verdict in AGAINST and words.get_text():
                    words.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.7})
            start += wide[verdict]
        panel.set(ylim=(len(names) - 0.4, -0.6), title=side, xlabel="how many")
        panel.set_yticks(range(len(names)), names)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        panel.tick_params(axis="y", length=0)
        panel.spines["left"].set_visible(False)
        panel.grid(axis="x")
        panel.set_axisbelow(True)
    alike: dict[str, list[str]] = {}
    for verdict in dict.fromkeys(name for order in SIDES.values() for name in order):
        alike.setdefault(_colour(verdict), []).append(verdict)
    below(figure, [Patch(label=", ".join(names), **_fill(names[0])) for names in alike.values()], columns=5)
    return attach(figure, frame)


def _colour(verdict: str) -> str:
    return {"smaller scale": "#b4b4b4", "not run": "#e2e2e2"}.get(verdict) or VERDICTS[verdict].colour


def _fill(verdict: str) -> dict[str, Any]:
    """A verdict's colour, hatched where the document is contradicted: a grey print tells these from the others."""
    hatch = {"hatch": "////", "edgecolor": "white"} if verdict in AGAINST else {}
    return {"facecolor": _colour(verdict), "linewidth": 0, **hatch}
