"""What verdicts rest on: the values of our runs and the measurements of probes, taken from frames that are checked."""

import difflib
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from nlstm_lab.errors import UsageError
from nlstm_lab.settings import SCALES, UNDER_WAY
from nlstm_lab.targets.entries import Document, Number, Ordering

TABLE = ["experiment", "scale", "seed", "split", "evaluation", "metric", "value"]
CLAIMS = ["claim", "scale", "value", "low", "high", "n", "df"]
ENOUGH = 3  # seeds for an interval


@dataclass(frozen=True)
class Runs:
    """Measured values by (experiment, evaluation, metric, split), then scale, then seed.

    ended: how a rule ended a run, by experiment, scale and seed.
    """

    values: Mapping[tuple[str, str, str, str], dict[str, dict[int, float]]] = field(default_factory=dict)
    ended: Mapping[tuple[str, str, int], str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: pd.DataFrame) -> "Runs":
        """From a frame as `nlstm_lab.runs.table` gives it; UsageError where it lacks a column or has a run twice."""
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
        """Which rules ended the runs of these experiments: "16 of 35 epochs, by the rule", or ""."""
        runs = itertools.product(experiments, [scale], seeds)
        return "; ".join(dict.fromkeys(self.ended[run] for run in runs if run in self.ended))


def measurements(claims: pd.DataFrame | None, documents: Iterable[Document]) -> dict[str, dict[str, dict[str, float]]]:
    """Claims' measurements by name, then scale; UsageError: a column is lacking, or a claim is not registered."""
    if claims is None or claims.empty:
        return {}
    _check(claims, CLAIMS, CLAIMS[:2], "the frame of claims")
    known = [f"{document.name}.{claim.name}" for document in documents for claim in document.claims]
    measured: dict[str, dict[str, dict[str, float]]] = {}
    for claim, scale, *numbers in claims[CLAIMS].itertuples(index=False):
        if claim not in known:
            close = difflib.get_close_matches(str(claim), known, n=3) or known
            raise UsageError(f"no document registers the claim {claim!r}; there are {', '.join(close)}")
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
