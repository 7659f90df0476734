"""What figure 3 of Nested LSTMs draws of each cell, as a frame, and how much of it moves."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr

from nlstm_lab.errors import UsageError

Values = Literal["printed", "tanh", "raw"]


def activation_frame(trace: xr.Dataset, units: int | Sequence[int] = 7, values: Values = "printed") -> pd.DataFrame:
    """What the figure shows: a row for each memory (innermost or highest first), unit and character."""
    if values not in ("printed", "tanh", "raw"):
        raise ValueError(f"values must be 'printed', 'tanh' or 'raw', not {values!r}")
    if "c" not in trace:
        raise UsageError(f"{trace.attrs.get('model') or 'this network'} has no cells: see lab.widgets.CellExplorer")
    c = trace["c"].transpose("memory", "unit", "time")
    wanted = list(range(units)) if isinstance(units, int) else list(units)
    if c.size == 0 or not wanted:
        raise ValueError("there is nothing to draw: the trace or the list of units is empty")
    if outside := [unit for unit in wanted if not 0 <= unit < c.sizes["unit"]]:
        raise ValueError(f"units {outside} are not among the network's {c.sizes['unit']} (counted from 0)")
    names = [str(memory) for memory in c["memory"].values]
    # the other memories of a Nested LSTM are what an inner output gate let through: already within (-1, 1)
    innermost = {re.match(r"(layer \d+)?", memory)[0]: memory for memory in names}.values()  # type: ignore[index]
    frames = []
    for memory in reversed(names):
        raw = np.asarray(c.sel(memory=memory).values, dtype=np.float64)[wanted]
        nested = not re.fullmatch(r"cell|layer \d+", memory)
        gated = nested and memory not in innermost
        squash = values == "tanh" or (values == "printed" and not gated)
        # what is drawn in a memory's place, such as a hidden state, brings its own symbol
        symbol = c.attrs.get("symbol") or (r"\tilde{c}_t" if nested and not gated else "c_t")
        columns = {
            "memory": memory,
            "unit": np.repeat(wanted, raw.shape[1]),
            "time": np.tile(np.arange(raw.shape[1]), len(wanted)),
            "symbol": np.tile(trace["symbol"].values.astype(str), len(wanted)),
            "quantity": rf"$\tanh({symbol})$" if squash else f"${symbol}$",
            "value": (np.tanh(raw) if squash else raw).ravel(),
        }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def activation_summary(traces: Iterable[xr.Dataset]) -> pd.DataFrame:
    """What the eye reads off the figure, over all cells: one row for each trace and memory.

    Args:
        traces: Traces of the same text (`lab.probes.trace`).

    Returns:
        Columns `step`, how far a drawn value moves from one character to the next, on average (its range is 2), and
        `held`, the share of cells whose drawn value stays beyond 0.99, or beyond -0.99, from the second half of the
        text on.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm", scale="small").model()
    >>> trace = lab.probes.trace(model, "the old man said that he would not sell the company")
    >>> summary = activation_summary([trace]).set_index("memory")
    >>> bool(summary.step["inner"] < summary.step["outer"]), bool(summary.held["inner"] > 0.9)  # it is dead
    (True, True)
    """
    rows = []
    for trace in traces:
        frame = activation_frame(trace, trace.sizes["unit"])
        for memory, group in frame.groupby("memory", sort=False):
            drawn = group.pivot(index="time", columns="unit", values="value").to_numpy()
            late = drawn[len(drawn) // 2 :]
            about = {name: trace.attrs.get(name, "") for name in ("model", "run")} | {"memory": memory}
            held = ((late > 0.99).all(0) | (late < -0.99).all(0)).mean()
            rows.append(about | {"step": np.abs(np.diff(drawn, axis=0)).mean(), "held": held})
    return pd.DataFrame(rows)
