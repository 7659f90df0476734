"""What verdicts rest on: values of our runs and measurements of probes, from checked frames, and tolerances."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, permutations
from statistics import median, stdev

import pandas as pd

from nlstm_lab.errors import UsageError, hint
from nlstm_lab.settings import SCALES, UNDER_WAY, ended
from nlstm_lab.targets.entries import Document, Number, Ordering, Place, Tolerance

TABLE = ["experiment", "scale", "seed", "split", "evaluation", "metric", "value"]
CLAIMS = ["claim", "scale", "value", "low", "high", "n", "df"]
ENOUGH = 3  # seeds for an interval


@dataclass(frozen=True)
class Runs:
    """Measured values by (experiment, evaluation, metric, split), scale, seed; ended: how a rule ended a run."""

    values: Mapping[tuple[str, str, str, str], dict[str, dict[int, float]]] = field(default_factory=dict)
    ended: Mapping[tuple[str, str, int], str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: pd.DataFrame) -> "Runs":
        """Of `lab.runs.table(...)`; UsageError: it lacks a column, has a run twice, or holds one that is not done."""
        _check(table, TABLE, TABLE[:-1], "the table of runs")
        values: dict[tuple[str, str, str, str], dict[str, dict[int, float]]] = {}
        for experiment, scale, seed, split, evaluation, metric, value in table[TABLE].itertuples(index=False):
            scales = values.setdefault((experiment, evaluation, metric, split), {})
            scales.setdefault(scale, {})[int(seed)] = float(value)
        if "state" not in table:
            return cls(values)
        if (unfinished := table[table["state"].str.endswith(UNDER_WAY)]).size:
            run = unfinished.iloc[0]
            raise UsageError(
                f"{run['experiment']} with seed {run['seed']} is not done ({run['state']}), so no verdict rests on it: "
                "hand in lab.runs.table(...) without partial=True"
            )
        states = table[["experiment", "scale", "seed", "state"]].drop_duplicates().itertuples(index=False)
        return cls(values, {tuple(run): state for *run, state in states if state != "done"})

    def get(self, experiment: str, entry: Number | Ordering, scale: str) -> dict[int, float]:
        """Values of an experiment at a scale by seed, in the entry's evaluation, metric and split."""
        return self.values.get((experiment, entry.evaluation, entry.metric, entry.split), {}).get(scale, {})

    def how_they_ended(self, experiments: Iterable[str], scale: str, seeds: Iterable[int]) -> str:
        """Which rules ended the runs of these experiments: "16 to 21 of 35 epochs, by the rule", or ""."""
        runs = itertools.product(experiments, [scale], seeds)
        return "; ".join(ended(self.ended[run] for run in runs if run in self.ended))


def measurements(claims: pd.DataFrame | None, documents: Iterable[Document]) -> dict[str, dict[str, dict[str, float]]]:
    """Claims' measurements by name, then scale; UsageError: a column is lacking, or a claim is not registered."""
    if claims is None or claims.empty:
        return {}
    _check(claims, CLAIMS, CLAIMS[:2], "the frame of claims")
    known = [f"{document.name}.{claim.name}" for document in documents for claim in document.claims]
    measured: dict[str, dict[str, dict[str, float]]] = {}
    for claim, scale, *numbers in claims[CLAIMS].itertuples(index=False):
        if claim not in known:
            raise UsageError(f"no document registers the claim {claim!r}; {hint(str(claim), known)}")
        if pd.isna(numbers[0]):
            continue  # there was too little to measure
        measured.setdefault(claim, {})[scale] = dict(zip(CLAIMS[2:], map(float, numbers), strict=True))
    return measured


def _check(given: pd.DataFrame, columns: list[str], key: list[str], what: str) -> None:
    if lacking := [column for column in columns if column not in given.columns]:
        raise UsageError(f"{what} lacks the columns {', '.join(lacking)}; it needs {', '.join(columns)}")
    if unknown := sorted(set(given["scale"]) - set(SCALES)):
        raise UsageError(f"{what} has the scale {unknown[0]!r}; the scales are {', '.join(SCALES)}")
    if given.duplicated(key).any():
        twice = given[given.duplicated(key)].iloc[0]
        raise UsageError(f"{what} has two rows for {', '.join(f'{name} {twice[name]}' for name in key)}; keep one")


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
    """What a tolerance distinguishes: pairs of different rows, printed and ours, and how many would pass as close."""

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
        within = f"{self.metric}, {self.split}: a match is within {match:.3g}, close within {close:.3g}"
        return f"{within}; how often another row's number would also match: {printed}{ours}"


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
