"""Verdicts: what the documents print beside what our runs and probes measured, by tolerances and intervals."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal
from statistics import median, stdev
from typing import Any

import numpy as np
import pandas as pd

from nlstm_lab.errors import UsageError, hint
from nlstm_lab.settings import HIGHER_IS_BETTER, SCALES, choice, ended
from nlstm_lab.statistics import Interval, compare, holm, p_value, t_interval
from nlstm_lab.targets.entries import DOCUMENTS, NOT_RUN, Claim, Place, Row, Tolerance, load

SMALLER = "smaller scale"  # a printed number is judged at paper scale alone
UNJUDGED = "cannot be judged"  # another row's number would too often be close, or the table says so
ENOUGH = 3  # seeds for an interval
CLAIMS = ["claim", "scale", "value", "low", "high", "n", "df"]
TABLE = ["experiment", "scale", "seed", "split", "evaluation", "metric", "value"]
COLUMNS = [field.name for field in fields(Row) if field.name not in ("better", "worse")]


class Runs:
    """What runs measured (values by seed), and how a rule ended them. UsageError: the frame is no table of runs."""

    def __init__(self, table: pd.DataFrame) -> None:
        if not isinstance(table, pd.DataFrame) or not {*TABLE} <= {*table}:
            raise UsageError(f"hand in lab.runs.table(...), a frame with the columns {', '.join(TABLE)}")
        self.values: dict[tuple[str, ...], dict[int, float]] = {}
        for experiment, scale, seed, split, evaluation, metric, value in table[TABLE].itertuples(index=False):
            self.values.setdefault((experiment, scale, evaluation, metric, split), {})[int(seed)] = float(value)
        states = table[["experiment", "scale", "seed", "state"]].drop_duplicates() if "state" in table else table[:0]
        self.ended = {tuple(run): state for *run, state in states.itertuples(index=False) if state != "done"}

    def get(self, experiment: str, place: Place, metric: str, split: str, scale: str) -> dict[int, float]:
        """Values by seed, read by the table's evaluation."""
        return self.values.get((experiment, scale, place.evaluation, metric, split), {})

    def how_they_ended(self, experiments: Iterable[str], scale: str, seeds: Iterable[int]) -> str:
        """Which rules ended the runs of these experiments: "16 to 21 of 35 epochs, by early stopping", or ""."""
        runs = itertools.product(experiments, [scale], seeds)
        return "; ".join(ended(self.ended[run] for run in runs if run in self.ended))


def verdicts(table: pd.DataFrame, claims: pd.DataFrame | None = None) -> pd.DataFrame:
    """Judge every entry of every document, in the documents' order; columns as of `entries.Row`.

    Numbers are judged at paper scale alone ("smaller scale" where they were run at another); orderings and claims at
    the largest scale with three seeds, which the row names (a substitute text comes after the document's own).

    Args:
        claims: `lab.probes.measured_claims()`.

    Raises:
        UsageError: A claim is not registered, or the frame is no table of runs.
    """
    runs, rows = Runs(table), list[Row]()
    judged = judge_claims(pd.DataFrame(columns=CLAIMS) if claims is None else claims)
    for name in DOCUMENTS:
        rows += [row for place in load(name).places.values() for row in judge(place, runs)]
        rows += [row for row in judged if row.document == name]
    return frame(rows)


def judge_claims(claims: pd.DataFrame, only: Iterable[str] | None = None) -> list[Row]:
    """Judge every claim, or those named; UsageError: of a scale or a name that no document has."""
    known = {f"{name}.{claim.name}": (name, claim) for name in DOCUMENTS for claim in load(name).claims}
    for name, scale in claims[["claim", "scale"]].itertuples(index=False):
        if name not in known:
            raise UsageError(f"no document registers the claim {name!r}; {hint(str(name), known)}")
        choice(scale, "scale", SCALES)
    return [_claim(*known[name], claims) for name in (known if only is None else only)]


def frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows as a frame that has its columns even without a row."""
    return pd.DataFrame([asdict(row) for row in rows], columns=COLUMNS)


def printed_numbers(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Mark the rows of the verdicts' frame that hold a printed number; the margin printed with an ordering is none."""
    return frame["as_printed"].ne("") & ~frame["kind"].isin(["ordering", "from memory"])


