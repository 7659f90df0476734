"""Read `data/targets/*.toml`, strictly: a key that is unknown, missing or of the wrong kind is refused."""

import dataclasses
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from nlstm_lab import paths
from nlstm_lab.errors import DamagedFile, UsageError
from nlstm_lab.settings import HIGHER_IS_BETTER, METRICS
from nlstm_lab.targets.entries import Claim, Document, Number, Ordering, Place, Tolerance

T = TypeVar("T")
DOCUMENTS = ("nested_lstm", "hm_rnn", "madsen")
SPLITS = ("valid", "test")


def load(name: str, folder: Path | None = None) -> Document:
    """The document `name`: "nested_lstm", "hm_rnn" or "madsen".

    Raises UsageError for an unknown name, DamagedFile for a file that is not what a document should be.

    Args:
        name: Its name.
        folder: Where the targets lie; None for the project's own.

    >>> import nlstm_lab as lab
    >>> table = lab.targets.load("nested_lstm").places["table1"]
    >>> [(one.split, float(one.printed)) for one in table.numbers if one.experiment == "ptb_char_nlstm"]
    [('valid', 1.437), ('test', 1.399)]
    """
    folder = folder or paths.targets()
    path = folder / f"{name}.toml"
    if name not in DOCUMENTS:
        raise UsageError(f"there are no targets of {name!r}; there are those of {', '.join(DOCUMENTS)}")
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except FileNotFoundError as error:
        raise DamagedFile(f"{path} is missing: restore it with git, or work in a clone of the repository") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DamagedFile(f"{path} cannot be read as TOML ({error}); restore it from the repository") from error
    keys = _Keys(read, str(path))
    title, authors, year = keys.take("title", str), keys.take("authors", str), keys.take("year", int)
    tolerances = {metric: _tolerance(within) for metric, within in keys.tables("tolerances")}
    places = {place: _place(place, within) for place, within in keys.tables("places")}
    claims = tuple(_claim(within, tolerances) for within in keys.rows("claims"))
    keys.done()
    named = {claim.name for claim in claims}
    if len(named) < len(claims):
        raise DamagedFile(f"{path} has two claims of one name; give each a name of its own")
    if unknown := {claim.counted_with for claim in claims} - named - {""}:
        raise DamagedFile(f"{path} counts a claim with {', '.join(sorted(unknown))}, which is no claim of it")
    return Document(name, title, authors, year, places, claims)


class _Keys:
    """A TOML table taken apart key by key, so that what nobody asked for is left over and refused."""

    def __init__(self, table: dict[str, Any], where: str) -> None:
        self.left, self.where = dict(table), where

    def take(self, key: str, kind: type[T]) -> T:
        if key not in self.left:
            raise DamagedFile(f"{self.where}: the key {key!r} is missing")
        value = self.left.pop(key)
        if kind is Decimal and type(value) is int:
            value = Decimal(value)
        if type(value) is not kind:
            raise DamagedFile(f"{self.where}: {key} = {value!r} should be of the kind {kind.__name__}")
        return value

    def maybe(self, key: str, kind: type[T]) -> T | None:
        return self.take(key, kind) if key in self.left else None

    def strings(self, key: str) -> list[str]:
        return [str(value) for value in self.take(key, list)]

    def rows(self, key: str) -> "Iterator[_Keys]":
        for position, row in enumerate(self.maybe(key, list) or [], start=1):
            yield _Keys(row, f"{self.where}, {key} {position}")

    def tables(self, key: str) -> "Iterator[tuple[str, _Keys]]":
        for name, table in (self.maybe(key, dict) or {}).items():
            yield name, _Keys(table, f"{self.where}, {name}")

    def done(self) -> None:
        if self.left:
            raise DamagedFile(f"{self.where}: nothing reads the keys {', '.join(sorted(self.left))}; remove them")


@dataclass(frozen=True)
class _Head:
    """What all entries of a table share."""

    place: str
    evaluation: str
    metrics: list[str]
    splits: list[str]

    def columns(self) -> list[tuple[str, str]]:
        return [(metric, split) for metric in self.metrics for split in self.splits]


def _tolerance(keys: _Keys) -> Tolerance:
    match, close = float(keys.take("match", Decimal)), float(keys.take("close", Decimal))
    tolerance = Tolerance(match, close, keys.maybe("relative", bool) or False)
    keys.done()
    if not 0 <= match <= close:
        raise DamagedFile(f"{keys.where}: 0 <= match <= close does not hold for {match} and {close}")
    return tolerance


