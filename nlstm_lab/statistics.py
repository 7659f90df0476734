"""What may be said: t intervals over seeds, differences between them, Holm's correction, a bootstrap within a seed."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.stats.contingency import crosstab, expected_freq

Ordering = Literal["holds", "fails", "inconclusive", "not measured"]
NAN = float("nan")


class Interval(NamedTuple):
    """A mean with the ends of its interval; the ends are NaN where there are too few values for one."""

    mean: float
    low: float
    high: float

    def above(self, bound: float) -> Literal["holds", "fails", "inconclusive"]:
        """Whether all of it lies above the bound; one that touches it, or is not there, decides nothing."""
        return "holds" if self.low > bound else "fails" if self.high < bound else "inconclusive"


def t_interval(values: Iterable[float]) -> Interval:
    """Compute the mean of the values (one a seed) and its 95 % Student t interval.

    Fewer than three values give a mean alone; with a value that is not finite, the mean is not finite either.

    >>> [round(end, 3) for end in t_interval([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    """
    sample = np.asarray([*values], dtype=float)
    mean = float(sample.mean()) if sample.size else NAN
    if sample.size < 3:
        return Interval(mean, NAN, NAN)
    spread = float(stats.t.ppf(0.975, sample.size - 1) * stats.sem(sample))
    return Interval(mean, mean - spread, mean + spread)


class Compared(NamedTuple):
    """A difference over seeds, whether the first is larger, seeds of the side with fewer, and degrees of freedom."""

    difference: Interval
    seeds: int
    ordering: Ordering
    df: float

    def row(self) -> dict[str, Any]:
        """As a row of a table: verdict (fewer than three seeds give none), difference, low, high, seeds, df."""
        verdict = "too few seeds" if self.ordering == "not measured" and self.seeds < 3 else self.ordering
        values = dict(zip(("difference", "low", "high"), self.difference, strict=True))
        return {"verdict": verdict, **values, "seeds": self.seeds, "df": self.df}


def bootstrap(values: ArrayLike) -> Interval:
    """Compute the mean of the values with its 95 % percentile bootstrap interval, reproducibly.

    It is for texts, moments and units within one seed; over a handful of seeds it promises too much (`t_interval`).
    Fewer than three values give no interval.
    """
    array = np.asarray(values, float)
    if len(array) < 3:
        return t_interval(array)
    found = stats.bootstrap((array,), np.mean, n_resamples=1000, method="percentile", rng=np.random.default_rng(0))
    return Interval(float(array.mean()), *map(float, found.confidence_interval))


def compare(first: Mapping[Any, float], second: Mapping[Any, float] | None = None, *, paired: bool = False) -> Compared:
    """Compare two things over seeds: is `first` larger than `second`?

    Args:
        first, second: A value for each seed; logarithms where a ratio is meant. None: is the first larger than zero?
        paired: Both values of a seed are of one network: their difference is taken within it. Else it is Welch's.

    Returns:
        Ordering `holds` where the interval lies above 0, `fails` where it lies below, `inconclusive` where it touches
        0, `not measured` where a side has fewer than three seeds or a value that is not a number.
    """
    first = dict(first)  # a Series as well
    if second is None:
        second, paired = dict.fromkeys(first, 0.0), True
    second = dict(second)
    if paired:
        differences = [first[seed] - second[seed] for seed in first if seed in second]
        seeds, interval, df = len(differences), t_interval(differences), float(len(differences) - 1)
    else:
        seeds = min(len(first), len(second))
        interval, df = _welch(list(first.values()), list(second.values()))
    decided = np.isfinite(interval).all()
    return Compared(interval, seeds, interval.above(0.0) if decided else "not measured", df if decided else NAN)


def _welch(first: list[float], second: list[float]) -> tuple[Interval, float]:
    """The difference of two means with Welch's interval, and its degrees of freedom (Satterthwaite's)."""
    mean = float(np.mean(first) - np.mean(second)) if first and second else NAN
    if min(len(first), len(second)) < 3:
        return Interval(mean, NAN, NAN), NAN
    if not (np.ptp(first) or np.ptp(second)):  # nothing scatters
        return Interval(mean, mean, mean), float(len(first) + len(second) - 2)
    with warnings.catch_warnings(action="ignore"):  # scipy's, of a side that does not scatter
        welch = stats.ttest_ind(first, second, equal_var=False)
    return Interval(mean, *map(float, welch.confidence_interval())), float(welch.df)


def least(compared: Iterable[Compared]) -> Compared:
    """Of comparisons with several rivals the one that decides: whose interval begins lowest.

    A claim holds where it holds against each; it fails where it fails against one.
    """
    rank = {"fails": 0, "not measured": 1}
    return min(compared, key=lambda one: (rank.get(one.ordering, 2), one.difference.low))


def p_value(interval: Interval, df: float, bound: float = 0.0) -> float:
    """The two-sided p of the t test of `bound` that belongs to an interval; NaN where there is no interval."""
    if not np.isfinite([*interval, df]).all():
        return NAN
    error = (interval.high - interval.low) / 2 / stats.t.ppf(0.975, df)
    distance = abs(interval.mean - bound)
    return float(2 * stats.t.sf(distance / error, df)) if error else float(distance == 0)


def mutual_information(one: NDArray[Any], other: NDArray[Any]) -> float:
    """How many bits two series of labels tell of each other, step by step: their plug-in mutual information."""
    joint = crosstab(one, other).count
    return float(stats.entropy(joint, expected_freq(joint), base=2, axis=None))


def holm(p_values: ArrayLike) -> NDArray[np.bool_]:
    """Which of several tests remain significant at 5 % when all count (Holm 1979); NaN takes no part.

    >>> holm([0.01, 0.04, 0.03, float("nan")]).tolist()
    [True, False, False, False]
    """
    values = np.asarray(p_values, float)
    order = np.argsort(values)[: np.isfinite(values).sum()]  # NaN is sorted last
    passed = values[order] <= 0.05 / (len(order) - np.arange(len(order)))
    kept = np.zeros(values.shape, bool)
    kept[order] = np.logical_and.accumulate(passed)
    return kept
