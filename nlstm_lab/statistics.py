"""Intervals over seeds: Student's t, from three seeds on."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import stats


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
