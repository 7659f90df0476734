"""Timescales of every unit of every memory: of its states, of its forget gates.

A dead cell gets no timescale: a counter has an infinite autocorrelation time and remembers nothing. Frames
keep it, with NaN and the reason; medians over live cells (`gathering.medians`) say beside them how many are not.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from nlstm_lab.errors import UsageError
from nlstm_lab.probes import autocorrelation, liveness
from nlstm_lab.probes.reading import hidden_states, memory_states

Array = NDArray[np.floating[Any]]

VALUES: dict[str, Callable[[Array], Array]] = {
    "raw": lambda c: c,
    "tanh": np.tanh,  # what the rest of the unit sees
    "raw increments": lambda c: np.diff(c, axis=0),
    "tanh increments": lambda c: np.diff(np.tanh(c), axis=0),
}


def state_timescales(trace: xr.Dataset, values: Iterable[str] = tuple(VALUES), *, skip: int = 0) -> pd.DataFrame:
    """The autocorrelation timescales of every cell, in steps, one row a cell and kind of value.

    Columns: memory, unit, value (a key of `VALUES`), life, `timescale` (integrated) with `low` and `high`,
    `window`, `effective_samples`, `e_folding`, `exponential` (see `autocorrelation`) and `reason`, empty
    where there are numbers. For a unit without memory cells (a GRU) the hidden states are taken, as memory
    'h' or 'layer 1 h'. `skip` leaves out the first steps, while a network is still moving away from its zero
    state.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> text = lab.probes.shuffled("the company said that it would not sell the old bank " * 40, "words")
    >>> frame = lab.probes.state_timescales(lab.probes.trace(model, text), ["tanh"])
    >>> medians = frame.groupby("memory")["timescale"].median()  # in characters; a dead cell has NaN
    >>> bool(medians["inner"] > medians["outer"])
    True
    """
    trace = trace.isel(time=slice(skip, None))
    if trace.sizes["time"] < 2:
        raise UsageError(f"there is nothing left of the text after the first {skip} steps")
    states = memory_states(trace) or hidden_states(trace)
    lives = _lives(liveness.classes(trace)) if "c" in trace else {}
    frames = []
    for value in values:
        if value not in VALUES:
            raise UsageError(f"timescales are those of {', '.join(map(repr, VALUES))}, not of {value!r}")
        for memory, x in states.items():
            told = autocorrelation.timescales(VALUES[value](x.values))
            frame = pd.DataFrame({"memory": memory, "unit": trace.unit.values, "value": value})
            frame["life"] = lives.get(memory, "alive")
            frame["timescale"], frame["low"], frame["high"] = told.integrated, told.low, told.high
            frame["window"], frame["effective_samples"] = told.window, told.samples
            frame["e_folding"], frame["exponential"] = told.e_folding, told.exponential
            frames.append(_without_dead(frame, told.reason))
    return pd.concat(frames, ignore_index=True)


def gate_timescales(trace: xr.Dataset) -> pd.DataFrame:
    """-1 / ln f of every cell's forget gate, in steps, once from the mean of f and once from the mean of ln f.

    It is the decay of c_t = f c_{t-1} + ..., hence defined for plain cells and the innermost memory alone: an
    outer memory of a Nested LSTM, c = o~ tanh(c~), has no leak of its own, and its rows are NaN with that
    reason (the local persistence compares all memories alike). Columns: memory, unit, life, `from_mean_f`,
    `from_mean_ln_f`, reason.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> trace = lab.probes.trace(model, "the old man said that he would not sell the company")
    >>> found = lab.probes.gate_timescales(trace).groupby("memory").from_mean_f.count()
    >>> int(found["outer"]), bool(found["inner"] > 0)  # the outer memory has no leak of its own
    (0, True)
    """
    liveness.need(trace)
    lives = _lives(liveness.classes(trace))
    frames = []
    for memory in trace.memory.values:
        f = trace["f"].sel(memory=memory).values.astype(np.float64)
        frame = pd.DataFrame({"memory": memory, "unit": trace.unit.values, "life": lives[memory]})
        with np.errstate(divide="ignore"):
            frame["from_mean_f"] = -1 / np.log(f.mean(0))
            frame["from_mean_ln_f"] = -1 / np.log(f).mean(0)
        if "z" in trace:
            reason = np.full(len(frame), "the forget gate acts on UPDATE alone")
        elif not trace["leaks"].sel(memory=memory):
            reason = np.full(len(frame), "no leak of its own: c = o~ tanh(c~)")
        else:
            reason = np.where(np.isfinite(frame["from_mean_f"]), "", "the forget gate is 1 throughout")
        frames.append(_without_dead(frame, reason))
    return pd.concat(frames, ignore_index=True)


def _lives(frame: pd.DataFrame) -> dict[str, NDArray[np.str_]]:
    return {str(memory): group["life"].to_numpy(str) for memory, group in frame.groupby("memory")}


def _without_dead(frame: pd.DataFrame, reason: NDArray[np.str_]) -> pd.DataFrame:
    """The frame with `reason`, and NaN instead of numbers wherever there is one, or the cell is dead."""
    life = frame["life"].to_numpy(str)
    reason = np.where((life == "latched") | ((reason == "") & (life != "alive")), life, reason)
    numbers = frame.select_dtypes("number").columns.difference(["unit"])
    frame.loc[reason != "", numbers] = np.nan
    frame["reason"] = reason
    return frame
