"""What each memory alone would predict."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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


@styled
def lens_losses(losses: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """Bits per character that each memory spares, by a lens and by the readout itself, against the distance.

    losses: `lab.probes.gather(networks, lab.probes.lens_losses, excerpt)`. What the frequencies alone predict is 0;
    below it a prediction is worse than that. Every seed faint, the mean strong; a hidden state is dashed.
    """
    frame = losses[["model", "start", "seed", "memory", "ahead"]].copy()
    for kind in ("lens", "direct"):
        frame[kind] = losses["frequency"] - losses[kind]
    networks = [(model, start) for model in in_order(frame["model"])[::-1] for start in starts(frame)]
    networks = [each for each in networks if ((frame["model"] == each[0]) & (frame["start"] == each[1])).any()]
    figure, axes = panels(ax, 2, len(networks), width, 3.6, sharex=True, sharey="row")
    for line, (kind, label) in zip(axes, (("lens", "lens"), ("direct", "readout itself")), strict=True):
        for panel, (model, start) in zip(line, networks, strict=True):
            part = frame[(frame["model"] == model) & (frame["start"] == start)]
            for memory in reversed(memories(part)):
                seeds_and_mean(panel, part[part["memory"] == memory], "ahead", kind, **memory_style(memory))
            panel.axhline(0, color="#808080", linewidth=0.6)
            panel.grid(axis="both")
        line[0].set_ylabel(f"{label}\nbits spared", fontsize=7)
    for panel, (model, start) in zip(axes[0], networks, strict=True):
        panel.set_title(f"{look(model).label}\n{STARTS[start]}", fontsize=6.5)
    for panel in axes[-1]:
        panel.set_xlabel("characters beyond the next")
    below(figure, memory_handles(frame))
    return attach(figure, frame)
