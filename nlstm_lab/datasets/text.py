"""Character language modelling: blocks that are shuffled and start cold, streams that are read on and on."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from nlstm_lab.datasets.base import Batch, BatchOrder, Epoch, Evaluation, LastBatch, Metric, Split, Symbols, Vocabulary
from nlstm_lab.datasets.corpora import Corpus, LineEnds, Normalization, Shares, TextSource, open_corpus
from nlstm_lab.errors import UsageError
from nlstm_lab.settings import ADDED, check

EVALUATION_STREAMS = 32  # parallel pieces in which a split is read with the state carried
EVALUATION_BATCH = 128  # blocks side by side; each starts cold, so their number changes no result
COUNTED = 1 << 24  # symbols that are counted at a time


@dataclass(frozen=True)
class CharacterModelling:
    """Predict the next symbol of a text.

    Blocks (Nested LSTM): `length` symbols cut one after another, shuffled each epoch, cold, length - 1 predictions.
    Streams (HM-LSTM): `batch_size` contiguous pieces side by side, `length` predictions a batch, state carried.

    Args:
        corpus: A name, or the path of a text file (see `TextSource`).
        batch_order, last_batch: Of the blocks, see `Epoch`; streams have an order of their own.
        line_ends: Of the Penn Treebank, see `TextSource`.

    Raises:
        UsageError: `batch_order` or `last_batch` is given for streams, `line_ends` for another text.
    """

    corpus: str = "ptb"
    length: int = 100
    batch_size: int = 32
    evaluation: Evaluation = "blocks"
    normalization: Normalization = "none"
    share: Shares = (90, 5, 5)
    encoding: str = "utf-8"
    batch_order: BatchOrder = field(default="shuffled", metadata=ADDED)
    last_batch: LastBatch = field(default="keep", metadata=ADDED)
    line_ends: LineEnds = field(default="stripped", metadata=ADDED)

    def __post_init__(self) -> None:
        check(self)
        self.source()
        if self.evaluation == "streams" and (self.batch_order, self.last_batch) != ("shuffled", "keep"):
            raise UsageError(
                'batch_order and last_batch are of blocks alone: leave them, or choose evaluation="blocks"'
            )

    def source(self) -> TextSource:
        """The text that is read."""
        return TextSource(self.corpus, self.normalization, self.share, self.encoding, self.line_ends)

    def load(self) -> "TextTask":
        """Make the task.

        Raises:
            MissingData: The corpus is not on this machine.
            UsageError: It is too short.
        """
        corpus = open_corpus(self.source())
        return TextTask(corpus, self.length, self.batch_size, self.evaluation, self.batch_order, self.last_batch)


class TextTask:
    """A corpus under one protocol (see `Task`). inputs and targets are symbols [T, B]."""

    per_sequence = False
    metric: Metric = "bpc"

    def __init__(
        self,
        corpus: Corpus,
        length: int,
        batch_size: int,
        evaluation: Evaluation,
        batch_order: BatchOrder = "shuffled",
        last_batch: LastBatch = "keep",
    ) -> None:
        if length < 2 or batch_size < 1:
            raise UsageError(f"blocks have at least 2 symbols and batches at least 1 block, not {length}, {batch_size}")
        for split, codes in corpus.splits.items():
            if len(codes) < length:
                raise UsageError(
                    f"the {split} split of {corpus.name} has {len(codes)} symbols, fewer than one block of {length}: "
                    f"choose a smaller length, other shares, or a longer text"
                )
        self.corpus, self.length, self.batch_size, self.evaluation = corpus, length, batch_size, evaluation
        # epochs are chosen by the first: the way in which the network is trained to read
        self.evaluations: tuple[Evaluation, ...] = (
            ("blocks", "streams") if evaluation == "blocks" else ("streams", "blocks")
        )
        self.vocabulary: Vocabulary | None = corpus.vocabulary
        self.input = Symbols(len(corpus.vocabulary))
        self.output = Symbols(len(corpus.vocabulary))
        self.fingerprint = corpus.fingerprint
        size = len(corpus.splits["train"])
        self.epoch = Epoch(size // length, batch_size, batch_order, last_batch)  # of the blocks
        batches = self.epoch.batches
        self.updates_per_epoch = batches if evaluation == "blocks" else -(-_stream_length(size, batch_size) // length)

    @cached_property
    def log_frequencies(self) -> Tensor:
        """[symbols]; a symbol that is never a target counts as seen once, so that every logarithm is finite."""
        codes = self.corpus.splits["train"]
        counts = np.zeros(self.output.size, np.int64)
        if self.evaluation == "blocks":
            table = cut(codes, self.length)
            codes, counts = table.reshape(-1), counts - np.bincount(table[:, 0], minlength=len(counts))
        else:
            codes = codes[1:]
        for start in range(0, len(codes), COUNTED):
            counts += np.bincount(codes[start : start + COUNTED], minlength=len(counts))
        return log_shares(counts)

    def train(self, generator: torch.Generator) -> Iterator[Batch]:
        codes = self.corpus.splits["train"]
        if self.evaluation == "streams":
            # entered at another place each epoch, or epochs that are cut short would read the same text again
            first = int(torch.randint(self.updates_per_epoch, (), generator=generator))
            return streams(codes, self.length, self.batch_size, first)
        return blocks(codes, self.length, self.batch_size, self.epoch.order(generator))

    def evaluate(self, split: Split, evaluation: Evaluation) -> Iterator[Batch]:
        codes = self.corpus.splits[split]
        if evaluation == "streams":
            return streams(codes, self.length, EVALUATION_STREAMS)
        return blocks(codes, self.length, EVALUATION_BATCH, np.arange(len(codes) // self.length))


def log_shares(counts: np.ndarray) -> Tensor:
    """The natural logarithm of each count's share, float32; a count of zero is taken as one."""
    seen = np.maximum(counts, 1)
    return torch.from_numpy(np.log(seen / seen.sum())).float()


