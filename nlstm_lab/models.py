"""A network: one-hot or embedded input, a unit, a readout.

`ModelConfig` is the literal description that experiments hold; `build` makes the module from it and a task's sizes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlstm_lab import cells
from nlstm_lab.datasets.base import Batch, Mixture, Symbols, Task, Vectors, Vocabulary

OutputBias = Literal["zero", "log_frequencies"]
UNITS: dict[str, type[cells.Recurrent]] = {"lstm": cells.LSTM, "nlstm": cells.NestedLSTM}


@dataclass(frozen=True)
class ModelConfig:
    """A network without its task: what `build` needs besides the sizes of input and output.

    unit: a key of `UNITS`. flags: further arguments of the unit, by their names. embedding_size: None for one-hot
    input (Nested LSTMs, protocol 5). output_embedding_size: width of the HM-RNN paper's output module (equations 11
    and 12), None for one dense layer on the last layer's h. output_bias: how the readout's bias starts.
    """

    unit: str
    hidden_size: int
    num_layers: int = 1
    flags: Mapping[str, Any] = field(default_factory=dict)
    embedding_size: int | None = None
    output_embedding_size: int | None = None
    output_bias: OutputBias = "zero"


@dataclass(frozen=True)
class Interface:
    """What a network must know of its task: the sizes of its two ends and, for text, the symbols."""

    input: Symbols | Vectors
    output: Symbols | Mixture
    vocabulary: Vocabulary | None = None
    per_sequence: bool = False
    log_frequencies: Tensor | None = None

    @classmethod
    def of(cls, task: Task) -> "Interface":
        return cls(task.input, task.output, task.vocabulary, task.per_sequence, task.log_frequencies)

    def record(self) -> dict[str, Any]:
        """As plain JSON values, so that a run can be rebuilt where its data set is absent."""
        ends = {end: {type(value).__name__: vars(value)} for end, value in (("in", self.input), ("out", self.output))}
        symbols = None if self.vocabulary is None else list(self.vocabulary.symbols)
        return {**ends, "vocabulary": symbols, "per_sequence": self.per_sequence}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Interface":
        kinds = {"Symbols": Symbols, "Vectors": Vectors, "Mixture": Mixture}
        (one,), (other,) = record["in"].items(), record["out"].items()
        symbols = record["vocabulary"]
        return cls(
            kinds[one[0]](**one[1]),
            kinds[other[0]](**other[1]),
            None if symbols is None else Vocabulary(tuple(symbols)),
            record["per_sequence"],
        )


class Score(NamedTuple):
    """Sums over a batch, still on its device: nats, predictions that count, hits among them, hits and number of all."""

    nats: Tensor
    counted: Tensor
    hits: Tensor
    all_hits: Tensor
    all: Tensor


class Network(nn.Module):
    """Input map, unit and readout. Called with a batch's inputs and a state, it returns outputs and the new state.

    Shapes: inputs symbols [T, B] or vectors [T, B, features]; outputs are logits [T, B, output size], or [B, output
    size] where the task asks for one prediction a sequence. The state is the unit's own.
    """

    def __init__(
        self,
        unit: cells.Recurrent,
        readout: nn.Module,
        embedding: nn.Module | None = None,
        vocabulary: Vocabulary | None = None,
        per_sequence: bool = False,
        name: str = "",
    ) -> None:
        super().__init__()
        self.unit, self.readout, self.embedding = unit, readout, embedding
        self.vocabulary, self.per_sequence, self.name = vocabulary, per_sequence, name

    def inputs(self, inputs: Tensor) -> Tensor:
        """What the unit reads: symbols as they are (it looks one-hot vectors up), or their embedding."""
        return inputs if self.embedding is None else self.embedding(inputs)

    def forward(self, inputs: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        hidden, state = self.unit(self.inputs(inputs), state)
        return self.readout(hidden[-1] if self.per_sequence else hidden), state

    def score(self, outputs: Tensor, batch: Batch) -> Score:
        """Cross-entropy in nats and hits, over the predictions that the batch's mask counts, and over all."""
        logits, targets = outputs.flatten(0, -2), batch.targets.flatten()
        nats = F.cross_entropy(logits, targets, reduction="none")
        with torch.no_grad():
            right = logits.argmax(-1) == targets
        size = torch.tensor(targets.numel(), device=nats.device)
        if batch.mask is None:
            return Score(nats.sum(), size, right.sum(), right.sum(), size)
        mask = batch.mask.flatten()
        return Score((nats * mask).sum(), mask.sum(), (right & mask).sum(), right.sum(), size)


def parameter_count(module: nn.Module) -> int:
    """Number of trained values."""
    return sum(parameter.numel() for parameter in module.parameters())


def dense(inputs: int, outputs: int) -> nn.Linear:
    """A dense layer, Glorot uniform with zero bias (the documents do not say how theirs start)."""
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def build(config: ModelConfig, ends: Interface, *, seed: int, name: str = "") -> Network:
    """The network of `config` between `ends`, its parameters drawn from `seed` on the CPU, whatever device follows.

    Raises ValueError for an unknown unit or output bias; the unit raises for bad sizes and flags.
    """
    if config.unit not in UNITS:
        raise ValueError(f"unit must be one of {sorted(UNITS)}, not {config.unit!r}")
    if config.output_bias not in get_args(OutputBias):
        raise ValueError(f"output_bias must be one of {get_args(OutputBias)}, not {config.output_bias!r}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _assemble(config, ends, name)


def _assemble(config: ModelConfig, ends: Interface, name: str) -> Network:
    match ends.input, config.embedding_size:
        case ((Symbols(size) | Vectors(size)), None):
            embedding: nn.Module | None = None
        case Symbols(symbols), int(size):
            embedding = nn.Embedding(symbols, size)
        case Vectors(features), int(size):
            embedding = dense(features, size)
    unit = UNITS[config.unit](size, config.hidden_size, config.num_layers, **config.flags)
    if isinstance(ends.output, Mixture):
        raise NotImplementedError
    readout = dense(config.hidden_size, ends.output.size)
    if config.output_bias == "log_frequencies" and ends.log_frequencies is not None:
        with torch.no_grad():
            readout.bias.copy_(ends.log_frequencies)
    return Network(unit, readout, embedding, ends.vocabulary, ends.per_sequence, name)


def metrics(sums: Sequence[float], metric: str) -> dict[str, float]:
    """What the documents report, from the sums of a `Score`: nats, `metric`, accuracy.

    Where the loss masks predictions that the article's accuracy does not (protocol 30), accuracy over all as well.
    """
    nats, counted, hits, all_hits, everything = sums
    nll = nats / counted
    named = {"nll_nats": nll, "top1_accuracy_pct": 100 * hits / counted}
    if metric == "nll_nats" and everything != counted:
        named["top1_accuracy_unmasked_pct"] = 100 * all_hits / everything
    if metric == "bpc":
        named["bpc"] = nll / math.log(2)
    elif metric == "perplexity":
        named["perplexity"] = math.exp(min(nll, 700.0))  # above, a float overflows
    return named
