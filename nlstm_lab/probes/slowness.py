"""How slow every unit of every memory is: the autocorrelation time of its states.

tau = 1/2 + sum of the autocorrelations rho_k, k = 1 ... M, up to the first M of at least `WINDOW` times the sum so far
(the self-consistent window of Sokal, "Monte Carlo Methods in Statistical Mechanics", section 3); its standard error is
tau sqrt(4 (M + 1/2 - tau) / T) (Wolff, "Monte Carlo errors with less errors", equation 42).

It is 0.5 for white noise, and less for a signal that turns back on itself (anticorrelated). There the window closes
too early: for values that correlate by -0.2, -0.3, -0.4, -0.5 with the next, the integrated time is .333, .269, .214,
.167, and the estimate is .34, .23, .10, and nothing or no number at all. It closes too early, too, on a mixture of a
fast and a slow part, where it is a lower bound (notebook 90 estimates it a second way). On a series of finite length,
whose mean is taken from itself, rho is estimated too low: of exponential signals that are 200 timescales long, the
median estimate is 6 % too low; near `LENGTHS` it is lower.

A dead cell gets no timescale: a counter has an infinite autocorrelation time and remembers nothing.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy import fft, stats

from nlstm_lab.datasets import Excerpt
from nlstm_lab.models import Network
from nlstm_lab.probes.forgetting import classes
from nlstm_lab.probes.reading import BURN_IN, hidden_states, memory_states, skipped
from nlstm_lab.probes.records import read, recorded
from nlstm_lab.probes.seeds import RUN, shuffled, untrained
from nlstm_lab.probes.tracing import trace

WINDOW = 5.0  # the window, in timescales (Sokal's c)
LENGTHS = 100.0  # how many timescales a series must hold, or there is no window for it: no number is returned
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
    parts = np.array_split(x, min(x.shape[1], x.size // BLOCK + 1) or 1, axis=1)
    return pd.concat([_block(part) for part in parts], ignore_index=True)


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


def state_timescales(traced: xr.Dataset, *, burn_in: int = 0) -> pd.DataFrame:
    """Measure the autocorrelation time of every cell, in steps; of layers without memory cells, of their h.

    Returns:
        One row a cell and kind of value ("raw" or "tanh"): memory, unit, value, life, `timescale`, `low`, `high` and
        `window` (of `estimate`), and `reason`, empty where there are numbers.

    >>> import nlstm_lab as lab
    >>> model = lab.runs.load("ptb_char_nlstm_logfreq", scale="small").model()
    >>> text = lab.probes.shuffled("the company said that it would not sell the old bank " * 40, "words")
    >>> frame = lab.probes.state_timescales(lab.probes.trace(model, text)).query("value == 'tanh'")
    >>> medians = frame.groupby("memory")["timescale"].median()  # in characters; a dead cell has NaN
    >>> bool(medians["inner"] > medians["outer"])
    True
    """
    traced = skipped(traced, burn_in, 2)
    states = memory_states(traced) or hidden_states(traced)
    cells = pd.MultiIndex.from_product([states, traced["unit"].values], names=["memory", "unit"]).to_frame(index=False)
    life = classes(traced)["life"] if "c" in traced else "alive"
    x = np.concatenate([values.values for values in states.values()], 1)
    frames = [cells.assign(value=value, life=life).join(estimate(seen(x))) for value, seen in VALUES.items()]
    frame = pd.concat(frames, ignore_index=True)
    dead = frame["life"].eq("latched") | (frame["reason"].eq("") & frame["life"].ne("alive"))
    frame["reason"] = frame["reason"].mask(dead, frame["life"])
    frame.loc[frame["reason"] != "", ["timescale", "low", "high", "window"]] = np.nan
    return frame


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


def medians(cells: pd.DataFrame) -> pd.DataFrame:
    """Take the censored median timescale of each run's memory over its cells.

    A cell whose autocorrelation does not close within the text counts as longer than any, an anticorrelated one as 0. A
    median is infinite where at least half of the cells are too slow: it is at least the longest that can be measured,
    `steps / LENGTHS`.

    Args:
        cells: A gathered measure, one row a cell; its `condition` and `value` (a kind of value) are kept apart.

    Returns:
        Columns: the keys; `median`, over living cells; `moving`, over these and constant ones that are too slow;
        `measured`, `too_slow` and `anticorrelated`, how many living cells have a number or why they have none;
        `too_slow_dead`; `dead`, the share of all cells. Fewer than ENOUGH cells have no median: NaN.
    """
    keys = [*RUN, "memory", *(name for name in ("condition", "value") if name in cells)]
    slow, alive = cells["reason"].astype(str).str.startswith("too short"), cells["life"] == "alive"
    turning = alive & cells["reason"].eq("anticorrelated")
    times = cells["timescale"].mask(slow, np.inf).mask(turning, 0.0)
    counts = {"measured": alive & cells["timescale"].notna(), "anticorrelated": turning}
    counts |= {"too_slow": slow & alive, "too_slow_dead": slow & ~alive}
    frame = cells[keys].assign(median=times.where(alive), moving=times, **counts, dead=~alive)
    groups = frame.groupby(keys, sort=False, dropna=False)
    middle = groups[["median", "moving"]]
    table = middle.median().where(middle.count() >= ENOUGH)
    return table.join([groups[[*counts]].sum(), groups["dead"].mean()]).reset_index()
