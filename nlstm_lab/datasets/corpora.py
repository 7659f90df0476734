"""A text as symbols: named corpora and a reader's own file, encoded once and memory-mapped from then on.

The vocabulary of a named corpus are all its symbols (published parameter counts demand that); of a reader's own text
those of the training split, and U+FFFD for whatever valid and test have besides.
"""

import hashlib
import os
import re
import sys
import warnings
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_letters
from typing import Any, Literal

import numpy as np

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.base import Split, Vocabulary, in_splits
from nlstm_lab.datasets.files import Parsed, cached, decode, read
from nlstm_lab.errors import MissingData, UsageError
from nlstm_lab.settings import ADDED, check

Normalization = Literal["none", "text8"]
LineEnds = Literal["stripped", "trailing", "leading"]
PUBLISHED = ("ptb", "text8", "enwik8", "enwiki2015_text8like", "enwiki2015_plain")
NAMES = (*PUBLISHED, "python_docs")
UNSEEN = "\N{REPLACEMENT CHARACTER}"
DIGITS = (b"zero", b"one", b"two", b"three", b"four", b"five", b"six", b"seven", b"eight", b"nine")
PIECE = 1 << 22  # characters that are encoded at a time
BEGINNING = 1 << 20  # bytes of a reader's own text that a run at smoke scale reads

# whether of a reader's own text its first BEGINNING bytes alone are read, of which a warning says so
only_beginning: ContextVar[bool] = ContextVar("only_beginning", default=False)


@dataclass(frozen=True)
class TextSource:
    """Which text, and how it is read.

    Args:
        corpus: A name (see `NAMES`), or the path of a text file, which may be plain, .gz, .xz or .zip.
        normalization: "none", or "text8" for the cleaning of `text8_rules`.
        share: Of train, valid and test in percent, contiguous.
        encoding: Of the file.
        line_ends: Of the Penn Treebank, whose files have a blank before and after the words of each line: both
            "stripped", or the one kept that is "trailing" or "leading".
    """

    corpus: str
    normalization: Normalization = "none"
    share: tuple[int, int, int] = (90, 5, 5)
    encoding: str = "utf-8"
    line_ends: LineEnds = field(default="stripped", metadata=ADDED)

    def __post_init__(self) -> None:
        check(self)
        if self.line_ends != "stripped" and self.corpus != "ptb":
            raise UsageError(f"line_ends={self.line_ends} is for the corpus 'ptb' alone, not for {self.corpus!r}")


@dataclass(frozen=True)
class Corpus:
    """The codes of a text ([symbols] uint8, uint16 or uint32, memory-mapped), where its splits end, what they mean."""

    name: str
    codes: np.ndarray = field(repr=False)
    ends: tuple[int, ...]  # of train, valid and test
    vocabulary: Vocabulary
    fingerprint: str  # sha256 of the text that was encoded

    @property
    def splits(self) -> dict[Split, np.ndarray]:
        return in_splits(self.codes, self.ends)


def open_corpus(source: TextSource) -> Corpus:
    """Open a corpus, which the first opening encodes. MissingData: it is not here. UsageError: it is not as stated."""
    if len(source.share) != 3 or sum(source.share) != 100:
        raise UsageError(f"the shares of train, valid and test are whole percents that add to 100: {source.share}")
    name, own = source.corpus, source.corpus not in NAMES
    files = registry.locate(name) if name in PUBLISHED else (_own(name) if own else Path(_topics().__file__),)
    settings: dict[str, Any] = {key: getattr(source, key) for key in ("normalization", "share", "encoding")}
    if source.line_ends != "stripped":  # or entries of before would be made anew
        settings["line_ends"] = source.line_ends
    beginning = BEGINNING if own and only_beginning.get() else None
    if beginning and len(read(files[0], length=beginning + 1)) > beginning:
        warnings.warn(f"smoke scale reads the first {beginning:,} bytes of {name} alone", stacklevel=4)
        settings["beginning"] = beginning
    settings["corpus"] = "" if own else name
    parsed = cached("corpus", files, lambda: _encode(source, files[0], beginning), **settings)
    facts = parsed.facts
    vocabulary = Vocabulary(tuple(facts["symbols"]))
    return Corpus(Path(name).name, parsed.arrays["codes"], tuple(facts["ends"]), vocabulary, facts["sha256"])


