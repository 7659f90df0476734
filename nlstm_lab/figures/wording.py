"""Intervals and orderings in words, for sentences that a notebook computes."""

from typing import Protocol

from nlstm_lab.statistics import Interval


class Compared(Protocol):
    """A paired comparison, as `lab.probes.paired` returns it."""

    @property
    def difference(self) -> Interval: ...
    @property
    def seeds(self) -> int: ...
    @property
    def ordering(self) -> str: ...


def with_interval(interval: Interval, form: str = ".2f") -> str:
    """A mean with its interval, each end in the given format.

    >>> with_interval(Interval(0.5, 0.25, 0.75), ".0%")
    '50% (95 % interval 25% to 75%)'
    >>> with_interval(Interval(0.5, float("nan"), float("nan")))
    '0.50 (no interval: fewer than three seeds)'
    """
    mean, low, high = (format(end, form) for end in interval)
    if interval.low != interval.low:
        return f"{mean} (no interval: fewer than three seeds)"
    return f"{mean} (95 % interval {low} to {high})"


def ordering(compared: Compared, first: str, second: str, more: str, less: str, form: str = "+.2f") -> str:
    """Which of the two is more, as far as the interval of their paired difference tells.

    >>> from types import SimpleNamespace
    >>> told = SimpleNamespace(difference=Interval(2.0, 1.0, 3.0), seeds=5, ordering="holds")
    >>> ordering(told, "the inner memory", "the outer", "slower than", "faster than", "+.0f")
    'the inner memory is slower than the outer: the difference is +2 (95 % interval +1 to +3), 5 seeds'
    """
    if compared.ordering == "not measured":
        return f"{first} and {second} were not compared: an interval needs three seeds, and {compared.seeds} had both"
    relation = {"holds": f"is {more}", "fails": f"is {less}"}.get(compared.ordering, "cannot be told apart from")
    told = with_interval(compared.difference, form)
    return f"{first} {relation} {second}: the difference is {told}, {compared.seeds} seeds"
