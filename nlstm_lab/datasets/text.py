"""Character language modelling: blocks that are shuffled and start cold, streams that are read on and on."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nlstm_lab.datasets.base import Batch, Metric, Reader, Split, Symbols, Vocabulary
from nlstm_lab.datasets.corpora import Corpus, open_corpus
from nlstm_lab.errors import UsageError

EVALUATION_STREAMS = 32  # parallel pieces in which a split is read with the state carried
EVALUATION_BATCH = 128  # blocks side by side; each starts cold, so their number changes no result


@dataclass(frozen=True)
class CharacterModelling:
    """Predict the next symbol of a text.

    Blocks (Nested LSTM): `length` symbols cut one after another, shuffled each epoch, cold, length - 1 predictions.
    Streams (HM-LSTM): `batch_size` contiguous pieces read side by side, `length` predictions a batch, state carried.
    """

    corpus: str = "ptb"
    length: int = 100
    batch_size: int = 32
    reader: Reader = "blocks"

    def load(self) -> "TextTask":
        """The task; MissingData where the corpus is not on this machine, a UsageError where it is too short."""
        return TextTask(self, open_corpus(self.corpus))


class TextTask:
    """A corpus under one protocol (see `Task`). inputs and targets are symbols [T, B]."""

    per_sequence = False
    metric: Metric = "bpc"
    readers: tuple[Reader, ...] = ("blocks", "streams")

    def __init__(self, config: CharacterModelling, corpus: Corpus) -> None:
        self.config = config
        self.corpus = corpus
        for split, codes in corpus.splits.items():
            if len(codes) < config.length:
                raise UsageError(
                    f"the {split} split of {corpus.name} has {len(codes)} symbols, fewer than one block of "
                    f"{config.length}: choose a smaller length or a longer text"
                )
        self.vocabulary: Vocabulary = corpus.vocabulary
        self.input = Symbols(len(corpus.vocabulary))
        self.output = Symbols(len(corpus.vocabulary))
        self.fingerprint = corpus.fingerprint

    @property
    def updates_per_epoch(self) -> int:
        size, config = len(self.corpus.splits["train"]), self.config
        if config.reader == "blocks":
            return -(-(size // config.length) // config.batch_size)
        return -(-_stream_length(size, config.batch_size) // config.length)

    @property
    def log_frequencies(self) -> Tensor:
        """[symbols]; a symbol that is never a target counts as seen once, so that every logarithm is finite."""
        codes = self.corpus.splits["train"]
        targets = cut(codes, self.config.length)[:, 1:] if self.config.reader == "blocks" else codes[1:]
        counts = np.maximum(np.bincount(targets.ravel(), minlength=len(self.vocabulary)), 1)
        return torch.from_numpy(np.log(counts / counts.sum())).float()

    def train(self, generator: torch.Generator) -> Iterator[Batch]:
        codes, config = self.corpus.splits["train"], self.config
        if config.reader == "streams":
            return streams(codes, config.length, config.batch_size)
        order = torch.randperm(len(codes) // config.length, generator=generator).numpy()
        return blocks(codes, config.length, config.batch_size, order)

    def evaluate(self, split: Split, reader: Reader) -> Iterator[Batch]:
        codes, length = self.corpus.splits[split], self.config.length
        if reader == "streams":
            return streams(codes, length, EVALUATION_STREAMS)
        return blocks(codes, length, EVALUATION_BATCH, np.arange(len(codes) // length))


def cut(codes: np.ndarray, length: int) -> np.ndarray:
    """Consecutive blocks [blocks, length], a view; the remainder that fills no block is left out."""
    return codes[: len(codes) // length * length].reshape(-1, length)


def blocks(codes: np.ndarray, length: int, batch_size: int, order: np.ndarray) -> Iterator[Batch]:
    """Blocks in the given order, side by side: inputs and targets [length - 1, B], each from a cold state.

    The last batch may be smaller. The symbols after the last whole block (fewer than `length`) are never read.
    """
    table = cut(codes, length)
    for start in range(0, len(order), batch_size):
        rows = torch.from_numpy(table[order[start : start + batch_size]].astype(np.int64)).T.contiguous()
        yield Batch(rows[:-1], rows[1:])


def streams(codes: np.ndarray, length: int, batch_size: int) -> Iterator[Batch]:
    """Contiguous pieces side by side, read on with the state carried: inputs and targets [T <= length, B].

    Every symbol but the first is predicted exactly once; where the pieces come out unequal, the mask hides the
    padding at the end of the last ones.
    """
    count = min(batch_size, len(codes) - 1)
    size = _stream_length(len(codes), count)
    starts = np.arange(count) * size
    for start in range(0, size, length):
        places = np.arange(start, min(start + length, size))[:, None] + starts
        real = places < len(codes) - 1
        places = np.minimum(places, len(codes) - 2)
        inputs, targets = (torch.from_numpy(codes[at].astype(np.int64)) for at in (places, places + 1))
        yield Batch(inputs, targets, None if real.all() else torch.from_numpy(real), fresh=start == 0)


def _stream_length(symbols: int, count: int) -> int:
    """Predictions of each of `count` pieces, rounded up."""
    return -(-(symbols - 1) // min(count, symbols - 1))