def _own(name: str) -> Path:
    path = Path(os.path.expanduser(name))  # which leaves alone what it cannot expand
    if os.path.isfile(path):
        return path
    what = "a folder" if os.path.isdir(path) else "no regular file" if os.path.exists(path) else "not to be found"
    raise UsageError(f"{name!r} is no corpus ({', '.join(NAMES)}) and no text file: {path.absolute()} is {what}")


def _topics() -> Any:
    """The language reference that CPython carries for its help(): English prose, with examples of code."""
    try:
        from pydoc_data import topics
    except ImportError as error:  # some distributions take it out of their Python
        raise MissingData("this Python comes without its documentation (pydoc_data); name a text file") from error
    return topics


def _texts(source: TextSource, file: Path, beginning: int | None) -> list[str]:
    """The text, or each split where it comes split; published ones are bytes, as Unicode's first 256 symbols."""
    if source.corpus == "python_docs":
        return ["\n".join(text for _, text in sorted(_topics().topics.items()))]
    if source.corpus not in PUBLISHED:
        return [decode(file, source.encoding, beginning)]
    texts = [data.decode("latin-1") for data in registry.contents(source.corpus)]
    if source.corpus != "ptb":
        return texts
    before, after = " " * (source.line_ends == "leading"), " " * (source.line_ends == "trailing")
    return ["".join(f"{before}{line.strip()}{after}\n" for line in text.splitlines()) for text in texts]


def text8_rules(text: str) -> str:
    """Mahoney's cleaning of characters: a-z in lower case, digits spelled, everything else one space.

    >>> text8_rules("Route 66 -- a café!")
    'route six six a caf '
    """
    data = text.encode("utf-8", "surrogatepass").lower()
    for digit, word in enumerate(DIGITS):
        data = data.replace(str(digit).encode(), b" " + word + b" ")
    return re.sub(rb"[^a-z]+", b" ", data).decode("ascii")


def _encode(source: TextSource, file: Path, beginning: int | None) -> Parsed:
    texts, named = _texts(source, file, beginning), source.corpus in PUBLISHED
    if len(texts) > 1 and (source.share != TextSource.share or source.normalization != "none"):
        raise UsageError(f"{source.corpus} comes split and cleaned: share and normalization are for other texts")
    if source.normalization == "text8":
        counts = Counter(texts[0])
        letters = sum(count for symbol, count in counts.items() if symbol.isalpha())
        kept = sum(counts[letter] for letter in ascii_letters)
        if 2 * kept < letters:
            raise UsageError(
                f'normalization="text8" keeps a to z alone, which are {kept / letters:.0%} of the letters of '
                f'{source.corpus}: read it with normalization="none"'
            )
        texts = [text8_rules(texts[0])]
    if not all(texts):
        raise UsageError(f"{source.corpus} holds no text")
    text = "".join(texts)
    ends = np.cumsum([len(one) for one in texts] if len(texts) > 1 else source.share).tolist()
    if len(texts) == 1:
        ends = [len(text) * percent // 100 for percent in ends]
    known = set(text[: None if source.corpus in NAMES else ends[0]])
    unseen = {UNSEEN} if set(text[ends[0] :]) - known else set()
    symbols = sorted(known | unseen)
    table = np.full(sys.maxunicode + 1, symbols.index(UNSEEN) if unseen else 0, np.uint32)
    table[[ord(symbol) for symbol in symbols]] = np.arange(len(symbols))
    codes, digest = np.empty(len(text), np.min_scalar_type(len(symbols) - 1)), hashlib.sha256()
    for start in range(0, len(text), PIECE):
        piece = text[start : start + PIECE]
        codes[start : start + PIECE] = table[np.frombuffer(piece.encode("utf-32-le", "surrogatepass"), np.uint32)]
        digest.update(piece.encode("latin-1" if named else "utf-8", "surrogatepass"))
    return Parsed({"codes": codes}, {"symbols": symbols, "ends": ends, "sha256": digest.hexdigest()})
