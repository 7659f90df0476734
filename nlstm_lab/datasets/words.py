"""Sequences of whole words, each after a space, read cold, as in Madsen's article; code 0 is the padding."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from nlstm_lab.datasets.base import Batch, ColdTask, Split, Symbols, Vocabulary, split_90_5_5
from nlstm_lab.datasets.corpora import NAMES, Corpus, Normalization, TextSource, open_corpus
from nlstm_lab.datasets.files import Parsed, cached
from nlstm_lab.errors import UsageError
from nlstm_lab.settings import check

SEED = 450849059  # of the article's code, for its split
ALPHABET = " abcdefghijklmnopqrstuvwxyz"
LETTERS = np.frombuffer(ALPHABET.encode(), np.uint8)
PADDING, UNKNOWN = "\0", "\N{REPLACEMENT CHARACTER}"
SPACE = 0  # in the flat text; the tasks put their special symbols before it
PIECE = 1 << 20  # words that are cut out at a time
RANKED = 2**16 - 1  # most frequent words that have a code of their own


@dataclass(frozen=True)
class Packed:
    """A text as sequences of whole words; corpus, normalization and encoding as of `TextSource`."""

    special: ClassVar[tuple[str, ...]]  # the symbols before the alphabet

    corpus: str = "text8"
    length: int = 200  # characters of a sequence, at most
    batch_size: int = 64
    normalization: Normalization = "none"
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        check(self)

    def load(self) -> "PackedTask":
        """Make the task. MissingData: no such corpus here. UsageError: it has other characters than a-z and spaces."""
        return PackedTask(self)


@dataclass(frozen=True)
class Autocomplete(Packed):
    """Predict at every character, and at the space before it, the word that it belongs to.

    Words: `words` most frequent ones of the whole text, after end-of-sequence (0) and unknown (1). The loss masks
    padding and unknown words; the article's accuracy counts them all.
    """

    special = (PADDING,)
    words: int = 2**14

    def __post_init__(self) -> None:
        check(self)
        if self.words > RANKED:
            raise UsageError(f"a vocabulary has 1 to {RANKED} words, not {self.words}")


@dataclass(frozen=True)
class TextGeneration(Packed):
    """Predict the next character in the same packing: a word's last one predicts the space.

    Loss and accuracy as for `Autocomplete`, with nothing unknown.
    """

    special = (PADDING, UNKNOWN)
    length: int = 180


class PackedTask(ColdTask):
    """Packed sequences; inputs and targets [T <= length, B] with the mask of what the loss counts.

    Inputs are symbols, 0 the padding. Targets are symbols, too, or words that `output.names` names in their order.
    """

    metric = "nll_nats"

    def __init__(self, config: Packed) -> None:
        corpus = open_corpus(TextSource(config.corpus, config.normalization, encoding=config.encoding))
        parsed = cached("words", (), lambda: _tokenize(corpus), text=corpus.fingerprint)
        self.flat, self.starts, self.ids = (parsed.arrays[name] for name in ("flat", "starts", "ids"))
        settings = {"text": corpus.fingerprint, "length": config.length}
        packed = cached("packed", (), lambda: pack(self.starts, len(self.flat) - 1, config.length), **settings)
        self.firsts, self.sizes = packed.arrays["firsts"], packed.arrays["sizes"]
        # the legacy generator is the article's: with text8 this is its very split
        order = np.random.RandomState(SEED).permutation(len(self.firsts))
        rows = split_90_5_5(order, f"{corpus.name} fills {len(order)} sequences of {config.length} characters")
        whole = len(rows["train"]) >= config.batch_size  # the article counts whole batches only
        super().__init__(rows, config.batch_size, drop_last=whole)
        self.config, self.fingerprint = config, corpus.fingerprint
        self.vocabulary = Vocabulary((*config.special, *ALPHABET))
        self.input, self.output = Symbols(len(self.vocabulary), padded=True), Symbols(len(self.vocabulary))
        if isinstance(config, Autocomplete):
            known = parsed.facts["words"][: config.words]
            unused = (f"<unused {k}>" for k in range(len(known), config.words))  # by a text of fewer words
            self.output = Symbols(config.words + 2, names=("<eos>", "<unknown>", *known, *unused))

    def batch(self, rows: np.ndarray) -> Batch:
        firsts, sizes = self.firsts[rows], self.sizes[rows]
        steps = np.arange(sizes.max())[:, None]
        real = steps < sizes
        places = np.where(real, self.starts[firsts] + steps, 0)
        characters = np.where(real, self.flat[places], SPACE + 1)
        if isinstance(self.config, Autocomplete):
            words = self.ids[firsts + np.cumsum(characters == SPACE, axis=0) - 1].astype(np.int64) + 2
            targets = np.where(words < self.output.size, words, 1)
        else:
            targets = self.flat[places + 1].astype(np.int64) + len(self.config.special)
        inputs = np.where(real, characters.astype(np.int64) + len(self.config.special), 0)
        targets = np.where(real, targets, 0)
        return Batch(torch.from_numpy(inputs), torch.from_numpy(targets), torch.from_numpy(targets > 1))


def pack(starts: np.ndarray, end: int, length: int) -> Parsed:
    """`firsts` (words) and `sizes` of the sequences, greedily; starts: where words begin in a flat text up to `end`."""
    ends = np.append(starts[1:], end)
    beyond = np.searchsorted(ends, starts.astype(np.int64) + length, "right")
    following, chosen, word = beyond.tolist(), [], 0
    while word < len(starts):
        if following[word] > word:
            chosen.append(word)
        word = max(following[word], word + 1)
    firsts = np.array(chosen, np.int64)
    return Parsed({"firsts": firsts, "sizes": ends[beyond[firsts] - 1] - starts[firsts]}, {})


def _tokenize(corpus: Corpus) -> Parsed:
    """The text with one space before each word and after the last, where words start, and each word's rank."""
    if strange := sorted(set(corpus.vocabulary.symbols) - set(ALPHABET)):
        shown = " ".join(map(repr, strange[:10]))
        raise UsageError(f'{corpus.name} has {shown} besides a-z and space; read it with normalization="text8"')
    table = np.array([ALPHABET.index(symbol) for symbol in corpus.vocabulary.symbols], np.uint8)
    flat = np.concatenate([np.zeros(1, np.uint8), table[corpus.codes], np.zeros(1, np.uint8)])
    spaces = flat == SPACE
    flat = flat[~(spaces & np.append(spaces[1:], False))]  # of several spaces the last
    starts = np.flatnonzero(flat[:-1] == SPACE).astype(np.uint32)
    counts: Counter[bytes] = Counter()
    for words in _cut(flat, starts):
        counts.update(words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[:RANKED]
    rank = {word: place for place, word in enumerate(ranked)}
    ids = np.fromiter((rank.get(word, RANKED) for words in _cut(flat, starts) for word in words), np.uint16)
    facts = {"words": [word.decode("ascii") for word in ranked]}
    return Parsed({"flat": flat, "starts": starts, "ids": ids}, facts)


def _cut(flat: np.ndarray, starts: np.ndarray) -> Iterator[list[bytes]]:
    """The words of the flat text, many at a time."""
    for first in range(0, len(starts), PIECE):
        end = starts[first + PIECE] if first + PIECE < len(starts) else len(flat)
        yield LETTERS[flat[starts[first] : end]].tobytes().split()


@dataclass(frozen=True)
class Sequences:
    """The first `number` sequences of a split of a named corpus, as a task packs them; the split is random.

    >>> str(Sequences(Autocomplete("text8"), "test", 200))
    'text8 test sequences 0:200 of 200'
    """

    task: Autocomplete | TextGeneration
    split: Split
    number: int

    def __post_init__(self) -> None:
        check(self)
        if self.task.corpus not in NAMES:
            raise UsageError(f"sequences are of a named corpus ({', '.join(NAMES)}), not of {self.task.corpus!r}")

    def __str__(self) -> str:
        normal = "" if self.task.normalization == "none" else f", read as {self.task.normalization}"
        return f"{self.task.corpus} {self.split} sequences 0:{self.number} of {self.task.length}{normal}"

    def read(self) -> list[str]:
        """Read the texts, each after a space. UsageError: the split has fewer."""
        task = self.task.load()
        rows = task.rows[self.split]
        if not 1 <= self.number <= len(rows):
            raise UsageError(f"the {self.split} split has 1 to {len(rows)} sequences, not {self.number}")
        rows = rows[: self.number]
        places = zip(task.starts[task.firsts[rows]], task.sizes[rows], strict=True)
        return [LETTERS[task.flat[start : start + size]].tobytes().decode() for start, size in places]
