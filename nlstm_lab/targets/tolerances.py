"""How near a number must come to the printed one, and which rows that distinguishes (`data/targets/protocol.md`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations
from statistics import median, stdev

import pandas as pd

from nlstm_lab.targets.entries import Number, Place, Tolerance
from nlstm_lab.targets.evidence import ENOUGH, Runs


def tolerance(place: Place, metric: str, split: str, runs: Runs) -> Tolerance:
    """A match is within a quarter, close within half of the smallest difference that the document's claim rests on.

    Neither is less than what seeds scatter, or than half a unit of the last printed digit (close: than twice that).
    """
    here = (metric, split)
    rows = [one for one in place.numbers if one.experiment and one.printed and (one.metric, one.split) == here]
    said = [one.printed for one in place.orderings if (one.metric, one.split) == here and one.printed is not None]
    claimed = [float(difference) for difference in said if difference > 0]
    printed = [row.printed for row in rows if row.printed is not None]
    apart = claimed or [float(abs(one - other)) for one, other in combinations(printed, 2) if one != other]
    digit = max((10.0 ** int(value.as_tuple().exponent) for value in printed), default=0.0)
    least = max(_scatter(rows, runs), digit / 2)
    smallest = min(apart, default=0.0)
    return Tolerance(max(smallest / 4, least), max(smallest / 2, 2 * least))


def _scatter(rows: list[Number], runs: Runs) -> float:
    """The median, over rows with enough seeds at the paper's scale, of the standard deviation over seeds."""
    values = (runs.get(row.experiment or "", row, "paper").values() for row in rows)
    return median([stdev(seeds) for seeds in values if len(seeds) >= ENOUGH] or [0.0])


@dataclass(frozen=True)
class Discrimination:
    """What a tolerance distinguishes in one metric and split of a table.

    printed_pairs: ordered pairs of different rows with different printed numbers; printed_close: how many are close.
    our_pairs: our rows beside the printed numbers of other rows; our_close: how many would pass there.
    """

    place: str
    metric: str
    split: str
    tolerance: Tolerance
    printed_pairs: int
    printed_close: int
    our_pairs: int
    our_close: int

    def __str__(self) -> str:
        match, close = self.tolerance.match, self.tolerance.close
        printed = f"{self.printed_close} of {self.printed_pairs} printed"
        ours = f", {self.our_close} of {self.our_pairs} of ours" if self.our_pairs else ""
        text = f"a match is within {match:.3g}, close within {close:.3g}; wrong rows that would pass: {printed}{ours}"
        return f"{self.metric}, {self.split}: {text}"


def discriminations(frame: pd.DataFrame) -> Iterator[Discrimination]:
    """How many wrong rows would pass in every table, metric and split of a frame of verdicts."""
    numbers = frame[(frame["kind"] == "number") & frame["as_printed"].ne("")]
    for (place, metric, split), rows in numbers.groupby(["place", "metric", "split"], sort=False):
        within = Tolerance(float(rows["match"].iloc[0]), float(rows["close"].iloc[0]))
        columns = zip(rows["printed"].astype(float), rows["ours"].astype(float), rows["scale"] == "paper", strict=True)
        pairs = list(permutations(columns, 2))
        passes = [within.verdict(other, printed) != "differs" for (printed, *_), (other, *_) in pairs]
        ran = [(ours, other) for (_, ours, at_paper_scale), (other, *_) in pairs if at_paper_scale]
        ours = [within.verdict(other, mine) != "differs" for mine, other in ran]
        yield Discrimination(str(place), str(metric), str(split), within, len(pairs), sum(passes), len(ours), sum(ours))
