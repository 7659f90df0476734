"""Timescales of every unit of every memory: of its states, of its forget gates.

A dead cell gets no timescale: a counter has an infinite autocorrelation time and remembers nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from nlstm_lab.datasets import Excerpt
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes import autocorrelation, liveness
from nlstm_lab.probes.baselines import shuffled, untrained
from nlstm_lab.probes.jacobians import persistence
from nlstm_lab.probes.reading import BURN_IN, hidden_states, memory_states, skipped
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.probes.seeds import RUN
from nlstm_lab.probes.tracing import trace

ENOUGH = 3  # cells with a number, below which a memory of a run has no median
Array = NDArray[np.floating[Any]]
VALUES: dict[str, Callable[[Array], Array]] = {
    "raw": lambda c: c,
    "tanh": np.tanh,  # what the rest of the unit sees
}


def state_timescales(traced: xr.Dataset, values: Iterable[str] = tuple(VALUES), *, burn_in: int = 0) -> pd.DataFrame:
    """Measure the autocorrelation timescale of every cell, in steps; of a unit without memory cells, of its h.

    Args:
        values: Kinds of value, keys of `VALUES`.

    Returns:
        One row a cell and kind of value: memory, unit, value, life, `timescale` with `low` and `high`, `window` (see
        `autocorrelation`) and `reason`, empty where there are numbers.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> text = lab.probes.shuffled("the company said that it would not sell the old bank " * 40, "words")
    >>> frame = lab.probes.state_timescales(lab.probes.trace(model, text), ["tanh"])
    >>> medians = frame.groupby("memory")["timescale"].median()  # in characters; a dead cell has NaN
    >>> bool(medians["inner"] > medians["outer"])
    True
    """
    traced = skipped(traced, burn_in, 2)
    states = memory_states(traced) or hidden_states(traced)
    lives = _lives(traced) if "c" in traced else {}
    frames = []
    for value in values:
        if value not in VALUES:
            raise UsageError(f"timescales are those of {', '.join(map(repr, VALUES))}, not of {value!r}")
        for memory, x in states.items():
            estimated = autocorrelation.estimate(VALUES[value](x.values))._asdict()
            reason = estimated.pop("reason")
            about = {"memory": memory, "unit": traced.unit.values, "value": value, "life": lives.get(memory, "alive")}
            frames.append(_without_dead(pd.DataFrame(about | estimated), reason))
    return pd.concat(frames, ignore_index=True)


def gate_timescales(traced: xr.Dataset) -> pd.DataFrame:
    """-1 / ln f of every cell's forget gate, from the mean of f and from the mean of ln f.

    It is the decay of c_t = f c_{t-1} + ..., hence defined for plain cells and the innermost memory alone; other rows
    are NaN with a reason.
    """
    lives = _lives(traced)
    frames = []
    for memory in traced.memory.values:
        f = traced["f"].sel(memory=memory).values.astype(np.float64)
        frame = pd.DataFrame({"memory": memory, "unit": traced.unit.values, "life": lives[memory]})
        with np.errstate(divide="ignore"):
            frame["from_mean_f"] = -1 / np.log(f.mean(0))
            frame["from_mean_ln_f"] = -1 / np.log(f).mean(0)
        reason = np.where(np.isfinite(frame["from_mean_f"]), "", "the forget gate is 1 throughout")
        if "z" in traced or not traced["leaks"].sel(memory=memory):
            why = "the forget gate acts on UPDATE alone" if "z" in traced else "no leak of its own: c = o~ tanh(c~)"
            reason = np.full(len(frame), why)
        frames.append(_without_dead(frame, reason))
    return pd.concat(frames, ignore_index=True)


def _lives(traced: xr.Dataset) -> dict[str, NDArray[np.str_]]:
    return {str(memory): group.to_numpy(str) for memory, group in liveness.classes(traced).groupby("memory")["life"]}


def _without_dead(frame: pd.DataFrame, reason: NDArray[np.str_]) -> pd.DataFrame:
    """The frame with `reason`, and NaN instead of numbers wherever there is one, or the cell is dead."""
    life = frame["life"].to_numpy(str)
    reason = np.where((life == "latched") | ((reason == "") & (life != "alive")), life, reason)
    numbers = frame.select_dtypes("number").columns.difference(["unit"])
    frame.loc[reason != "", numbers] = np.nan
    return frame.assign(reason=reason)


@recorded("timescales", by=["order", "trained", "burn_in", "seed"])
def timescales(
    model: Network,
    text: str | Excerpt,
    order: Literal["in order", "characters", "words"] = "in order",
    trained: bool = True,
    burn_in: int = BURN_IN,
    seed: int = 0,
) -> pd.DataFrame:
    """Read a text and measure `state_timescales` of every cell, one row a cell and kind of value.

    Args:
        order: The text as it is, or its characters or words shuffled from `seed`.
        trained: False for the same network with its parameters drawn anew from `seed`.
        seed: Of the baselines.

    Returns:
        The columns of `state_timescales`.
    """
    text = read(text) if order == "in order" else shuffled(read(text), order, seed)
    network = model if trained else untrained(model, seed)
    return state_timescales(trace(network, text, predictions=False), burn_in=burn_in)


@recorded("gates", by=["burn_in"])
def gates_and_persistence(model: Network, text: str | Excerpt, burn_in: int = BURN_IN) -> pd.DataFrame:
    """Read a text and measure -1 / ln f of every cell and the local persistence of every memory, one row a cell.

    Returns:
        Columns memory, unit, life; `from_mean_f` and `from_mean_ln_f`, -1 / ln f in steps from the mean of f and from
        that of ln f, NaN with a reason where a memory has no leak of its own; reason; and `persistence`: the mean over
        time of the diagonal of dc_t / dc_{t-1}, which all memories have.
    """
    traced = skipped(trace(model, read(text), predictions=False), burn_in)
    local = persistence(model, traced).mean("time").to_series()
    frame = gate_timescales(traced)
    return frame.assign(persistence=local.reindex(pd.MultiIndex.from_frame(frame[["memory", "unit"]])).to_numpy())


@recorded("slow_parts", by=["burn_in"])
def slow_parts(model: Network, text: str | Excerpt, burn_in: int = BURN_IN) -> pd.DataFrame:
    """Read a text and tell whose autocorrelation has a slow part that the window of `timescales` does not see.

    Returns:
        One row a cell and kind of value: memory, unit, value, life, `timescale` by the window, `spectral`, the time by
        the lowest frequencies (see `autocorrelation`), and `slow_part`: whether they disagree, so that `timescale` is a
        lower bound.
    """
    traced = skipped(trace(model, read(text), predictions=False), burn_in)
    states = memory_states(traced) or hidden_states(traced)
    frames = []
    for key, frame in state_timescales(traced).groupby(["memory", "value"], sort=False):
        memory, value = map(str, key)
        x = VALUES[value](states[memory].values)
        estimated = autocorrelation.Timescales(*(frame[name].to_numpy() for name in autocorrelation.Timescales._fields))
        second = autocorrelation.spectral(np.where(np.isfinite(x), x, 0))
        slow = autocorrelation.slow_part(estimated, second, len(x))
        frames.append(frame.assign(spectral=np.where(estimated.reason == "", second, np.nan), slow_part=slow))
    return pd.concat(frames).sort_index()[["memory", "unit", "value", "life", "timescale", "spectral", "slow_part"]]


def medians(cells: pd.DataFrame, column: str = "timescale") -> pd.DataFrame:
    """Take the censored median of each run's memory over its cells.

    A cell whose autocorrelation does not close within the text is slower than can be measured: it counts as longer than
    any. A median is infinite where at least half of the cells are: it is at least the longest that can be measured,
    `steps / autocorrelation.LENGTHS`.

    Args:
        cells: A gathered measure with one row a cell; `condition` and `value` (a kind of value) are kept apart where
            they are columns.
        column: The column of `cells` whose median is taken.

    Returns:
        Columns: the keys; `median`, over living cells; `moving`, over all cells whose value moves, dead ones too;
        `measured` and `too_slow`, how many living cells have a number or are too slow for one; `too_slow_dead`;
        `latched`, `silent`, `dead` (shares of all cells). Fewer than ENOUGH cells have no median: NaN.
    """
    keys = [*RUN, "memory", *(name for name in ("condition", "value") if name in cells and name != column)]
    slow, alive = cells["reason"].astype(str).str.startswith("too short"), cells["life"] == "alive"
    times = cells[column].mask(slow, np.inf)
    counts = {"measured": alive & cells[column].notna(), "too_slow": slow & alive, "too_slow_dead": slow & ~alive}
    shares = {name: cells["life"] == name for name in ("latched", "silent")} | {"dead": ~alive}
    frame = cells[keys].assign(median=times.where(alive), moving=times, **counts, **shares)
    groups = frame.groupby(keys, sort=False, dropna=False)
    middle = groups[["median", "moving"]]
    table = middle.median().where(middle.count() >= ENOUGH)
    return table.join([groups[[*counts]].sum(), groups[[*shares]].mean()]).reset_index()
