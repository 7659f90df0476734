"""What a document prints, entry by entry: numbers, orderings, claims."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Setting = Literal["as printed", "log-frequencies"]  # how the output bias starts


@dataclass(frozen=True)
class Tolerance:
    """How far a number may lie from the printed one; `relative`: a share of it."""

    match: float
    close: float
    relative: bool = False

    def verdict(self, printed: float, ours: float) -> Literal["match", "close", "differs"]:
        """`ours` beside `printed`; a value that is not finite differs."""
        distance = round(abs(ours - printed) / (abs(printed) if self.relative else 1.0), 9)  # 1.447 - 1.437 is .01
        if distance <= self.match:
            return "match"
        return "close" if distance <= self.close else "differs"


@dataclass(frozen=True)
class Number:
    """One number of one row. No experiment: a reference line that the document cites from others."""

    place: str
    model: str
    experiment: str | None
    setting: Setting
    metric: str
    split: str
    evaluation: str
    printed: Decimal | None  # with the digits of the document; None in the setting that no document prints
    parameters: str
    note: str  # what must be said of it


@dataclass(frozen=True)
class Ordering:
    """Experiment `better` is said to beat `worse`, by `printed` (None where nobody prints it).

    claimed: the sentence speaks of this split. note: what must be known of it.
    """

    place: str
    model: str
    better: str
    worse: str
    metric: str
    split: str
    evaluation: str
    printed: Decimal | None
    claimed: bool
    says: str
    note: str  # what must be said of it


@dataclass(frozen=True)
class Claim:
    """A probe's measurement that is said to lie above a value, or to be a `printed` number.

    It is measured over seeds; above holds when the whole interval lies there. note: what must be known of it.
    counted_with: the claim whose number this one is, too; it is counted there alone.
    """

    where: str
    name: str
    says: str
    measure: str
    above: float | None
    printed: Decimal | None
    tolerance: Tolerance | None
    ours: bool
    note: str  # what must be said of it
    counted_with: str


@dataclass(frozen=True)
class Place:
    """A table with its numbers and orderings, or (`ours`) a question that the document does not ask.

    substitute: the corpus that stands in for a table's own, at small scale and in variations of its experiments
    ("name+corpus=substitute"). It may decide an ordering, but no printed number is judged by it.
    """

    name: str
    where: str
    caption: str
    note: str  # what must be said of it
    substitute: str | None
    numbers: tuple[Number, ...]
    orderings: tuple[Ordering, ...]
    ours: bool


@dataclass(frozen=True)
class Document:
    """Everything that one document prints and claims."""

    name: str
    title: str
    authors: str
    year: int
    places: Mapping[str, Place]
    claims: tuple[Claim, ...]
