"""A text as symbols: named corpora and a reader's own file, encoded once and memory-mapped from then on.

The vocabulary of a named corpus are all its symbols (published parameter counts demand that); of a reader's own text
those of the training split, and U+FFFD for whatever valid and test have besides.
"""

import hashlib
import re
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_letters
from typing import Any, Literal

import numpy as np

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.base import SPLITS, Split, Vocabulary
from nlstm_lab.datasets.files import Parsed, cached, decode, read
from nlstm_lab.errors import MissingData, UsageError
from nlstm_lab.settings import ADDED, check, held

Normalization = Literal["none", "text8"]
LineEnds = Literal["stripped", "trailing", "leading"]
Shares = tuple[int, int, int]

NAMED = ("ptb", "text8", "enwik8", "enwiki2015_text8like", "enwiki2015_plain")
UNSEEN = "\N{REPLACEMENT CHARACTER}"
DIGITS = (b"zero", b"one", b"two", b"three", b"four", b"five", b"six", b"seven", b"eight", b"nine")
PIECE = 1 << 22  # characters that are encoded at a time
CODE_POINTS = 0x110000
BEGINNING = 1 << 20  # bytes of a reader's own text that a run at smoke scale reads

_only_beginning: ContextVar[bool] = ContextVar("only_beginning", default=False)


def only_beginning(wanted: bool = True) -> AbstractContextManager[None]:
    """Of a reader's own text its first BEGINNING bytes alone are read while the block runs, and a warning says so."""
    return held(_only_beginning, wanted)


@dataclass(frozen=True)
class TextSource:
    """Which text, and how it is read.

    All but the first argument are for texts that do not come split and encoded already.

    Args:
        corpus: A name (see `names`), or the path of a text file, which may be plain, .gz, .xz or .zip.
        normalization: "none", or "text8" for the cleaning of `text8_rules`.
        share: Of train, valid and test in percent, contiguous.
        encoding: Of the file.
        line_ends: Of the Penn Treebank, whose files have a blank before and after the words of each line: both
            "stripped", or the one kept that is "trailing" or "leading".
    """

    corpus: str
    normalization: Normalization = "none"
    share: Shares = (90, 5, 5)
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
    ends: tuple[int, int, int]
    vocabulary: Vocabulary
    fingerprint: str  # sha256 of the text that was encoded

    @property
    def splits(self) -> dict[Split, np.ndarray]:
        return dict(zip(SPLITS, np.split(self.codes, self.ends[:2]), strict=True))


def names() -> tuple[str, ...]:
    """The corpora that have a name."""
    return (*NAMED, "python_docs")


def open_corpus(source: TextSource) -> Corpus:
    """Open a corpus, which the first opening encodes. MissingData: it is not here. UsageError: it is not as stated."""
    if len(source.share) != 3 or sum(source.share) != 100 or min(source.share) < 1:
        raise UsageError(f"the shares of train, valid and test are whole percents that add to 100: {source.share}")
    name, own = source.corpus, source.corpus not in names()
    files, texts = _own(source) if own else _topics() if name == "python_docs" else _named(source)
    settings: dict[str, Any] = {name: getattr(source, name) for name in ("normalization", "share", "encoding")}
    if source.line_ends != "stripped":  # or entries of before would be made anew
        settings["line_ends"] = source.line_ends
    if own and _only_beginning.get() and len(read(files[0], length=BEGINNING + 1)) > BEGINNING:
        warnings.warn(f"smoke scale reads the first {BEGINNING:,} bytes of {source.corpus} alone", stacklevel=4)
        settings["beginning"] = BEGINNING
    parsed = cached("corpus", files, lambda: _encode(texts(), source, own), corpus="" if own else name, **settings)
    facts, codes = parsed.facts, parsed.arrays["codes"]
    train, valid, test = facts["ends"]
    vocabulary = Vocabulary(tuple(facts["symbols"]))
    return Corpus(Path(name).name, codes, (train, valid, test), vocabulary, facts["sha256"])


Texts = tuple[tuple[Path, ...], Callable[[], list[str]]]  # where a corpus lies, and what reads its text, or its splits


def _named(source: TextSource) -> Texts:
    """Symbols are bytes, shown as Unicode's first 256 characters; of the Penn Treebank the three word files."""
    ends = source.line_ends
    before, after = " " * (ends == "leading"), " " * (ends == "trailing")

    def texts() -> list[str]:
        files = [data.decode("latin-1") for data in registry.contents(source.corpus)]
        if source.corpus != "ptb":
            return files
        return ["".join(f"{before}{line.strip()}{after}\n" for line in split.splitlines()) for split in files]

    return registry.locate(source.corpus), texts


