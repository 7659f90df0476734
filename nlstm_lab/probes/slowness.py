"""How slow every unit of every memory is: the autocorrelation time of its states, the decay of its forget gate.

tau = 1/2 + sum of the autocorrelations rho_k, k = 1 ... M, up to the first M of at least `WINDOW` times the sum so far
(the self-consistent window of Sokal, "Monte Carlo Methods in Statistical Mechanics", section 3); its standard error is
tau sqrt(4 (M + 1/2 - tau) / T) (Wolff, "Monte Carlo errors with less errors", equation 42).

It is 0.5 for white noise, and less for a signal that turns back on itself (anticorrelated). There the window closes
too early: for values that correlate by -0.2, -0.3, -0.4, -0.5 with the next, the integrated time is .333, .269, .214,
.167, and the estimate is .34, .23, .10, and nothing or no number at all. It closes too early, too, on a mixture of a
fast and a slow part (notebook 90), where it is a lower bound: `spectral` estimates the time a second way. On a series
of finite length, whose mean is taken from itself, rho is estimated too low: of exponential signals that are 200
timescales long, the median estimate is 6 % too low; near `LENGTHS` it is lower.

A dead cell gets no timescale: a counter has an infinite autocorrelation time and remembers nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy import fft, stats

from nlstm_lab.datasets import Excerpt
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network
from nlstm_lab.probes.forgetting import classes, persistence
from nlstm_lab.probes.reading import BURN_IN, hidden_states, memory_states, skipped
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.probes.seeds import RUN, shuffled, untrained
from nlstm_lab.probes.tracing import trace

WINDOW = 5.0  # the window, in timescales (Sokal's c)
LENGTHS = 100.0  # how many timescales a series must hold, or there is no window for it: no number is returned
TAPERS = 50  # of the spectral estimate
SURE = 3.0  # standard errors by which the two estimates differ where a signal has a slow part
BLOCK = 2**20  # values transformed at once
ENOUGH = 3  # cells with a number, below which a memory of a run has no median
Array = NDArray[np.floating[Any]]
VALUES: dict[str, Callable[[Array], Array]] = {"raw": lambda c: c, "tanh": np.tanh}  # what the rest of the unit sees


def autocorrelation(x: Array, lags: int) -> Array:
    """rho_0 ... rho_lags of every series, x [T, N] to [lags + 1, N], by FFT; NaN of a constant one."""
    x = np.asarray(x, np.float64)
    length = len(x)
    x = x - x.mean(0)
    size = fft.next_fast_len(length + lags, real=True)
    power = np.abs(fft.rfft(x, size, axis=0)) ** 2
    covariance = fft.irfft(power, size, axis=0)[: lags + 1] / (length - np.arange(lags + 1))[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(covariance / covariance[0])


def estimate(x: Array) -> pd.DataFrame:
    """The timescale of every series, x [T, N], in steps: a row each, NaN where the series does not tell, with a reason.
    `low` and `high` are the ends of the 95 % interval (of the logarithm), `window` is M."""
    x = np.asarray(x)
    columns = max(1, BLOCK // max(len(x), 1))
    blocks = [_block(x[:, start : start + columns]) for start in range(0, x.shape[1], columns)]
    return pd.concat(blocks, ignore_index=True)


def _block(x: Array) -> pd.DataFrame:
    length = len(x)
    finite = np.isfinite(x).all(0)
    x = np.where(finite, x, 0.0).astype(np.float64)
    moving = np.ptp(x, axis=0) > 1e-6 * np.abs(x).max(0)  # less is rounding of single precision
    rho = autocorrelation(x, int(length * WINDOW / LENGTHS))
    sums = np.cumsum(rho, axis=0) - 0.5
    wide = np.arange(len(rho))[:, None] >= WINDOW * sums
    wide[0] = False  # a window holds one lag at least
    window = np.argmax(wide, axis=0)
    tau, converged = np.take_along_axis(sums, window[None], 0)[0], wide.any(0)
    conditions = [~finite, ~moving, ~converged, tau <= 0]
    reason = np.select(conditions, ["not finite", "constant", f"too short: {length} steps", "anticorrelated"], "")
    tau = np.where(reason == "", tau, np.nan)
    half = stats.norm.ppf(0.975) * np.sqrt(4 * (window + 0.5 - tau) / length)
    ends = {"low": tau * np.exp(-half), "high": tau * np.exp(half), "window": np.where(reason == "", window, np.nan)}
    return pd.DataFrame({"timescale": tau, **ends, "reason": reason})


def spectral(x: Array) -> Array:
    """The time of every series from its spectrum at frequency 0, x [T, N]: S(0) / (2 variance).

    S(0) is the mean over TAPERS sine tapers (Riedel and Sidorenko 1995), hence of frequencies up to TAPERS / 2T: it
    sees correlations up to about 2T / TAPERS steps, with a standard error of sqrt(2 / TAPERS) of itself.
    """
    x = np.asarray(x, np.float64)
    x = x - x.mean(0)
    power = fft.dst(x, type=1, axis=0, norm="ortho")[:TAPERS] ** 2
    with np.errstate(invalid="ignore", divide="ignore"):  # the mean that is taken away holds the power of one taper
        return np.asarray(power.sum(0) / (len(power) - 1) / (2 * x.var(0)))


def slow_part(estimated: pd.DataFrame, second: Array, steps: int) -> NDArray[np.bool_]:
    """Whether a series of so many steps has a slow part that its window does not see; False without a number."""
    error = np.sqrt(2 / TAPERS + 4 * (estimated["window"] + 0.5 - estimated["timescale"]) / steps)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.log(second / estimated["timescale"]) > SURE * error)


def state_timescales(traced: xr.Dataset, values: Iterable[str] = tuple(VALUES), *, burn_in: int = 0) -> pd.DataFrame:
    """Measure the autocorrelation time of every cell, in steps; of a unit without memory cells, of its h.

    Args:
        values: Kinds of value, keys of `VALUES`.

    Returns:
        One row a cell and kind of value: memory, unit, value, life, `timescale`, `low`, `high` and `window` (of
        `estimate`), and `reason`, empty where there are numbers.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> text = lab.probes.shuffled("the company said that it would not sell the old bank " * 40, "words")
    >>> frame = lab.probes.state_timescales(lab.probes.trace(model, text), ["tanh"])
    >>> medians = frame.groupby("memory")["timescale"].median()  # in characters; a dead cell has NaN
    >>> bool(medians["inner"] > medians["outer"])
    True
    """
    traced = skipped(traced, burn_in, 2)
    lives = _lives(traced) if "c" in traced else {}
    frames = []
    for value in values:
        if value not in VALUES:
            raise UsageError(f"timescales are those of {', '.join(map(repr, VALUES))}, not of {value!r}")
        for memory, x in (memory_states(traced) or hidden_states(traced)).items():
            about = {"memory": memory, "unit": traced.unit.values, "value": value, "life": lives.get(memory, "alive")}
            frames.append(_without_dead(pd.DataFrame(about).join(estimate(VALUES[value](x.values)))))
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
        frame["reason"] = np.where(np.isfinite(frame["from_mean_f"]), "", "the forget gate is 1 throughout")
        if "z" in traced:
            frame["reason"] = "the forget gate acts on UPDATE alone"
        elif not traced["leaks"].sel(memory=memory):
            frame["reason"] = "no leak of its own: c = o~ tanh(c~)"
        frames.append(_without_dead(frame))
    return pd.concat(frames, ignore_index=True)


def _lives(traced: xr.Dataset) -> dict[str, NDArray[np.str_]]:
    return {str(memory): group.to_numpy(str) for memory, group in classes(traced).groupby("memory")["life"]}


def _without_dead(frame: pd.DataFrame) -> pd.DataFrame:
    """NaN instead of numbers wherever there is a reason, or the cell is dead, which then is the reason."""
    life, reason = frame["life"].to_numpy(str), frame["reason"].to_numpy(str)
    reason = np.where((life == "latched") | ((reason == "") & (life != "alive")), life, reason)
    frame.loc[reason != "", frame.select_dtypes("number").columns.difference(["unit"])] = np.nan
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
        the lowest frequencies, and `slow_part`: whether they disagree, so that `timescale` is a lower bound.
    """
    traced = skipped(trace(model, read(text), predictions=False), burn_in)
    states = memory_states(traced) or hidden_states(traced)
    frames = []
    for key, frame in state_timescales(traced).groupby(["memory", "value"], sort=False):
        memory, value = map(str, key)
        x = VALUES[value](states[memory].values)
        second = spectral(np.where(np.isfinite(x), x, 0))
        slow = slow_part(frame, second, len(x))
        frames.append(frame.assign(spectral=np.where(frame["reason"] == "", second, np.nan), slow_part=slow))
    return pd.concat(frames).sort_index()[["memory", "unit", "value", "life", "timescale", "spectral", "slow_part"]]


def medians(cells: pd.DataFrame, column: str = "timescale") -> pd.DataFrame:
    """Take the censored median of each run's memory over its cells.

    A cell whose autocorrelation does not close within the text counts as longer than any. A median is infinite where at
    least half of the cells do: it is at least the longest that can be measured, `steps / LENGTHS`.

    Args:
        cells: A gathered measure, one row a cell; its `condition` and `value` (a kind of value) are kept apart.
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
