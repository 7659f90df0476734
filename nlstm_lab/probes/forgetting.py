"""What a memory keeps: its cells that are alive, and what is left of what was written.

Of c_t = f_t c_{t-1} + i_t g_t, from c_0 = 0, the part written at step s is (f_{s+1} ... f_t) i_s g_s; they sum to c_t.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr

from nlstm_lab.errors import UsageError
from nlstm_lab.probes.reading import whole
from nlstm_lab.settings import check_trace, choice
from nlstm_lab.training.liveness import CLASSES, liveness

EXACT = 1e-4  # of the largest state, by which the parts may miss it: gates are float32


def need(trace: xr.Dataset) -> None:
    """Raise UsageError unless this is a trace that has memory cells."""
    check_trace(trace)
    if "c" not in trace:
        raise UsageError(f"{trace.attrs.get('model') or 'this network'} has no memory cells, only hidden states h")
    if "text" in trace.dims:
        raise UsageError("a trace of several texts: take one, trace.sel(text=0), without what is behind its end")
    if not {"i", "f", "g"} <= {*trace}:
        raise UsageError(f"{trace.attrs.get('model') or 'this network'} shows no i, f and g: hook them in `recur`")


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


def retention(
    trace: xr.Dataset,
    memory: str,
    at: int | slice | Sequence[int] = -1,
    units: int | slice | Sequence[int] | None = None,
) -> xr.Dataset:
    """Take apart what a memory holds by when it was written.

    Args:
        trace: Of one text from its start.
        memory: A memory with a leak of its own: "cell", "inner", "layer 2", ...
        at: Steps at which the memory is looked at; negative from the end. All steps of all units need much room.
        units: Units; None for all.

    Returns:
        Dimensions time (the steps `at`), source and unit: `left`, the share of what was written at step `source` that
        is left, in [0, 1], and `part`, that share of i g; both 0 of later steps. The parts sum to `c` (time, unit).

    Raises:
        UsageError: The memory has no leak of its own, or is changed otherwise; there is no such memory, step or unit.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> found = lab.probes.retention(lab.probes.trace(model, "the old man said"), "inner")
    >>> dict(found.part.sizes), bool(abs(found.part.sum("source") - found.c).max() < 1e-5)
    ({'time': 1, 'source': 16, 'unit': 150}, True)
    """
    need(trace)
    known = [str(name) for name in trace["memory"].values]
    leaking = [name for name, leaks in zip(known, trace["leaks"].values, strict=True) if leaks]
    if choice(memory, "memory", known) not in leaking:
        other = f"take {' or '.join(map(repr, leaking))}" if leaking else "as is every memory here"
        raise UsageError(f"{memory!r} has no leak of its own, it is computed anew at every step: {other}")
    length = trace.sizes["time"]
    steps = whole(at, length, f"at {at}: the trace has the steps", from_end=True)
    chosen = whole(units, trace.sizes["unit"], "units must be chosen from")
    c, i, f, g = (trace[name].sel(memory=memory).values[:, chosen].astype(np.float64) for name in "cifg")
    left = np.zeros((len(steps), max(steps) + 1, len(chosen)), np.float32)
    for row, step in zip(left, steps, strict=True):
        row[step] = 1
        row[:step] = np.cumprod(f[step:0:-1], 0)[::-1]
    part = left * (i * g)[None, : left.shape[1]].astype(np.float32)
    missing = np.abs(part.sum(1, dtype=np.float64) - c[steps]).max() / max(1.0, np.abs(c[steps]).max())
    if not missing < EXACT:
        raise UsageError(
            f"the parts of {memory!r} miss its state by {missing:.0%}: it is changed otherwise than by f c + i g from 0"
        )
    data: dict[str, Any] = {"left": (("time", "source", "unit"), left), "part": (("time", "source", "unit"), part)}
    data["c"] = (("time", "unit"), c[steps])
    coords: dict[str, Any] = {"time": steps, "source": np.arange(left.shape[1]), "unit": chosen}
    if "symbol" in trace.coords:
        coords["symbol"] = ("source", trace["symbol"].values[: left.shape[1]])
    return xr.Dataset(data, coords, {"memory": memory, "model": trace.attrs.get("model", "")})