def _place(name: str, keys: _Keys) -> Place:
    where, caption, note = keys.take("where", str), keys.take("caption", str), keys.maybe("note", str) or ""
    substitute = keys.maybe("substitute", str)
    head = _Head(name, keys.take("evaluation", str), keys.strings("metrics"), keys.strings("splits"))
    if not head.splits or head.splits != [split for split in SPLITS if split in head.splits]:
        raise DamagedFile(f"{keys.where}: splits {head.splits} should be some of {list(SPLITS)}, in that order")
    if unknown := set(head.metrics) - {*METRICS, *HIGHER_IS_BETTER}:
        raise DamagedFile(f"{keys.where}: no run has a metric {', '.join(sorted(unknown))}")
    numbers = [number for row in keys.rows("rows") for number in _numbers(row, head)]
    orderings = [ordering for said in keys.rows("orderings") for ordering in _orderings(said, head, numbers)]
    ours = keys.maybe("ours", bool) or False
    if keys.maybe("rescued", bool):
        numbers += [
            dataclasses.replace(
                number, experiment=f"{number.experiment}_logfreq", setting="log-frequencies", printed=None
            )
            for number in numbers
            if number.experiment
        ]
    keys.done()
    return Place(name, where, caption, note, substitute, tuple(numbers), tuple(orderings), ours)


def _numbers(keys: _Keys, head: _Head) -> list[Number]:
    model, experiment, cites = (
        keys.take("model", str),
        keys.maybe("experiment", str),
        keys.maybe("cites", str),
    )
    layers, units = keys.maybe("layers", int), keys.maybe("units", int)
    parameters, note = keys.maybe("parameters", str) or "", keys.maybe("note", str) or ""
    if (experiment is None) == (cites is None):
        raise DamagedFile(f"{keys.where}: a row needs either an experiment or whom it cites")
    label = f"{model} ({cites})" if cites else f"{model} {layers} × {units}"
    numbers = []
    for metric in head.metrics:
        printed = _Keys(keys.take(metric, dict), f"{keys.where}, {metric}")
        numbers += [
            Number(
                place=head.place,
                model=label,
                experiment=experiment,
                setting="as printed",
                metric=metric,
                split=split,
                evaluation=head.evaluation,
                printed=printed.take(split, Decimal),
                parameters=parameters,
                note=note,
            )
            for split in head.splits
        ]
        printed.done()
    keys.done()
    return numbers


def _orderings(keys: _Keys, head: _Head, numbers: list[Number]) -> list[Ordering]:
    says, betters, worses = keys.take("says", str), keys.strings("better"), keys.strings("worse")
    claimed, note = keys.maybe("splits", list) or head.splits, keys.maybe("note", str) or ""
    keys.done()
    if not set(claimed) <= set(head.splits):
        raise DamagedFile(f"{keys.where}: splits {claimed} should be some of {head.splits}, which the table prints")
    rows = {(number.experiment, number.metric, number.split): number for number in numbers}
    orderings = []
    for better, worse in ((better, worse) for better in betters for worse in worses):
        for metric, split in head.columns():
            pair = [rows.get((experiment, metric, split)) for experiment in (better, worse)]
            if numbers and None in pair:
                raise DamagedFile(f"{keys.where}: {better!r} or {worse!r} is no row of the table")
            printed = [row.printed for row in pair if row and row.printed is not None]
            labels = [row.model if row else name for row, name in zip(pair, (better, worse), strict=True)]
            sign = 1 if metric in HIGHER_IS_BETTER else -1
            orderings.append(
                Ordering(
                    place=head.place,
                    model=" better than ".join(labels),
                    better=better,
                    worse=worse,
                    metric=metric,
                    split=split,
                    evaluation=head.evaluation,
                    printed=sign * (printed[0] - printed[1]) if printed else None,
                    claimed=split in claimed,
                    says=says,
                    note=note,
                )
            )
    return orderings


def _claim(keys: _Keys, tolerances: Mapping[str, Tolerance]) -> Claim:
    name, where = keys.take("name", str), keys.take("where", str)
    says, measure = keys.take("says", str), keys.take("measure", str)
    above, printed, tolerance = (
        keys.maybe("above", Decimal),
        keys.maybe("printed", Decimal),
        keys.maybe("tolerance", str),
    )
    ours = keys.maybe("ours", bool) or False
    note, counted_with = keys.maybe("note", str) or "", keys.maybe("counted_with", str) or ""
    keys.done()
    if (above is None) == (printed is None) or (printed is None) != (tolerance is None):
        raise DamagedFile(f"{keys.where}: a claim needs either above, or printed with its tolerance")
    if tolerance is not None and tolerance not in tolerances:
        raise DamagedFile(f"{keys.where}: there is no tolerance {tolerance!r}")
    return Claim(
        where=where,
        name=name,
        says=says,
        measure=measure,
        above=None if above is None else float(above),
        printed=printed,
        tolerance=None if tolerance is None else tolerances[tolerance],
        ours=ours,
        note=note,
        counted_with=counted_with,
    )
