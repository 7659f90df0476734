"""Verdicts: what the documents print beside what our runs and probes measured."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import pandas as pd

from nlstm_lab.settings import HIGHER_IS_BETTER, SCALES
from nlstm_lab.statistics import Interval, compare, p_value, t_interval
from nlstm_lab.targets.entries import DOCUMENTS, Claim, Document, Number, Ordering, Place, Tolerance, load
from nlstm_lab.targets.evidence import ENOUGH, Runs, discriminations, measurements, tolerance

Kind = Literal["number", "from memory", "reference", "ordering", "claim"]
NOT_RUN, SMALLER = "not run", "smaller scale"  # a printed number is judged at paper scale alone
CITED = "cited"  # by a document from others
UNJUDGED = "cannot be judged"  # more than a quarter of a table's other rows would match its number, too
LARGEST_FIRST = SCALES[::-1]  # the largest speaks


@dataclass(frozen=True)
class Row:
    """One line of the verdicts' frame; numbers are in the metric's unit, NaN where there is none."""

    document: str
    place: str
    where: str
    kind: Kind
    anchor: bool  # the verdict counts: the document prints this number, or makes this statement of this split
    own: bool  # the document does not ask it
    subject: str
    says: str
    note: str = ""
    experiment: str = ""  # which one measures a number
    parameters: str = ""
    setting: str = ""  # how the output bias starts; of an ordering the substitute, and how a rule ended its runs
    metric: str = ""
    split: str = ""
    printed: float = math.nan
    as_printed: str = ""
    match: float = math.nan  # within which our number is so called
    close: float = math.nan
    ours: float = math.nan  # of an ordering, by how much the better one is better
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan  # of the two-sided t test of an ordering or claim
    seeds: int = 0  # of an ordering, those of the side with fewer
    values: str = ""  # every seed's
    scale: str = ""
    verdict: str = NOT_RUN  # "" of a number that was run in a setting that no document prints


def verdicts(table: pd.DataFrame, claims: pd.DataFrame | None = None) -> pd.DataFrame:
    """Judge every entry of every document, in the documents' order; columns as of `Row`.

    Numbers are judged at paper scale alone ("smaller scale" where they were run at another); orderings and claims at
    the largest scale with three seeds, which the row names (a substitute text comes after the document's own).

    Args:
        claims: What probes measured, one row a claim ("nested_lstm.inner_slower_than_outer") and scale, with the
            columns of `evidence.CLAIMS`.

    Raises:
        UsageError: A frame lacks a column or has a row twice, or a claim is not registered.

    >>> import nlstm_lab as lab
    >>> frame = verdicts(lab.runs.table(), lab.probes.measured_claims())
    >>> bool((frame.verdict == "holds").any())
    True
    """
    documents = [load(name) for name in DOCUMENTS]
    runs, measured = Runs.of(table), measurements(claims, documents)
    rows: list[Row] = []
    for document in documents:
        for place in document.places.values():
            rows += judge(document, place, runs)
        rows += [
            _claim(document, claim, measured.get(f"{document.name}.{claim.name}", {})) for claim in document.claims
        ]
    return frame(rows)


def frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Rows as a frame that has its columns even without a row."""
    return pd.DataFrame([asdict(row) for row in rows], columns=list(Row.__dataclass_fields__))


def printed_numbers(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Mark the rows of the verdicts' frame that hold a printed number; the margin printed with an ordering is none."""
    return frame["as_printed"].ne("") & ~frame["kind"].isin(["ordering", "from memory"])


def judge(document: Document, place: Place, runs: Runs) -> list[Row]:
    """The rows of one table: its numbers, then its orderings."""
    numbers = frame(_number(document, place, number, runs) for number in place.numbers)
    loose = {(one.metric, one.split) for one in discriminations(numbers) if 4 * one.printed_close > one.printed_pairs}
    rows = [Row(**{str(name): value for name, value in row.items()}) for row in numbers.to_dict("records")]
    judged = [
        replace(row, verdict=UNJUDGED)
        if (row.metric, row.split) in loose and row.verdict in ("match", "close")
        else row
        for row in rows
    ]
    return judged + [_ordering(document, place, ordering, runs) for ordering in place.orderings]


def _row(
    document: Document, place: str, where: str, printed: Decimal | None, ours: Interval, *said: str, **fields: Any
) -> Row:
    """A row with what all kinds of entries have; said: what must be known of it."""
    return Row(
        document=document.name,
        place=place,
        where=where,
        note="; ".join(filter(None, said)),
        printed=math.nan if printed is None else float(printed),
        as_printed="" if printed is None else str(printed),
        ours=ours.mean,
        low=ours.low,
        high=ours.high,
        **fields,
    )


def _number(document: Document, place: Place, number: Number, runs: Runs) -> Row:
    scales = ("paper",) if place.substitute else ("paper", "small")  # what a smaller scale reads is another text
    candidates = ((scale, runs.get(number.experiment or "", number, scale)) for scale in scales)
    scale, values = next((pair for pair in candidates if pair[1]), ("", {}))
    ours = t_interval(values.values())
    within = tolerance(place, number.metric, number.split, runs)
    ended = runs.how_they_ended([number.experiment or ""], scale, values)
    return _row(
        *(document, place.name, place.where, number.printed, ours, number.note, ended),
        kind="reference" if not number.experiment else "from memory" if number.from_memory else "number",
        anchor=number.printed is not None and number.experiment is not None and not number.from_memory,
        own=False,
        subject=number.model,
        experiment=number.experiment or "",
        parameters=number.parameters,
        setting=number.setting,
        metric=number.metric,
        split=number.split,
        says="",
        match=within.match,
        close=within.close,
        seeds=len(values),
        values=_listed(values),
        scale=scale,
        verdict=_beside(within, number.printed, ours.mean, scale) if number.experiment else CITED,
    )


def _ordering(document: Document, place: Place, ordering: Ordering, runs: Runs) -> Row:
    measured = [
        (scale, text, better, worse)
        for scale, text, suffix in _evidence(place)
        if (better := runs.get(ordering.better + suffix, ordering, scale))
        and (worse := runs.get(ordering.worse + suffix, ordering, scale))
    ]
    enough = [one for one in measured if min(len(one[2]), len(one[3])) >= ENOUGH]
    scale, text, better, worse = next(iter(enough or measured), ("", "", {}, {}))
    higher = ordering.metric in HIGHER_IS_BETTER
    compared = compare(*((better, worse) if higher else (worse, better)))
    alike = [one for one in place.orderings if one.says == ordering.says]  # one line of a report
    named = {name for one in alike for name in (one.better, one.worse)}
    ended = runs.how_they_ended(sorted(named), scale, {*better, *worse})
    return _row(
        *(document, place.name, place.where, ordering.printed, compared.difference, ordering.note),
        kind="ordering",
        anchor=ordering.claimed,
        own=place.ours,
        subject=ordering.model,
        setting=", ".join(filter(None, [text, ended])),
        metric=ordering.metric,
        split=ordering.split,
        says=ordering.says,
        p=p_value(compared.difference, compared.df),
        seeds=compared.seeds,
        values=f"{_listed(better)} beside {_listed(worse)}" if scale else "",
        scale=scale,
        verdict=_side(compared.difference, 0.0) if scale else NOT_RUN,
    )


def _evidence(place: Place) -> list[tuple[str, str, str]]:
    """What may decide an ordering, the best first: scale, the substitute that was read, suffix of the names."""
    if place.substitute is None:
        return [(scale, "", "") for scale in LARGEST_FIRST]
    variation = (LARGEST_FIRST[0], place.substitute, f"+corpus={place.substitute}")
    return [(LARGEST_FIRST[0], "", ""), variation, *((scale, place.substitute, "") for scale in LARGEST_FIRST[1:])]


def _claim(document: Document, claim: Claim, measured: Mapping[str, Mapping[str, float]]) -> Row:
    # the largest scale with an interval speaks, else the largest
    scale = min(measured, key=lambda at: (measured[at]["n"] < ENOUGH, LARGEST_FIRST.index(at)), default="")
    row = measured.get(scale, {})
    *ends, df = (float(row.get(column, math.nan)) for column in ("value", "low", "high", "df"))
    ours, bound = Interval(*ends), claim.above or 0.0
    if claim.printed is not None and claim.tolerance is not None:
        verdict = _beside(claim.tolerance, claim.printed, ours.mean, scale)
    else:
        verdict = _side(ours, bound) if scale else NOT_RUN
    return _row(
        *(document, claim.name, claim.where, claim.printed, ours, claim.note),
        kind="claim",
        anchor=not claim.counted_with,
        own=claim.ours,
        subject=claim.measure,
        says=claim.says,
        p=p_value(ours, df, bound) if claim.printed is None else math.nan,
        seeds=int(row.get("n", 0)),
        scale=scale,
        verdict=verdict,
    )


def _beside(tolerance: Tolerance, printed: Decimal | None, ours: float, scale: str) -> str:
    """A printed number's verdict; none where nothing is printed."""
    if not scale:
        return NOT_RUN
    if printed is None:
        return ""
    return tolerance.verdict(float(printed), ours) if scale == "paper" else SMALLER


def _side(ours: Interval, bound: float) -> str:
    """Whether an interval lies above the bound; one that touches it, or is not there, decides nothing."""
    return "holds" if ours.low > bound else "fails" if ours.high < bound else "inconclusive"


def _listed(values: Mapping[int, float]) -> str:
    return ", ".join(f"{seed}: {value:.6g}" for seed, value in sorted(values.items()))
