"""What a document prints, entry by entry: numbers, orderings, claims. A key that nothing reads is refused."""

import math
import tomllib
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt
from pydantic.dataclasses import dataclass as checked_dataclass

from nlstm_lab import paths
from nlstm_lab.errors import DamagedFile
from nlstm_lab.settings import HIGHER_IS_BETTER, choice

DOCUMENTS = ("nested_lstm", "hm_rnn", "madsen")
CITED, NOT_RUN = "cited", "not run"  # cited: by a document from others
Kind = Literal["number", "from memory", "reference", "ordering", "claim"]
Split = Literal["valid", "test"]


@checked_dataclass(frozen=True)
class Tolerance:
    """How far a number may lie from the printed one to match it, and to be close to it."""

    match: float
    close: float
    relative: StrictBool = False  # whether both are shares of the printed number

    def verdict(self, printed: float, ours: float) -> Literal["match", "close", "differs"]:
        """A value that is not finite differs."""
        distance = round(abs(ours - printed) / (abs(printed) if self.relative else 1.0), 9)  # 1.447 - 1.437 is .01
        if distance <= self.match:
            return "match"
        return "close" if distance <= self.close else "differs"


@dataclass(frozen=True)
class Row:
    """One number, ordering or claim, and what was measured of it once it is judged.

    Numbers are in the metric's unit, NaN where there is none.
    """

    document: str
    place: str
    where: str
    kind: Kind  # "from memory": not printed in our copy; "reference": cited from others
    anchor: bool = False  # the verdict counts: the document prints this number, or makes this statement of this split
    own: bool = False  # the document does not ask it
    subject: str = ""
    says: str = ""
    note: str = ""  # what must be known of it
    experiment: str = ""  # which one measures a number
    parameters: str = ""
    setting: str = ""  # the output bias's initialization; of an ordering the substitute, and how a rule ended its runs
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
    better: str = ""  # of an ordering, its two experiments
    worse: str = ""


class Entry(BaseModel):
    """A table of a TOML file: each key is one of the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    note: str = ""  # what must be known of the entry


class PrintedRow(Entry):
    """A row of a printed table; further keys are its metrics, each with a number for every split."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, dict[Split, Decimal]] = Field(init=False)

    model: str
    experiment: str | None = None
    cites: str | None = None
    layers: StrictInt | None = None
    units: StrictInt | None = None
    parameters: str = ""
    from_memory: StrictBool = False  # its cell is blank in our copy, and the value the published one as remembered

    def of(self, place: "Place", metric: str, split: str, value: Decimal) -> Row:
        """One of its numbers."""
        kind: Kind = "reference" if not self.experiment else "from memory" if self.from_memory else "number"
        subject = f"{self.model} ({self.cites})" if self.cites else f"{self.model} {self.layers} × {self.units}"
        name = f"{self.experiment}{place.reading}" if self.experiment else ""
        return Row(
            place.document, place.name, place.where, kind, anchor=kind == "number" and not place.ours,
            own=place.ours, subject=subject, note=self.note, experiment=name, parameters=self.parameters,
            metric=metric, split=split, printed=float(value), as_printed=str(value), setting="as printed",
            verdict=NOT_RUN if name else CITED,
        )  # fmt: skip


class Sentence(Entry):
    """A sentence of the document that orders experiments: each of `better` above each of `worse`."""

    says: str
    better: list[str]
    worse: list[str]
    splits: list[Split] = []  # of which it speaks; none: of all that its table prints
    metrics: list[str] = []


class Claim(Entry):
    """A probe's measurement that is said to lie above a value, or to be a `printed` number, judged over seeds."""

    name: str
    where: str
    says: str
    measure: str
    above: float | None = None  # below the whole interval, where the claim holds
    printed: Decimal | None = None
    tolerance: Tolerance | None = None
    ours: StrictBool = False
    counted: StrictBool = True  # in totals; not where it is another claim's number, too, or could not fail


