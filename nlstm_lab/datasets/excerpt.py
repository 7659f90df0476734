"""Pieces of a named corpus, known by their place, so that records of them serve where the corpus is absent."""

from dataclasses import dataclass

from torch import Tensor

from nlstm_lab.datasets.base import Split
from nlstm_lab.datasets.corpora import LineEnds, TextSource, names, open_corpus
from nlstm_lab.datasets.handwriting import Handwriting, HandwritingTask
from nlstm_lab.datasets.synthetic import NestedLanguage
from nlstm_lab.datasets.words import Autocomplete, TextGeneration
from nlstm_lab.errors import UsageError


@dataclass(frozen=True)
class Excerpt:
    """`length` symbols of a split of a named corpus, from `start` on, in order.

    Args:
        line_ends: Of the Penn Treebank, see `TextSource`: as the network was trained.

    Raises:
        UsageError: The corpus has no name, or `line_ends` is given for another.

    >>> str(Excerpt("ptb", "valid", 50_000))
    'ptb valid 0:50000'
    """

    corpus: str
    split: Split
    length: int
    start: int = 0
    line_ends: LineEnds = "stripped"

    def __post_init__(self) -> None:
        if self.corpus not in names():
            raise UsageError(f"an excerpt is of a named corpus ({', '.join(names())}), not of {self.corpus!r}")
        TextSource(self.corpus, line_ends=self.line_ends)

    def __str__(self) -> str:
        blanks = "" if self.line_ends == "stripped" else f", line ends {self.line_ends}"
        return f"{self.corpus} {self.split} {self.start}:{self.start + self.length}{blanks}"

    def read(self) -> str:
        """Read the text.

        Raises:
            MissingData: The corpus is not on this machine.
            UsageError: The split is shorter.
        """
        corpus = open_corpus(TextSource(self.corpus, line_ends=self.line_ends))
        codes = corpus.splits[self.split][self.start : self.start + self.length]
        if len(codes) < self.length:
            raise UsageError(
                f"the {self.split} split of {self.corpus} has no symbols {self.start}:{self.start + self.length}"
            )
        return corpus.vocabulary.decode(codes)


@dataclass(frozen=True)
class KnownText:
    """The first `length` symbols of a split of a language whose words and phrases are known.

    Args:
        language: The config of the language.

    >>> str(KnownText(NestedLanguage(), "valid", 9_500))
    'nested language (200000 symbols, 64 words, 8 topics, seed 0) valid 0:9500'
    """

    language: NestedLanguage
    split: Split
    length: int

    def __str__(self) -> str:
        one = self.language
        made = f"{one.size} symbols, {one.words} words, {one.topics} topics, seed {one.seed}"
        return f"nested language ({made}) {self.split} 0:{self.length}"

    def read(self) -> str:
        """Read the text."""
        corpus = self.language.load().corpus
        return corpus.vocabulary.decode(corpus.splits[self.split][: self.length])


@dataclass(frozen=True)
class Lines:
    """`count` lines of handwriting of a split (of at least 300 points, as `Handwriting` draws it), from `start` on.

    >>> str(Lines("valid", 20))
    'iamondb valid 0:20'
    """

    split: Split
    count: int
    start: int = 0

    def __str__(self) -> str:
        return f"iamondb {self.split} {self.start}:{self.start + self.count}"

    def read(self) -> list[Tensor]:
        """Read the lines.

        Returns:
            The points [T, 3] of each, as a network reads them.

        Raises:
            MissingData: IAM-OnDB is not on this machine.
            UsageError: The split has fewer lines.
        """
        task = HandwritingTask(Handwriting())
        if self.start + self.count > len(task.lines[self.split]):
            raise UsageError(f"the {self.split} split of IAM-OnDB has no lines {self.start}:{self.start + self.count}")
        return [task.line(self.split, k) for k in range(self.start, self.start + self.count)]


@dataclass(frozen=True)
class Sequences:
    """The first `number` sequences of a split, as a task of Madsen's article packs them; the split is random.

    Raises:
        UsageError: The task's corpus has no name.

    >>> str(Sequences(Autocomplete("text8"), "test", 200))
    'text8 test sequences 0:200 of 200'
    """

    task: Autocomplete | TextGeneration
    split: Split
    number: int

    def __post_init__(self) -> None:
        if self.task.corpus not in names():
            raise UsageError(f"sequences are of a named corpus ({', '.join(names())}), not of {self.task.corpus!r}")

    def __str__(self) -> str:
        normal = "" if self.task.normalization == "none" else f", read as {self.task.normalization}"
        return f"{self.task.corpus} {self.split} sequences 0:{self.number} of {self.task.length}{normal}"

    def read(self) -> list[str]:
        """Read the texts, each after a space.

        Raises:
            MissingData: The corpus is not on this machine.
            UsageError: The split has fewer sequences, or the text is not of a-z and single spaces.
        """
        return self.task.load().texts(self.split, self.number)
