"""Time constants at the point at which a network rests most, beside its autocorrelation times."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.panels import (
    STARTS,
    below,
    memories,
    memory_handles,
    memory_style,
    panels,
    seeds_and_mean,
    starts,
)
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import PAGE, in_order, look, styled

LONGEST = 1000.0  # steps: what lasts longer, or for ever, is drawn there
SHOWN = 100  # modes and units of a memory
KEYS = ["model", "start", "seed", "memory"]


@styled
def time_constants(
    modes: pd.DataFrame, timescales: pd.DataFrame, width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """Time constants of the modes of each memory, the slowest first; below, the autocorrelation times of its units.

    modes: `lab.probes.gather(networks, lab.probes.slow_modes, excerpt)`, of which the slowest point of each network is
    drawn. timescales: `lab.probes.timescales`, gathered. A column of panels is a network; every seed faint, the mean
    strong; a hidden state is dashed. What lasts longer than 1,000 characters, or for ever, is drawn at 1,000.

    UsageError: there is no mode that lasts a step.
    """
    slow = modes[(modes["point"] == 0) & (modes["timescale"] >= 1)]
    if slow.empty:
        raise UsageError("no mode of these networks lasts a step: there is nothing to draw")
    live = timescales[(timescales["value"] == "tanh") & timescales["timescale"].notna()]
    frame = pd.concat([_ranked(slow, "at the slowest point"), _ranked(live, "along the text")])
    networks = [(model, start) for model in in_order(frame["model"])[::-1] for start in starts(frame)]
    networks = [each for each in networks if ((frame["model"] == each[0]) & (frame["start"] == each[1])).any()]
    kinds = list(dict.fromkeys(frame["kind"]))
    figure, axes = panels(ax, len(kinds), len(networks), width, 3.8, sharex=True, sharey=True)
    for line, kind in zip(axes, kinds, strict=True):
        for panel, (model, start) in zip(line, networks, strict=True):
            part = frame[(frame["model"] == model) & (frame["start"] == start) & (frame["kind"] == kind)]
            for memory in reversed(memories(part)):
                seeds_and_mean(panel, part[part["memory"] == memory], "rank", "steps", log=True, **memory_style(memory))
            panel.set(xscale="log", yscale="log", ylim=(0.8, 1.3 * LONGEST))
            panel.grid(axis="both")
        line[0].set_ylabel(f"{kind}\ncharacters", fontsize=7)
    for panel, (model, start) in zip(axes[0], networks, strict=True):
        panel.set_title(f"{look(model).label}\n{STARTS[start]}", fontsize=6.5)
    for panel in axes[-1]:
        panel.set_xlabel("rank, the slowest first")
    below(figure, memory_handles(frame))
    return attach(figure, frame)


def _ranked(times: pd.DataFrame, kind: str) -> pd.DataFrame:
    frame = times[[*KEYS, "timescale"]].assign(kind=kind, steps=np.minimum(times["timescale"], LONGEST))
    frame = frame.sort_values("steps", ascending=False, kind="stable")
    frame["rank"] = frame.groupby(KEYS).cumcount() + 1
    return frame[frame["rank"] <= SHOWN].drop(columns="timescale").sort_index()