def remaining(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Mark the rows that remain after Holm's correction for their document's, or our own, of their kind and split."""
    rows = frame[frame["anchor"]]
    families = rows.groupby([rows["document"].mask(rows["own"], "own"), printed_numbers(rows), rows["split"]])
    return families["p"].transform(holm).reindex(frame.index).eq(True)


def judge(place: Place, runs: Runs) -> list[Row]:
    """The rows of one table: its numbers, then its orderings."""
    rows = [_number(place, row, runs) for row in place.numbers]
    loose = [(one.metric, one.split) for one in discriminations(frame(rows)) if 4 * one.printed[0] > one.printed[1]]
    for k, row in enumerate(rows):
        if (row.metric, row.split) in loose and row.verdict in ("match", "close"):
            rows[k] = replace(row, verdict=UNJUDGED)
    rows += [_ordering(place, row, runs) for row in place.orderings]
    for k, row in enumerate(rows):
        if row.metric in place.unjudged and row.verdict != NOT_RUN:
            note = "; ".join(filter(None, [row.note, place.unjudged[row.metric]]))
            rows[k] = replace(row, verdict=UNJUDGED, p=math.nan, note=note)
    return rows


def tolerance(place: Place, metric: str, split: str, runs: Runs) -> Tolerance:
    """A match is within a quarter, close within half of the smallest difference that the document's claim rests on.

    Neither is less than what seeds scatter, or than half a unit of the last printed digit (close: than twice that).
    """
    rows = [row for row in place.numbers if row.experiment and row.as_printed]
    rows = [row for row in rows if (row.metric, row.split) == (metric, split)]
    printed = [Decimal(row.as_printed) for row in rows]
    claimed = [row.printed for row in place.orderings if (row.metric, row.split) == (metric, split) and row.printed > 0]
    apart = claimed or [float(abs(one - other)) for one, other in itertools.combinations(printed, 2) if one != other]
    digit = max((10.0 ** int(value.as_tuple().exponent) for value in printed), default=0.0)
    # of each row with enough seeds at the paper's scale, how they scatter
    seeds = (list(runs.get(row.experiment, place, metric, split, "paper").values()) for row in rows)
    scatter = median([stdev(some) for some in seeds if len(some) >= ENOUGH and np.isfinite(some).all()] or [0.0])
    least, smallest = max(scatter, digit / 2), min(apart, default=0.0)
    return Tolerance(max(smallest / 4, least), max(smallest / 2, 2 * least))


@dataclass(frozen=True)
class Discrimination:
    """What a tolerance distinguishes: pairs of different rows, and how many of them would pass as close."""

    place: str
    metric: str
    split: str
    tolerance: Tolerance
    printed: tuple[int, int]  # close, of all: a printed number beside another row's
    ours: tuple[int, int]  # one of ours at paper scale beside another row's

    def __str__(self) -> str:
        (close, pairs), (our_close, our_pairs) = self.printed, self.ours
        ours = f", {our_close} of {our_pairs} of ours" if our_pairs else ""
        within = f"a match is within {self.tolerance.match:.3g}, close within {self.tolerance.close:.3g}"
        also = f"how often another row's number would also be close: {close} of {pairs} printed{ours}"
        return f"{self.metric}, {self.split}: {within}; {also}"


def discriminations(frame: pd.DataFrame) -> Iterator[Discrimination]:
    """How often another row's number would also be close, in every table, metric and split of a frame of verdicts."""
    numbers = frame[(frame["kind"] == "number") & frame["as_printed"].ne("")]
    for (place, metric, split), rows in numbers.groupby(["place", "metric", "split"], sort=False):
        within = Tolerance(float(rows["match"].iloc[0]), float(rows["close"].iloc[0]))
        wrong, printed, counts = ~np.eye(len(rows), dtype=bool), rows["printed"].to_numpy(float), []
        for values, ran in (("printed", True), ("ours", rows["scale"].eq("paper").to_numpy()[:, None])):
            apart = np.abs(rows[values].to_numpy(float)[:, None] - printed).round(9)  # as a tolerance rounds it
            counts.append((int((wrong & ran & (apart <= within.close)).sum()), int((wrong & ran).sum())))
        yield Discrimination(str(place), str(metric), str(split), within, *counts)


def _number(place: Place, row: Row, runs: Runs) -> Row:
    scales = ("paper",) if place.substitute else ("paper", "small")  # what a smaller scale reads is another text
    measured = ((scale, runs.get(row.experiment, place, row.metric, row.split, scale)) for scale in scales)
    scale, values = next((one for one in measured if one[1]), ("", {}))
    within = tolerance(place, row.metric, row.split, runs)
    note = "; ".join(filter(None, [row.note, runs.how_they_ended([row.experiment], scale, values)]))
    row = replace(row, match=within.match, close=within.close, note=note)
    if not values:
        return row
    ours = t_interval(values.values())
    verdict = "" if not row.as_printed else SMALLER if scale != "paper" else within.verdict(row.printed, ours.mean)
    return _measured(row, ours, seeds=len(values), values=_listed(values), scale=scale, verdict=verdict)


def _ordering(place: Place, row: Row, runs: Runs) -> Row:
    text = place.substitute or ""
    evidence = [("paper", "", ""), ("paper", text, f"+corpus={text}"), ("small", text, ""), ("smoke", text, "")]
    measured = [  # the best evidence first: scale, the substitute that was read and its variation, values of both
        (scale, text, end, [runs.get(x + end, place, row.metric, row.split, scale) for x in (row.better, row.worse)])
        for scale, text, end in evidence
    ]
    measured = [one for one in measured if all(one[3])]
    if not measured:
        return row
    enough = [one for one in measured if min(map(len, one[3])) >= ENOUGH]
    scale, text, end, pair = (enough or measured)[0]
    compared = compare(*(pair if row.metric in HIGHER_IS_BETTER else pair[::-1]))
    alike = [one for one in place.orderings if one.says == row.says]  # one line of a report
    named = sorted({name + end for one in alike for name in (one.better, one.worse)})
    setting = ", ".join(filter(None, [text, runs.how_they_ended(named, scale, {*pair[0], *pair[1]})]))
    values, p = " beside ".join(map(_listed, pair)), p_value(compared.difference, compared.df)
    row = replace(row, setting=setting, p=p, scale=scale, verdict=compared.difference.above(0.0))
    return _measured(row, compared.difference, seeds=compared.seeds, values=values)


def _claim(document: str, claim: Claim, claims: pd.DataFrame) -> Row:
    within, bound = claim.tolerance, claim.above or 0.0
    rule = f"; to be above {bound:g}" if bound else ""
    if within:
        rule = f"; a match within {100 * within.match:g} % of the printed number, close within {100 * within.close:g} %"
    row = Row(
        document, claim.name, claim.where, "claim", anchor=claim.counted, own=claim.ours, says=claim.says,
        subject=claim.measure + rule, note=claim.note, printed=float(claim.printed or "nan"),
        as_printed=str(claim.printed or ""),
    )  # fmt: skip
    mine = claims[claims["claim"] == f"{document}.{claim.name}"].dropna(subset="value")  # NaN: too little to measure
    if mine.empty:
        return row
    mine = mine.assign(enough=mine["n"] >= ENOUGH, size=mine["scale"].map(SCALES.index))
    chosen = mine.sort_values(["enough", "size"]).iloc[-1]  # the largest with an interval, if one has it
    ours, scale = Interval(chosen["value"], chosen["low"], chosen["high"]), chosen["scale"]
    row = _measured(row, ours, seeds=int(chosen["n"]), scale=scale)
    if within is None:
        return replace(row, p=p_value(ours, chosen["df"], bound), verdict=ours.above(bound))
    return replace(row, verdict=within.verdict(row.printed, ours.mean) if scale == "paper" else SMALLER)


def _measured(row: Row, ours: Interval, **fields: Any) -> Row:
    return replace(row, ours=float(ours.mean), low=float(ours.low), high=float(ours.high), **fields)


def _listed(values: Mapping[int, float]) -> str:
    return ", ".join(f"{seed}: {value:.6g}" for seed, value in sorted(values.items()))