class Place(Entry):
    """A table with its numbers and orderings, or (`ours`) a question that the document does not ask."""

    document: str
    name: str
    where: str
    caption: str
    # the corpus that stands in for a table's own at small scale, and in variations of its experiments
    # ("name+corpus=substitute"): it may decide an ordering, but no printed number is judged by it
    substitute: str | None = None
    evaluation: str
    metrics: list[str]
    splits: list[Split]
    rows: list[PrintedRow] = []
    reading: str = ""  # what the names of all its experiments end with: settings of theirs that were decided later
    sentences: list[Sentence] = Field(default=[], alias="orderings")
    unjudged: dict[str, str] = {}  # metrics that our runs cannot be judged by, with the reason
    rescued: StrictBool = False  # whether its rows were trained with the log-frequencies as well
    ours: StrictBool = False

    @cached_property
    def numbers(self) -> tuple[Row, ...]:
        """Every number of the table, row by row; then those of the rescued rows, which are not printed."""
        printed = [
            row.of(self, metric, split, value)
            for row in self.rows
            for metric, by_split in (row.model_extra or {}).items()
            for split, value in by_split.items()
        ]
        other: Any = {"setting": "log-frequencies", "anchor": False, "printed": math.nan, "as_printed": ""}
        rescued = (replace(row, experiment=f"{row.experiment}_logfreq", **other) for row in printed if self.rescued)
        return (*printed, *rescued)

    @cached_property
    def orderings(self) -> tuple[Row, ...]:
        """Every comparison of two experiments that a sentence makes, in every metric and split of the table."""
        known = {(row.experiment, row.metric, row.split): row for row in self.numbers}
        orderings = []
        for said in self.sentences:
            for *names, metric, split in product(said.better, said.worse, self.metrics, self.splits):
                better, worse = (name + self.reading for name in names)
                pair = [known.get((name, metric, split)) for name in (better, worse)]
                labels = [row.subject if row else name for row, name in zip(pair, (better, worse), strict=True)]
                printed = [Decimal(row.as_printed) for row in pair if row and row.as_printed]
                margin = printed[0] - printed[1] if len(printed) == 2 else Decimal("nan")
                margin = margin if metric in HIGHER_IS_BETTER else -margin
                anchor = metric in (said.metrics or [metric]) and split in (said.splits or [split])
                orderings.append(Row(
                    self.document, self.name, self.where, "ordering", anchor=anchor, own=self.ours,
                    subject=" better than ".join(labels), says=said.says, note=said.note, metric=metric, split=split,
                    printed=float(margin), as_printed="" if margin.is_nan() else str(margin),
                    better=better, worse=worse,
                ))  # fmt: skip
        return tuple(orderings)


class Document(Entry):
    """Everything that one document prints and claims."""

    name: str
    title: str
    authors: str
    year: StrictInt
    tolerances: dict[str, Tolerance] = {}
    places: dict[str, Place] = {}  # its tables, and our questions, by name
    claims: tuple[Claim, ...] = ()  # what probes judge


def load(name: str) -> Document:
    """Read the entries of a document.

    Args:
        name: "nested_lstm", "hm_rnn" or "madsen".

    Raises:
        UsageError: There is no document of that name.
        DamagedFile: Its file is not what a document should be.

    >>> import nlstm_lab as lab
    >>> table = lab.targets.load("nested_lstm").places["table1"]
    >>> [(one.split, one.printed) for one in table.numbers if one.subject == "NLSTM 2 × 600"]
    [('valid', 1.437), ('test', 1.399)]
    """
    path = paths.targets() / f"{choice(name, 'document', DOCUMENTS)}.toml"
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
        for key, place in read.get("places", {}).items():
            alike = read["places"][place.pop("like")] if "like" in place else {}
            read["places"][key] = {**alike, **place, "document": name, "name": key}
        for claim in read.get("claims", ()):  # a tolerance is named
            if "tolerance" in claim:
                claim["tolerance"] = read.get("tolerances", {}).get(claim["tolerance"], claim["tolerance"])
        return Document.model_validate({**read, "name": name})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:  # no file, UTF-8, TOML or such table
        why = " ".join(str(error).split("\n    For further")[0].split())
        raise DamagedFile(f"{path} is no TOML of a document ({why}): restore it with git") from error