def _own(source: TextSource) -> Texts:
    path = Path(source.corpus).expanduser()
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, PermissionError) else f"there is no {str(path.absolute())!r}"
        raise UsageError(f"{source.corpus!r} is no corpus ({', '.join(names())}) and no text file: {what}") from error
    if not stat.S_ISREG(kind) or not source.corpus:
        what = f"a folder: name a text file in it, or a corpus ({', '.join(names())})"
        raise UsageError(f"{path} is {what if path.is_dir() else 'no regular file'}")
    return (path,), lambda: [decode(path, source.encoding, BEGINNING if _only_beginning.get() else None)]


def _topics() -> Texts:
    """The language reference that CPython carries for its help(): English prose, with examples of code."""
    try:
        from pydoc_data import topics
    except ImportError as error:  # some distributions take it out of their Python
        raise MissingData("this Python comes without its documentation (pydoc_data); name a text file") from error
    return (Path(topics.__file__),), lambda: ["\n".join(text for _, text in sorted(topics.topics.items()))]


def text8_rules(text: str) -> str:
    """Mahoney's cleaning of characters: a-z in lower case, digits spelled, everything else one space.

    >>> text8_rules("Route 66 -- a café!")
    'route six six a caf '
    """
    data = text.encode("utf-8", "surrogatepass").lower()
    for digit, word in enumerate(DIGITS):
        data = data.replace(str(digit).encode(), b" " + word + b" ")
    return re.sub(rb"[^a-z]+", b" ", data).decode("ascii")


def _encode(texts: list[str], source: TextSource, own: bool) -> Parsed:
    if len(texts) > 1 and (source.share != TextSource.share or source.normalization != "none"):
        raise UsageError(f"{source.corpus} comes split and cleaned: share and normalization are for other texts")
    if source.normalization == "text8":
        counts = _counts(texts[0])
        letters = sum(int(counts[point]) for point in np.flatnonzero(counts) if chr(point).isalpha())
        kept = int(counts[[*ascii_letters.encode()]].sum())
        if 2 * kept < letters:
            raise UsageError(
                f'normalization="text8" keeps a to z alone, which are {kept / letters:.0%} of the letters of '
                f'{source.corpus}: read it with normalization="none"'
            )
        texts = [text8_rules(texts[0])]
    if not all(texts):
        raise UsageError(f"{source.corpus} holds no text")
    text = "".join(texts)
    if len(texts) == 1:
        first, second, _ = source.share
        ends = [len(text) * first // 100, len(text) * (first + second) // 100, len(text)]
    else:
        ends = np.cumsum([len(one) for one in texts]).tolist()
    known = _counts(text[: ends[0]]) if own else _counts(text)
    if (_counts(text[ends[0] :])[known == 0] > 0).any():
        known[ord(UNSEEN)] += 1
    symbols = np.flatnonzero(known)
    table = np.full(CODE_POINTS, np.searchsorted(symbols, ord(UNSEEN)), np.uint32)
    table[symbols] = np.arange(len(symbols))
    codes = np.empty(len(text), np.min_scalar_type(len(symbols) - 1))
    digest, encoding = hashlib.sha256(), "latin-1" if source.corpus in NAMED else "utf-8"
    for start, points in _pieces(text):
        codes[start : start + len(points)] = table[points]
        digest.update(text[start : start + PIECE].encode(encoding, "surrogatepass"))
    facts = {"symbols": [chr(symbol) for symbol in symbols], "ends": ends}
    return Parsed({"codes": codes}, {**facts, "sha256": digest.hexdigest()})


def _pieces(text: str) -> Iterator[tuple[int, np.ndarray]]:
    """Code points of the text, PIECE at a time, each piece with its place."""
    for start in range(0, len(text), PIECE):
        yield start, np.frombuffer(text[start : start + PIECE].encode("utf-32-le", "surrogatepass"), np.uint32)


def _counts(text: str) -> np.ndarray:
    """How often each code point occurs."""
    counts = np.zeros(CODE_POINTS, np.int64)
    for _, points in _pieces(text):
        counts += np.bincount(points, minlength=CODE_POINTS)
    return counts
