"""What a document prints, entry by entry: numbers, orderings, claims. A key that nothing reads is refused."""

import tomllib
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from nlstm_lab import paths
from nlstm_lab.errors import DamagedFile, UsageError
from nlstm_lab.settings import HIGHER_IS_BETTER

DOCUMENTS = ("nested_lstm", "hm_rnn", "madsen")
Setting = Literal["as printed", "log-frequencies"]  # how the output bias starts
Split = Literal["valid", "test"]
Printed = Decimal  # with the digits of the document


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
class Number:
    """One number of one row."""

    model: str
    experiment: str | None  # what measures it; None for a line that the document cites from others
    metric: str
    split: Split
    evaluation: str
    printed: Decimal | None  # None in the setting that no document prints
    parameters: str
    note: str
    from_memory: bool = False  # not printed in our copy: it counts in no total
    setting: Setting = "as printed"


@dataclass(frozen=True)
class Ordering:
    """A sentence's claim that one experiment beats another."""

    model: str
    better: str
    worse: str
    metric: str
    split: Split
    evaluation: str
    printed: Decimal | None
    claimed: bool  # whether the sentence speaks of this split
    says: str
    note: str


class Entry(BaseModel):
    """A table of a TOML file: each key is one of the fields. `note`: what must be known of the entry."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    note: str = ""


class Row(Entry):
    """A row of a printed table; further keys are its metrics, each with a number for every split."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, dict[Split, Printed]] = Field(init=False)

    model: str
    experiment: str | None = None
    cites: str | None = None
    layers: StrictInt | None = None
    units: StrictInt | None = None
    parameters: str = ""
    from_memory: StrictBool = False  # its cell is blank in our copy, and the value the published one as remembered

    @property
    def label(self) -> str:
        """What the row is called."""
        return f"{self.model} ({self.cites})" if self.cites else f"{self.model} {self.layers} × {self.units}"


class Sentence(Entry):
    """A sentence of the document that orders experiments: each of `better` above each of `worse`."""

    says: str
    better: list[str]
    worse: list[str]
    splits: list[Split] = []


class Claim(Entry):
    """A probe's measurement that is said to lie above a value, or to be a `printed` number, judged over seeds."""

    name: str
    where: str
    says: str
    measure: str
    above: float | None = None  # below the whole interval, where the claim holds
    printed: Printed | None = None
    tolerance: Tolerance | None = None
    ours: StrictBool = False
    counted_with: str = ""  # the claim whose number this one is, too; it is counted there alone


class Place(Entry):
    """A table with its numbers and orderings, or (`ours`) a question that the document does not ask."""

    name: str
    where: str
    caption: str
    # the corpus that stands in for a table's own at small scale, and in variations of its experiments
    # ("name+corpus=substitute"): it may decide an ordering, but no printed number is judged by it
    substitute: str | None = None
    evaluation: str
    metrics: list[str]
    splits: list[Split]
    rows: list[Row] = []
    sentences: list[Sentence] = Field(default=[], alias="orderings")
    rescued: StrictBool = False  # whether its rows were trained from the log-frequencies as well
    ours: StrictBool = False

    @cached_property
    def numbers(self) -> tuple[Number, ...]:
        """Every number of the table, row by row; then those of the rescued rows, which are not printed."""
        numbers = [
            Number(
                *(row.label, row.experiment, metric, split, self.evaluation, printed, row.parameters, row.note),
                from_memory=row.from_memory,
            )
            for row in self.rows
            for metric, by_split in (row.model_extra or {}).items()
            for split, printed in by_split.items()
        ]
        rescued = [
            replace(number, experiment=f"{number.experiment}_logfreq", setting="log-frequencies", printed=None)
            for number in numbers
            if self.rescued and number.experiment
        ]
        return (*numbers, *rescued)

    @cached_property
    def orderings(self) -> tuple[Ordering, ...]:
        """Every comparison of two experiments that a sentence makes, in every metric and split of the table."""
        rows = {(one.experiment, one.metric, one.split): one for one in self.numbers if one.setting == "as printed"}
        orderings = []
        for sentence in self.sentences:
            for better, worse, metric, split in product(sentence.better, sentence.worse, self.metrics, self.splits):
                pair = [rows.get((experiment, metric, split)) for experiment in (better, worse)]
                printed = [row.printed for row in pair if row and row.printed is not None]
                labels = [row.model if row else name for row, name in zip(pair, (better, worse), strict=True)]
                sign = 1 if metric in HIGHER_IS_BETTER else -1
                margin = sign * (printed[0] - printed[1]) if printed else None
                claimed = split in (sentence.splits or self.splits)
                about = (better, worse, metric, split, self.evaluation, margin, claimed, sentence.says, sentence.note)
                orderings.append(Ordering(" better than ".join(labels), *about))
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
    >>> [(one.split, float(one.printed)) for one in table.numbers if one.experiment == "ptb_char_nlstm"][:2]
    [('valid', 1.437), ('test', 1.399)]
    """
    path = paths.targets() / f"{name}.toml"
    if name not in DOCUMENTS:
        raise UsageError(f"there are no targets of {name!r}; there are those of {', '.join(DOCUMENTS)}")
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except FileNotFoundError as error:
        raise DamagedFile(f"{path} is missing: restore it with git, or work in a clone of the repository") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DamagedFile(f"{path} cannot be read as TOML ({error}); restore it from the repository") from error
    try:
        return Document.model_validate({**_resolved(read), "name": name})
    except ValidationError as error:
        first = error.errors()[0]
        where = " ".join(map(str, first["loc"]))
        raise DamagedFile(f"{path}: {where}: {first['msg']}; correct it, or restore it from the repository") from error


def _resolved(read: dict[str, Any]) -> dict[str, Any]:
    """The file's tables, each place with its name and each claim with the tolerance that it names."""
    places = {name: {**place, "name": name} for name, place in read.get("places", {}).items()}
    known = read.get("tolerances", {})
    claims = [
        {**claim, "tolerance": known.get(claim["tolerance"], claim["tolerance"])} if "tolerance" in claim else claim
        for claim in read.get("claims", ())
    ]
    return {**read, "places": places, "claims": claims}
