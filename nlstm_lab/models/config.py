"""What a network is made of, as literal values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

from nlstm_lab.cells.initialization import RECORDED
from nlstm_lab.datasets.base import Mixture, Symbols, Task, Vectors, Vocabulary
from nlstm_lab.errors import UsageError
from nlstm_lab.settings import ADDED, check, plain

OutputBias = Literal["zero", "log_frequencies"]
OutputWeight = Literal["glorot", "orthogonal", "orthogonal_tiles", "zero"]
EmbeddingWeight = Literal["normal", "glorot"]
InitialState = Literal["zero", "learned"]
SEPARATOR = "\t"  # between the names of words in a record


@dataclass(frozen=True)
class ModelConfig:
    """A network without its task: what `build` needs besides the sizes of input and output.

    Args:
        cell_type: A key of `CELL_TYPES`.
        flags: Further arguments of its class, by their names.
        embedding_size: None for one-hot input (Nested LSTMs).
        output_embedding_size: Width of the HM-RNN paper's output module (equations 11 and 12); None for one dense layer
            on the last layer's h.
        output_bias: Initialization of the readout's last bias.
        output_weight: Of its matrix: "glorot" uniform, "orthogonal", "zero", or in "orthogonal_tiles", squares
            of the greatest common divisor of its sides, as the initialization of zoneout's code.
        embedding_weight: Initialization of an embedding of symbols, of which none is padding.
        boundaries: Of `hrnn` alone: the symbols that end a segment of each level, the words' first.
        output_dropout: The probability with which what the readout reads is zeroed in training (Zaremba et al. 2014,
            arXiv 1409.2329).
        initial_state: Whether h and every memory of every layer start at "zero" or at "learned" values, which are
            parameters in addition to those that the Nested LSTM paper counts.
    """

    cell_type: str
    hidden_size: int
    num_layers: int = 1
    flags: Mapping[str, Any] = field(default_factory=dict)
    embedding_size: int | None = None
    output_embedding_size: int | None = None
    output_bias: OutputBias = "zero"
    output_weight: OutputWeight = "glorot"
    embedding_weight: EmbeddingWeight = "normal"
    boundaries: tuple[str, ...] = ()
    output_dropout: float | None = field(default=None, metadata=ADDED)
    initial_state: InitialState = field(default="zero", metadata=ADDED)

    def __post_init__(self) -> None:
        check(self)
        if self.output_dropout is not None and self.output_dropout >= 1:
            raise UsageError(f"output_dropout must be below 1, not {self.output_dropout!r}")

    def record(self) -> dict[str, Any]:
        """Return the fields as plain values, with the names that records have, so that digests stay what they are."""
        fields = plain(self)
        if "initialization" in self.flags:
            now = self.flags["initialization"]
            fields["flags"] = {**self.flags, "initialization": RECORDED.get(now, now)}
        return fields


@dataclass(frozen=True)
class Interface:
    """What a network must know of its task.

    Args:
        input, output: The sizes of its two ends.
        log_frequencies: The natural log of each target's share of the training targets, [output size].
    """

    input: Symbols | Vectors
    output: Symbols | Mixture
    vocabulary: Vocabulary | None = None
    per_sequence: bool = False
    log_frequencies: Tensor | None = None

    @classmethod
    def of(cls, task: Task) -> "Interface":
        """Take the interface from a `task` that is loaded."""
        return cls(task.input, task.output, task.vocabulary, task.per_sequence, task.log_frequencies)

    def record(self) -> dict[str, Any]:
        """Return it as plain JSON values, so that a run can be rebuilt without its data set.

        Symbols are one string where each is one character, as there may be thousands, else a list.
        """
        ends = {end: _recorded(value) for end, value in (("in", self.input), ("out", self.output))}
        symbols = [] if self.vocabulary is None else self.vocabulary.symbols
        names = "".join(symbols) if all(len(symbol) == 1 for symbol in symbols) else list(symbols)
        return {**ends, "vocabulary": names or None, "per_sequence": self.per_sequence}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Interface":
        """Read the interface that is written as `record`."""
        symbols = record["vocabulary"]
        return cls(
            _end(record["in"]),
            _end(record["out"]),
            None if symbols is None else Vocabulary(tuple(symbols)),
            record["per_sequence"],
        )


def _recorded(end: Symbols | Vectors | Mixture) -> dict[str, Any]:
    """One end as a record has it: names, which may be thousands, as one line of words."""
    fields = dict(vars(end))
    if (names := fields.pop("names", None)) is not None:
        fields["names"] = SEPARATOR.join(names)
    return {type(end).__name__: fields}


def _end(record: Mapping[str, Any]) -> Any:
    (kind, fields), *_ = record.items()
    if "names" in fields:
        fields = {**fields, "names": tuple(fields["names"].split(SEPARATOR))}
    return {"Symbols": Symbols, "Vectors": Vectors, "Mixture": Mixture}[kind](**fields)