def cut(codes: np.ndarray, length: int) -> np.ndarray:
    """Consecutive blocks [blocks, length], a view; the remainder that fills no block is left out."""
    return codes[: len(codes) // length * length].reshape(-1, length)


def blocks(codes: np.ndarray, length: int, batch_size: int, order: np.ndarray) -> Iterator[Batch]:
    """Blocks in the given order, side by side: inputs and targets [length - 1, B], each from a cold state."""
    table = cut(codes, length)
    for start in range(0, len(order), batch_size):
        rows = torch.from_numpy(table[order[start : start + batch_size]].astype(np.int64)).T.contiguous()
        yield Batch(rows[:-1], rows[1:])


def streams(codes: np.ndarray, length: int, batch_size: int, first: int = 0) -> Iterator[Batch]:
    """Contiguous pieces side by side, read on with the state carried: inputs and targets [T <= length, B].

    Every symbol but the first is predicted exactly once; where the pieces come out unequal, the mask hides the
    padding at the end of the last ones. first: the batch to begin with; those before it come last, from a cold state.
    """
    count = min(batch_size, len(codes) - 1)
    size = _stream_length(len(codes), count)
    starts = np.arange(count) * size
    order = list(range(0, size, length))
    for start in order[first:] + order[:first]:
        places = np.arange(start, min(start + length, size))[:, None] + starts
        real = places < len(codes) - 1
        places = np.minimum(places, len(codes) - 2)
        inputs, targets = (torch.from_numpy(codes[at].astype(np.int64)) for at in (places, places + 1))
        yield Batch(inputs, targets, None if real.all() else torch.from_numpy(real), fresh=start in (0, first * length))


def _stream_length(symbols: int, count: int) -> int:
    """Predictions of each of `count` pieces, rounded up."""
    return -(-(symbols - 1) // min(count, symbols - 1))
