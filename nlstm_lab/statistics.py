"""What may be said: t intervals over seeds, orderings from paired differences, a bootstrap within a seed."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

Ordering = Literal["holds", "fails", "undecided", "not measured"]


class Interval(NamedTuple):
    """A mean with the ends of its interval; the ends are NaN where there are too few values for one."""

    mean: float
    low: float
    high: float


def t_interval(values: Iterable[float], confidence: float = 0.95) -> Interval:
    """The mean of the values (one a seed) and the Student t interval of it.

    Fewer than three values give no interval, and a value that is not finite (a seed that was not measured)
    takes everything with it: NaN, never a guess. For two models with the same seeds hand in the paired
    differences.

    Args:
        values: One value a seed.

    >>> [round(end, 3) for end in t_interval([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    """
    sample = np.asarray(list(values), dtype=float)
    if sample.size == 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    mean = float(sample.mean())
    if sample.size < 3:
        return Interval(mean, float("nan"), float("nan"))
    spread = stats.t.ppf((1 + confidence) / 2, sample.size - 1) * sample.std(ddof=1) / np.sqrt(sample.size)
    return Interval(mean, float(mean - spread), float(mean + spread))


class Paired(NamedTuple):
    """A paired difference over seeds, and whether the first is the larger one."""

    difference: Interval
    seeds: int
    ordering: Ordering


def bootstrap(
    values: ArrayLike,
    statistic: Callable[..., Any] = np.mean,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """`statistic` (which takes `axis`) of the values, with its percentile bootstrap interval, reproducibly.

    For texts, moments and units within one seed; seeds are compared with `t_interval`, since a bootstrap over
    a handful promises too much. The first dimension is resampled: `values` [n] or, where rows belong together
    (the units of one text), [n, m], which are averaged by `statistic` over both. Fewer than three give no
    interval.

    Args:
        values: What is resampled.
        statistic: From the resampled values to a number.
    """
    array = np.asarray(values, float)
    if not array.size:
        return Interval(float("nan"), float("nan"), float("nan"))
    rows = array.reshape(len(array), -1)
    centre = float(statistic(rows.ravel(), axis=0))
    if len(rows) < 3:
        return Interval(centre, float("nan"), float("nan"))
    drawn = np.random.default_rng(seed).integers(len(rows), size=(resamples, len(rows)))
    resampled = statistic(rows[drawn].reshape(resamples, -1), axis=1)
    low, high = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(centre, float(low), float(high))


def compare(first: Mapping[Any, float], second: Mapping[Any, float], confidence: float = 0.95) -> Paired:
    """Is `first` larger than `second`? Both hold a value for each seed; only seeds that both have are paired.

    `holds` where the t interval of the paired differences lies above 0, `fails` where it lies below,
    `undecided` where it touches 0, `not measured` where there are fewer than three pairs or one of them is
    not a number. Hand in logarithms where a ratio is meant: a timescale's.

    Args:
        first: One side of the comparison.
        second: The other side, which is subtracted.
    """
    seeds = [seed for seed in first if seed in second]
    interval = t_interval([first[seed] - second[seed] for seed in seeds], confidence)
    if not np.isfinite(interval).all():
        return Paired(interval, len(seeds), "not measured")
    ordering: Ordering = "holds" if interval.low > 0 else "fails" if interval.high < 0 else "undecided"
    return Paired(interval, len(seeds), ordering)
