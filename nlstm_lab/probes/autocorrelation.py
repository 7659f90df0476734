"""How long a signal stays like itself: its integrated autocorrelation time, in steps, with what it is worth.

tau = 1/2 + sum of the autocorrelations rho_k, k = 1 ... M, up to the first M of at least `WINDOW` times the sum so far
(the self-consistent window of Sokal, "Monte Carlo Methods in Statistical Mechanics", section 3); its standard error is
tau sqrt(4 (M + 1/2 - tau) / T) (Wolff, "Monte Carlo errors with less errors", equation 42).

It is 0.5 for white noise, and less for a signal that turns back on itself (anticorrelated). There the window closes
too early: for values that correlate by -0.2, -0.3, -0.4, -0.5 with the next, the integrated time is .333, .269, .214,
.167, and the estimate is .34, .23, .10, and nothing or no number at all. It closes too early, too, on a mixture of a
fast and a slow part (notebook 90): so `spectral` estimates the time a second way, from the lowest frequencies of the
whole series, and `slow_part` tells where the two disagree: there the window's estimate is a lower bound. On a series of
finite length, whose mean is taken from itself, rho is estimated too low: of exponential signals that are 200 timescales
long, the median estimate is 6 % too low; near `LENGTHS` it is lower.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import fft, stats

WINDOW = 5.0  # the window, in timescales (Sokal's c)
LENGTHS = 100.0  # how many timescales a series must hold, or there is no window for it: no number is returned
TAPERS = 50  # of the spectral estimate
SURE = 3.0  # standard errors by which the two estimates differ where a signal has a slow part
BLOCK = 2**20  # values transformed at once

Array = NDArray[np.floating[Any]]


class Timescales(NamedTuple):
    """One entry for each series, in steps; NaN where the series does not tell, with a reason. `low` and `high` are the
    ends of the 95 % interval (of the logarithm), `window` is M."""

    timescale: Array
    low: Array
    high: Array
    window: Array
    reason: NDArray[np.str_]


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


def estimate(x: Array) -> Timescales:
    """The timescale of every series, x [T, N], each judged on its own; or NaN and a reason."""
    x = np.asarray(x)
    columns = max(1, BLOCK // max(len(x), 1))
    blocks = [_block(x[:, start : start + columns]) for start in range(0, x.shape[1], columns)]
    return Timescales(*(np.concatenate(arrays) for arrays in zip(*blocks, strict=True)))


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


def slow_part(estimated: Timescales, second: Array, steps: int) -> NDArray[np.bool_]:
    """Whether a series of so many steps has a slow part that its window does not see; False without a number."""
    error = np.sqrt(2 / TAPERS + 4 * (estimated.window + 0.5 - estimated.timescale) / steps)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.log(second / estimated.timescale) > SURE * error)


def _block(x: Array) -> Timescales:
    length = len(x)
    finite = np.isfinite(x).all(0)
    x = np.where(finite, x, 0.0).astype(np.float64)
    moving = np.ptp(x, axis=0) > 1e-6 * np.abs(x).max(0)  # less is rounding of single precision
    lags = int(length * WINDOW / LENGTHS)
    rho = autocorrelation(x, lags)
    sums = np.cumsum(rho, axis=0) - 0.5
    wide = np.arange(len(rho))[:, None] >= WINDOW * sums
    wide[0] = False  # a window holds one lag at least
    window = np.argmax(wide, axis=0)
    tau, converged = np.take_along_axis(sums, window[None], 0)[0], wide.any(0)
    conditions = [~finite, ~moving, ~converged, tau <= 0]
    reason = np.select(conditions, ["not finite", "constant", f"too short: {length} steps", "anticorrelated"], "")
    tau = np.where(reason == "", tau, np.nan)
    half = stats.norm.ppf(0.975) * np.sqrt(4 * (window + 0.5 - tau) / length)
    used = np.where(reason == "", window, np.nan)
    return Timescales(tau, tau * np.exp(-half), tau * np.exp(half), used, reason)
