"""Sentences with computed numbers: what a notebook shows as text."""

from collections.abc import Mapping
from html import escape

import pandas as pd
from pandas.io.formats.style import Styler

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


class Folded(dict[str, pd.DataFrame]):
    """Tables by their titles; JupyterLab shows the titles, and a table where its title is clicked."""

    def _repr_html_(self) -> str:
        return "".join(
            f"<details><summary>{escape(title)}</summary>{table.to_html(index=False, border=0)}</details>"
            for title, table in self.items()
        )


def folded(tables: Mapping[str, pd.DataFrame]) -> Folded:
    """Let the value of a cell be tables that open when their title is clicked, so that a long list stays short.

    Args:
        tables: The tables by their titles.

    >>> folded({"1 < 2": pd.DataFrame({"x": [1]})})._repr_html_().startswith("<details><summary>1 &lt; 2</summary>")
    True
    """
    return Folded(tables)


def what_lacks(outlook: pd.DataFrame, hours: pd.DataFrame) -> Styler | Prose:
    """What is not run (`lab.runs.outlook`), as a table for a notebook; a sentence where nothing lacks.

    Args:
        outlook: `lab.runs.outlook`.
        hours: Of one training of each experiment, its index, a column for each machine (`lab.bench.recorded_hours`).

    >>> import nlstm_lab as lab
    >>> lab.figures.what_lacks(lab.runs.outlook([], "mnist_*", "paper", seeds=[]), lab.bench.recorded_hours([]))
    'Nothing: every row was run with each of these seeds.'
    """
    if outlook.empty:
        return prose("Nothing: every row was run with each of these seeds.")
    table = outlook.set_index("experiment", drop=False)
    for place, (machine, known) in enumerate(hours.items(), start=2):
        shown = known.map(lambda one: f"{one:,.0f}" if one > 10 else f"{one:.1f}", na_action="ignore")
        table.insert(place, f"hours, {machine}", shown.reindex(table.index))
    return table.style.format(na_rep="").hide(axis="index")


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


def as_it_stands(frame: pd.DataFrame) -> str:
    """How many of a table's numbers and orderings have which verdict, and by how much each one that was run holds.

    frame: of `lab.targets.compare(...)`.

    >>> names = ["kind", "anchor", "verdict", "subject", "metric", "ours", "low", "high", "seeds", "scale"]
    >>> number = ("number", True, "match", "LSTM", "bpc", 1.5, 1.4, 1.6, 5, "paper")
    >>> better = ("ordering", True, "holds", "LSTM better than GRU", "bpc", 0.1, 0.05, 0.15, 5, "paper")
    >>> print(as_it_stands(pd.DataFrame([number, number, better], columns=names)))
    As it stands, numbers: 2 match; orderings: 1 holds.
    <BLANKLINE>
    - LSTM better than GRU (bpc): by 0.1 (95 % interval 0.05 to 0.15), paper scale: **holds**
    """
    judged = frame[frame["anchor"]]
    kinds = [
        f"{kind}s: " + ", ".join(f"{count} {verdict}" for verdict, count in rows["verdict"].value_counts().items())
        for kind, rows in judged.groupby("kind", sort=False)
    ]
    ran = judged[(judged["kind"] == "ordering") & (judged["seeds"] > 0)]
    margins = [Interval(*map(float, ends)) for ends in ran[["ours", "low", "high"]].to_numpy()]
    lines = [
        f"- {row.subject} ({row.metric}): by {with_interval(margin, '.3g')}, {row.scale} scale: **{row.verdict}**"
        for row, margin in zip(ran.itertuples(), margins, strict=True)
    ]
    table = "\n".join(lines) or "No ordering of this table has runs on both sides yet."
    return f"As it stands, {'; '.join(kinds)}.\n\n{table}"


def dead_memories(dead: pd.DataFrame | None) -> str:
    """How much of each memory of each experiment is dead: one line each, the mean over seeds and their range.

    dead: of `lab.runs.dead_shares`, or None where nothing is recorded.

    >>> two = pd.DataFrame({"experiment": ["ptb_char_nlstm"] * 2, "memory": ["inner"] * 2, "dead": [0.9, 0.8]})
    >>> dead_memories(two)
    '- ptb_char_nlstm, inner: 85% dead (seeds: 80%, 90%)'
    """
    if dead is None:
        return "Nothing is run at this scale yet."
    lines = []
    for (experiment, memory), shares in dead.groupby(["experiment", "memory"], sort=False)["dead"]:
        seeds = ", ".join(f"{share:.0%}" for share in sorted(shares))
        lines.append(f"- {experiment}, {memory}: {shares.mean():.0%} dead (seeds: {seeds})")
    return "\n".join(lines)


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
    relation = {"holds": f"is {more}", "fails": f"is {less}"}.get(compared.ordering, "cannot be told apart from")
    difference = with_interval(compared.difference, form)
    return f"{first} {relation} {second}: the difference is {difference}, {compared.seeds} seeds"
