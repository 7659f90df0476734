"""Sentences with computed numbers: what a notebook shows as text."""

from nlstm_lab.statistics import Compared, Interval


class Prose(str):
    """A string that JupyterLab shows as Markdown."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return str(self)


def prose(text: str) -> Prose:
    """Let the value of a cell read as a paragraph, so that numbers in a notebook's prose come from the data.

    Args:
        text: Markdown.

    >>> prose(f"The mean over {3} seeds is {1.5:.2f}.")
    'The mean over 3 seeds is 1.50.'
    """
    return Prose(text)


def with_interval(interval: Interval, form: str = ".2f") -> str:
    """A mean with its interval, each end in the given format.

    Args:
        interval: The measured difference with its interval.
        form: The format of the numbers, such as "+.3f".

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
    """Which of the two is more, as far as the interval of their difference tells.

    Args:
        compared: The two sides' paired difference (`lab.probes.compared`).
        first: What is named first.
        second: What is named last.
        more: The words for a positive difference.
        less: The words for a negative difference.
        form: The format of the numbers, such as "+.3f".

    >>> from types import SimpleNamespace
    >>> difference = SimpleNamespace(difference=Interval(2.0, 1.0, 3.0), seeds=5, ordering="holds")
    >>> ordering(difference, "the inner memory", "the outer", "slower than", "faster than", "+.0f")
    'the inner memory is slower than the outer: the difference is +2 (95 % interval +1 to +3), 5 seeds'
    """
    if compared.ordering == "not measured":
        return f"{first} and {second} were not compared: an interval needs three seeds, and {compared.seeds} had both"
    relation = {"holds": f"is {more}", "fails": f"is {less}"}.get(compared.ordering, "is not distinguishable from")
    difference = with_interval(compared.difference, form)
    return f"{first} {relation} {second}: the difference is {difference}, {compared.seeds} seeds"
