"""Which cells of a traced network are alive: asked before any timescale."""

import numpy as np
import pandas as pd
import torch
import xarray as xr

from nlstm_lab.errors import UsageError
from nlstm_lab.training.liveness import CLASSES, liveness


def need(trace: xr.Dataset) -> None:
    """Raise UsageError unless the trace has memory cells."""
    if "c" not in trace:
        raise UsageError(f"the unit of {trace.attrs.get('model', '')!r} has no memory cells, only hidden states h")


def classes(trace: xr.Dataset) -> pd.DataFrame:
    """Tell which cells are alive, by the second half of the text as a whole (notebook 93 writes the definition out).

    Returns:
        One row a cell: memory, unit, life: 'alive', 'silent' (its tanh is constant), 'latched' (saturated: it counts)
        or 'not finite', as records call them.

    Raises:
        UsageError: There are no memory cells.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm", scale="small").model()
    >>> lives = classes(lab.probes.trace(model, "the old man said that he would not sell the company"))
    >>> len(lives), lives.query("memory == 'inner'").life.mode().item()  # 2 memories x 150 cells
    (300, 'latched')
    """
    need(trace)
    rows = []
    for memory in trace.memory.values:
        c, i, f, g = (torch.from_numpy(trace[name].sel(memory=memory).values)[:, None] for name in "cifg")
        life = np.array(CLASSES)[liveness(c, i, f, g).numpy()]
        life = np.where(c.isfinite().all(0)[0].numpy(), life, "not finite")
        rows.append(pd.DataFrame({"memory": memory, "unit": trace.unit.values, "life": life}))
    return pd.concat(rows, ignore_index=True)
