"""What every task hands to training: batches, and what they are made of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from nlstm_lab.errors import UsageError
from nlstm_lab.settings import ADDED, check

Split = Literal["train", "valid", "test"]
Evaluation = Literal["blocks", "streams"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")


class Batch(NamedTuple):
    """Time-major sequences side by side.

    Args:
        inputs: Symbols [T, B] int64, or vectors [T, B, features].
        targets: Symbols or words [T, B], classes [B], or points [T, B, 3].
        mask: [T, B] bool (or [B] for classes), True where a prediction counts; None where all do.
        fresh: The state starts at zero here; False continues from the batch before.
    """

    inputs: Tensor
    targets: Tensor
    mask: Tensor | None = None
    fresh: bool = True

    def to(self, device: torch.device) -> "Batch":
        return Batch._make(one.to(device, non_blocking=True) if isinstance(one, Tensor) else one for one in self)


@dataclass(frozen=True)
class Vocabulary:
    """Symbols in their order; the position is the code."""

    symbols: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.symbols)

    def encode(self, text: str) -> Tensor:
        """Turn a text into codes, [len(text)] int64. UsageError: the vocabulary lacks characters of it."""
        codes = {symbol: code for code, symbol in enumerate(self.symbols)}
        if unknown := sorted(set(text) - codes.keys()):
            known = "".join(self.symbols)
            if len(known) > len(self):
                way_out = "hand in codes, such as [vocabulary.index(word) for word in words]"
                raise UsageError(f"this network reads symbols of several characters, not text: {way_out}")
            raise UsageError(
                f"the text has characters that this network's vocabulary of {len(self)} symbols lacks: "
                f"{' '.join(map(repr, unknown[:10]))}; it knows {known[:200]!r}{', among others' * (len(known) > 200)}"
                "; `lab.probes.mapped` takes the nearest ones"
            )
        return torch.tensor([codes[character] for character in text], dtype=torch.int64)

    def decode(self, codes: Tensor | np.ndarray) -> str:
        """The text of a row of codes."""
        return "".join(map(self.symbols.__getitem__, codes.tolist()))


@dataclass(frozen=True)
class Symbols:
    """One-hot input, or a softmax over as many symbols (words, classes)."""

    size: int
    padded: bool = False  # whether 0 is no symbol
    names: tuple[str, ...] | None = None  # of words


@dataclass(frozen=True)
class Vectors:
    """Real-valued input of so many features."""

    size: int


@dataclass(frozen=True)
class Mixture:
    """A mixture of so many bivariate Gaussians and a Bernoulli for the pen (Graves 2013, section 4)."""

    components: int = 20


def split_90_5_5(order: np.ndarray, counted: str) -> dict[Split, np.ndarray]:
    """Cut a shuffled order [n] into 90/5/5. UsageError: n is below 20; the message begins with what was `counted`."""
    if len(order) < 20:
        raise UsageError(f"{counted}, too few to split 90/5/5")
    train, valid = int(len(order) * 0.9), int(len(order) * 0.05)
    return in_splits(order, (train, train + valid))


def in_splits(values: np.ndarray, ends: Sequence[int] | np.ndarray) -> dict[Split, np.ndarray]:
    """The part of each split, where they lie one after another and end there (the last at the end)."""
    return dict(zip(SPLITS, np.split(values, ends[:2]), strict=True))


Metric = Literal["bpc", "perplexity", "nll_nats", "log_likelihood_nats"]


class Task(Protocol):
    """A data set made ready for one protocol. Frozen task configs have a `load()` that returns one."""

    vocabulary: Vocabulary | None  # None where the input is no text
    per_sequence: bool  # one prediction at the end (classes) instead of one a step
    metric: Metric  # what the documents report; always computed from the mean loss of a prediction (or sequence)
    evaluations: tuple[Evaluation, ...]  # how the task can be evaluated, the documents' way first
    updates_per_epoch: int
    fingerprint: str  # sha256 of the content that was read

    @property
    def input(self) -> Symbols | Vectors: ...

    @property
    def output(self) -> Symbols | Mixture: ...

    @property
    def log_frequencies(self) -> Tensor:
        """[output size]: the natural log of each target's share of the training targets, one that never comes as 1."""
        ...

    def train(self, generator: torch.Generator) -> Iterator[Batch]:
        """One epoch of training batches; shuffling, where there is any, is drawn from `generator`."""
        ...

    def evaluate(self, split: Split, evaluation: Evaluation) -> Iterator[Batch]:
        """Every prediction of a split, once, in a fixed order."""
        ...


@dataclass(frozen=True, kw_only=True)
class Ordered:
    """In which order an epoch reads the training sequences.

    Args:
        batch_order: "shuffled" is a new order in every epoch, "fixed" that of the data in all of them.
    """

    batch_order: Literal["shuffled", "fixed"] = field(default="shuffled", metadata=ADDED)

    def __post_init__(self) -> None:
        check(self)


class ColdTask:
    """A `Task` of separate sequences, each read from a cold state, `batch_size` of them side by side.

    `rows` are the numbers of each split's sequences among all of them, or within it; `drop_last` leaves out what fills
    no batch of an epoch.
    """

    metric: Metric
    output: Any
    vocabulary: Vocabulary | None = None
    per_sequence = False
    evaluations: tuple[Evaluation, ...] = ("blocks",)
    evaluation_batch = 128  # sequences side by side; each starts cold, so their number changes no result

    def __init__(
        self, rows: Mapping[Split, np.ndarray], batch_size: int, batch_order: str = "shuffled", drop_last: bool = False
    ) -> None:
        self.rows, self.batch_size, self.batch_order = rows, batch_size, batch_order
        whole, rest = divmod(len(rows["train"]), batch_size)
        self.updates_per_epoch = whole + (rest > 0 and not drop_last)

    @cached_property
    def log_frequencies(self) -> Tensor:
        if isinstance(self.output, Mixture):
            raise UsageError("output_bias=log_frequencies needs symbols to predict, not a density: leave it at zero")
        counts = torch.zeros(self.output.size, dtype=torch.int64)
        for _, targets, mask, _ in self.evaluate("train", self.evaluations[0]):
            counts += torch.bincount(targets.flatten() if mask is None else targets[mask], minlength=len(counts))
        seen = counts.clamp(min=1).numpy()  # numpy's logarithm, as recorded initializations have it
        return torch.from_numpy(np.log(seen / seen.sum())).float()

    def train(self, generator: torch.Generator) -> Iterator[Batch]:
        rows = self.rows["train"]
        if self.batch_order == "shuffled":
            rows = rows[torch.randperm(len(rows), generator=generator).numpy()]
        return self.read("train", rows[: self.updates_per_epoch * self.batch_size], self.batch_size)

    def evaluate(self, split: Split, evaluation: Evaluation) -> Iterator[Batch]:
        return self.read(split, self.rows[split], self.evaluation_batch)

    def read(self, split: Split, rows: np.ndarray, batch_size: int) -> Iterator[Batch]:
        """Batches of these sequences of a split, in this order."""
        return (self.batch(rows[start : start + batch_size]) for start in range(0, len(rows), batch_size))

    def batch(self, rows: np.ndarray) -> Batch:
        """These sequences side by side."""
        raise NotImplementedError
