"""Character language modelling: blocks that are shuffled and start cold, streams that are read on and on."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from string import ascii_lowercase

import numpy as np
import torch

from nlstm_lab.datasets.base import Batch, ColdTask, Evaluation, Ordered, Split, Symbols, Vocabulary, in_splits
from nlstm_lab.datasets.corpora import NAMES, Corpus, LineEnds, TextSource, open_corpus
from nlstm_lab.errors import UsageError
from nlstm_lab.settings import check

EVALUATION_STREAMS = 32  # parallel pieces in which a split is read with the state carried
WITHIN, WORD, PHRASE = 0, 1, 2  # what begins at a character of the language whose boundaries are known


@dataclass(frozen=True)
class CharacterModelling(Ordered, TextSource):
    """Predict the next symbol of a text, which is read as `TextSource` says.

    Blocks (Nested LSTM): `length` symbols cut one after another, shuffled each epoch, cold, length - 1 predictions.
    Streams (HM-LSTM): `batch_size` contiguous pieces side by side, `length` predictions a batch, state carried.
    """

    corpus: str = "ptb"
    length: int = 100
    batch_size: int = 32
    evaluation: Evaluation = "blocks"

    def __post_init__(self) -> None:
        TextSource.__post_init__(self)
        if self.evaluation == "streams" and self.batch_order != "shuffled":
            raise UsageError('batch_order is for blocks: leave it, or choose evaluation="blocks"')

    def load(self) -> "TextTask":
        """Make the task. MissingData: the corpus is not on this machine. UsageError: it is too short."""
        return TextTask(open_corpus(self), self)


class TextTask(ColdTask):
    """A corpus under one protocol (see `Task`). inputs and targets are symbols [T, B]."""

    metric = "bpc"
    boundaries: dict[Split, np.ndarray]  # of a known language what begins at each symbol: WITHIN, WORD or PHRASE

    def __init__(self, corpus: Corpus, config: "CharacterModelling | NestedLanguage") -> None:
        length, batch_size, evaluation = config.length, config.batch_size, config.evaluation
        for split, codes in corpus.splits.items():
            if not 2 <= length <= len(codes):
                raise UsageError(
                    f"the {split} split of {corpus.name} has {len(codes)} symbols, and a block 2 to as many, not "
                    f"{length}: choose another length, other shares, or a longer text"
                )
        rows = {split: np.arange(len(codes) // length) for split, codes in corpus.splits.items()}
        super().__init__(rows, batch_size, config.batch_order)
        self.corpus, self.length, self.evaluation, self.fingerprint = corpus, length, evaluation, corpus.fingerprint
        # epochs are chosen by the first: the way in which the network is trained to read
        self.evaluations = ("blocks", "streams") if evaluation == "blocks" else ("streams", "blocks")
        self.vocabulary = corpus.vocabulary
        self.input = self.output = Symbols(len(corpus.vocabulary))
        if evaluation == "streams":
            self.updates_per_epoch = -(-_stream_length(corpus.ends[0], batch_size) // length)

    def train(self, generator: torch.Generator) -> Iterator[Batch]:
        if self.evaluation == "blocks":
            return super().train(generator)
        # entered at another place each epoch, or epochs that are cut short would read the same text again
        first = int(torch.randint(self.updates_per_epoch, (), generator=generator))
        return streams(self.corpus.splits["train"], self.length, self.batch_size, first)

    def evaluate(self, split: Split, evaluation: Evaluation) -> Iterator[Batch]:
        if evaluation == "blocks":
            return super().evaluate(split, evaluation)
        return streams(self.corpus.splits[split], self.length, EVALUATION_STREAMS)

    def read(self, split: Split, rows: np.ndarray, batch_size: int) -> Iterator[Batch]:
        return blocks(self.corpus.splits[split], self.length, batch_size, rows)


def blocks(codes: np.ndarray, length: int, batch_size: int, order: np.ndarray) -> Iterator[Batch]:
    """Blocks in the given order, side by side: inputs and targets [length - 1, B], each from a cold state."""
    table = codes[: len(codes) // length * length].reshape(-1, length)  # the remainder that fills no block is left out
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
    return -(-(symbols - 1) // min(count, symbols - 1))


@dataclass(frozen=True)
class NestedLanguage:
    """Characters in words in phrases, whose boundaries are known and written nowhere in the text.

    `words` random spellings of 2 to 6 letters are shared out to `topics`; a phrase is 3 to 8 words of one topic, the
    next phrase has another. No spaces: what separates words is that letters within one follow from the letters
    before, and what separates phrases is that only a phrase's own topic goes on.
    """

    size: int = 200_000  # characters in all
    words: int = 64
    topics: int = 8
    length: int = 100
    batch_size: int = 32
    evaluation: Evaluation = "blocks"
    seed: int = 0
    batch_order = "shuffled"  # always, and no field

    def __post_init__(self) -> None:
        check(self)

    def __str__(self) -> str:
        return f"nested language ({self.size} symbols, {self.words} words, {self.topics} topics, seed {self.seed})"

    def load(self) -> TextTask:
        """Make the task. UsageError: there is one topic, or a topic would have fewer than two words."""
        if self.topics < 2 or self.words < 2 * self.topics:
            raise UsageError(f"{self.topics} topics with {self.words} words: 2 topics at least, 2 words in each")
        codes, begins = _nested(self)
        ends = (self.size * 90 // 100, self.size * 95 // 100, self.size)
        vocabulary, fingerprint = Vocabulary(tuple(ascii_lowercase)), sha256(codes.tobytes()).hexdigest()
        corpus = Corpus("nested language", codes, ends, vocabulary, fingerprint)
        task = TextTask(corpus, self)
        task.boundaries = in_splits(begins, ends)
        return task


def _nested(config: NestedLanguage) -> tuple[np.ndarray, np.ndarray]:
    """Codes and what begins at each of them."""
    random = np.random.default_rng(config.seed)
    spellings: list[bytes] = []
    while len(spellings) < config.words:
        spelling = random.integers(26, size=random.integers(2, 7), dtype=np.uint8).tobytes()
        if spelling not in spellings:
            spellings.append(spelling)
    lengths = np.array([len(spelling) for spelling in spellings])
    phrases = config.size // 6 + 1  # three words of two letters at least
    topics = np.cumsum(np.r_[random.integers(config.topics), random.integers(1, config.topics, phrases - 1)])
    counts = random.integers(3, 9, phrases)
    first = np.repeat(np.arange(phrases), counts)  # the phrase of each word
    choices = config.words // config.topics
    words = (topics % config.topics)[first] * choices + random.integers(choices, size=len(first))
    kinds = np.full(len(words), WORD, np.uint8)
    kinds[np.r_[0, np.cumsum(counts)[:-1]]] = PHRASE
    places = np.r_[0, np.cumsum(lengths[words])[:-1]]
    codes = np.frombuffer(b"".join([spellings[word] for word in words]), np.uint8)
    begins = np.zeros(len(codes), np.uint8)
    begins[places] = kinds
    return codes[: config.size], begins[: config.size]


@dataclass(frozen=True)
class Excerpt:
    """`length` symbols of a split of a corpus (with `line_ends` as of `TextSource`) or of a language of known words.

    >>> str(Excerpt("ptb", "valid", 50_000))
    'ptb valid 0:50000'
    """

    corpus: str | NestedLanguage
    split: Split
    length: int
    start: int = 0
    line_ends: LineEnds = "stripped"

    def __post_init__(self) -> None:
        check(self, zero=("start",))
        TextSource(str(self.corpus), line_ends=self.line_ends)  # which refuses it where it does not belong
        if isinstance(self.corpus, str) and self.corpus not in NAMES:
            raise UsageError(f"an excerpt is of a named corpus ({', '.join(NAMES)}), not of {self.corpus!r}")

    def __str__(self) -> str:
        blank = "" if self.line_ends == "stripped" else f", {self.line_ends} blanks"
        return f"{self.corpus} {self.split} {self.start}:{self.start + self.length}{blank}"

    def read(self) -> str:
        """Read the text. MissingData: the corpus is not on this machine. UsageError: the split is shorter."""
        named = TextSource(str(self.corpus), line_ends=self.line_ends)
        corpus = open_corpus(named) if isinstance(self.corpus, str) else self.corpus.load().corpus
        codes = corpus.splits[self.split][self.start : self.start + self.length]
        if len(codes) < self.length:
            raise UsageError(f"there are no symbols {self}")
        return corpus.vocabulary.decode(codes)
