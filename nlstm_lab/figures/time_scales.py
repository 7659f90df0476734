"""Time constants at the point at which a network rests most, beside its autocorrelation times."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlstm_lab.errors import UsageError
from nlstm_lab.figures.panels import below, memory_grid, memory_handles
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import PAGE, styled

LONGEST = 1000.0  # steps: what lasts longer, or for ever, is drawn there
SHOWN = 100  # modes and units of a memory
KEYS = ["model", "start", "seed", "memory"]


@styled
def time_constants(
    modes: pd.DataFrame, timescales: pd.DataFrame, width: float = PAGE, ax: Axes | None = None
) -> Figure:
    """Time constants of the modes of each memory, the slowest first; below, the autocorrelation times of its units.

    A column of panels is a network; every seed is faint, the mean strong; a hidden state is dashed. What lasts longer
    than 1,000 characters, or for ever, is drawn at 1,000.

    Args:
        modes: `lab.probes.gather(networks, lab.probes.slow_modes, excerpt)`, of which the slowest point of each network
            is drawn.
        timescales: `lab.probes.timescales`, gathered.

    Raises:
        UsageError: There is no mode that lasts a step.
    """
    slow = modes[(modes["point"] == 0) & (modes["timescale"] >= 1)]
    if slow.empty:
        raise UsageError("no mode of these networks lasts a step: there is nothing to draw")
    live = timescales[(timescales["value"] == "tanh") & timescales["timescale"].notna()]
    frame = pd.concat([_ranked(slow, "at the slowest point"), _ranked(live, "along the text")])
    rows = {f"{kind}\ncharacters": (part, "steps") for kind, part in frame.groupby("kind", sort=False)}
    size = width, 3.8
    figure, axes = memory_grid(ax, size, rows, "rank", "rank, the slowest first", log=True, sharex=True, sharey=True)
    for panel in axes.flat:
        panel.set(xscale="log", yscale="log", ylim=(0.8, 1.3 * LONGEST))
    below(figure, memory_handles(frame))
    return attach(figure, frame)


def _ranked(times: pd.DataFrame, kind: str) -> pd.DataFrame:
    frame = times[[*KEYS, "timescale"]].assign(kind=kind, steps=np.minimum(times["timescale"], LONGEST))
    frame = frame.sort_values("steps", ascending=False, kind="stable")
    frame["rank"] = frame.groupby(KEYS).cumcount() + 1
    return frame[frame["rank"] <= SHOWN].drop(columns="timescale").sort_index()
