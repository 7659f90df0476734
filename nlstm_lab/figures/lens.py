"""What each memory alone would predict."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlstm_lab.figures.panels import below, memory_grid, memory_handles
from nlstm_lab.figures.plotted import attach
from nlstm_lab.figures.style import PAGE, styled


@styled
def lens_losses(losses: pd.DataFrame, width: float = PAGE, ax: Axes | None = None) -> Figure:
    """Bits per character that each memory spares, by a lens and by the readout itself, against the distance.

    What the frequencies alone predict is 0; below it a prediction is worse than that. Every seed is faint, the mean
    strong; a hidden state is dashed.

    Args:
        losses: `lab.probes.gather(networks, lab.probes.lens_losses, excerpt)`.
    """
    frame = losses[["model", "start", "seed", "memory", "ahead"]].copy()
    for kind in ("lens", "direct"):
        frame[kind] = losses["frequency"] - losses[kind]
    rows = {f"{label}\nbits spared": (frame, kind) for kind, label in (("lens", "lens"), ("direct", "readout itself"))}
    size = width, 3.6
    figure, axes = memory_grid(ax, size, rows, "ahead", "characters beyond the next", sharex=True, sharey="row")
    for panel in axes.flat:
        panel.axhline(0, color="#808080", linewidth=0.6)
    below(figure, memory_handles(frame))
    return attach(figure, frame)
