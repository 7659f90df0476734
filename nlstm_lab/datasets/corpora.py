"""A text as symbols: named corpora and a reader's own file, encoded once and memory-mapped from then on."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nlstm_lab.datasets import content, registry
from nlstm_lab.datasets.base import Split, Vocabulary
from nlstm_lab.datasets.cache import Parsed, cached

SPLITS: tuple[Split, ...] = ("train", "valid", "test")


@dataclass(frozen=True)
class Corpus:
    """Three splits of codes ([symbols] uint8 or uint16, memory-mapped) and what they mean."""

    name: str
    splits: Mapping[Split, np.ndarray]
    vocabulary: Vocabulary
    fingerprint: str  # sha256 of the content, split after split


def open_corpus(name: str) -> Corpus:
    """The corpus of that name, encoded on the first opening."""
    files = registry.get(name).locate()
    parsed = cached(name, files, lambda: _ptb(files))
    splits = {split: parsed.arrays[split] for split in SPLITS}
    return Corpus(name, splits, Vocabulary(tuple(parsed.facts["symbols"])), parsed.facts["sha256"])


def _ptb(files: tuple[Path, ...]) -> Parsed:
    """The char files hold one symbol between spaces, `_` for the space, and a newline at the end of a sentence.

    An unknown word stays what it is there: the five characters `<unk>`.
    """
    texts = [content.read(file).replace(b" ", b"").replace(b"_", b" ").decode("ascii") for file in files]
    return encode(dict(zip(SPLITS, texts, strict=True)))


def encode(texts: Mapping[Split, str]) -> Parsed:
    """Codes of all splits over the sorted union of their symbols."""
    points = {split: np.frombuffer(text.encode("utf-32-le"), np.uint32) for split, text in texts.items()}
    symbols = np.flatnonzero(sum(np.bincount(array, minlength=0x110000) for array in points.values()))
    table = np.zeros(0x110000, np.min_scalar_type(max(len(symbols) - 1, 0)))
    table[symbols] = np.arange(len(symbols))
    digest = hashlib.sha256("".join(texts.values()).encode()).hexdigest()
    facts = {"symbols": [chr(symbol) for symbol in symbols], "sha256": digest}
    return Parsed({split: table[array] for split, array in points.items()}, facts)
