"""A text as a network reads it: characters that it does not know, the words of every position, windows."""

import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from importlib import resources
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nlstm_lab.datasets.base import Vocabulary
from nlstm_lab.errors import UsageError
from nlstm_lab.models import Network

Unknown = Literal["refuse", "map"]
MANY = 100  # names, of more of which a message lists none
LONGEST = 200  # characters of the article's sequences, the longest that its networks were trained on


class Words(NamedTuple):
    """For each of T positions: the word it belongs to, where that starts, how many of its characters are known."""

    word: list[str]  # a space belongs to the word after it; "" where none follows
    start: NDArray[np.int_]  # the space before the word, or its first character
    known: NDArray[np.int_]  # 0 at the space


def vocabulary_of(model: Network) -> Vocabulary:
    """The symbols that `model` reads; a UsageError where it does not predict something at every character."""
    name = model.name or "this network"
    if model.vocabulary is None or model.density is not None:
        raise UsageError(f"{name} reads no text: a network with a vocabulary and a softmax is needed")
    if model.per_sequence:
        raise UsageError(f"{name} is not autoregressive: it predicts once a sequence, not at every character")
    return model.vocabulary


def outputs_of(model: Network, size: int) -> Sequence[str]:
    """The names of the `size` things that `model` predicts: its words, or the characters that it reads."""
    names = vocabulary_of(model).symbols if model.words is None else model.words
    if len(names) != size:
        way = "hand `words`, their names in the order of their codes, to lab.models.wrap"
        raise UsageError(f"{model.name or 'this network'} predicts {size} things, not {len(names)}: {way}")
    return names


def encode_leniently(vocabulary: Vocabulary, text: str, unknown: Unknown = "refuse") -> tuple[Tensor, str]:
    """Codes [T] of `text`, and the text that is read: characters outside the vocabulary are refused, or mapped to their
    lower case, their base letter or, as text8's rules do, a space."""
    if unknown not in get_args(Unknown):
        raise UsageError(f"unknown must be one of {', '.join(map(repr, get_args(Unknown)))}, not {unknown!r}")
    if not isinstance(text, str) or not text:
        said = "is empty: a probe needs at least one character" if text == "" else f"must be a string, not {text!r}"
        raise UsageError(f"the text {said[:80]}")
    read = composed(text, unknown)
    if unknown == "map":
        read = "".join(_nearest(character, vocabulary) for character in read)
    return vocabulary.encode(read), read


def mapped(model: Network, text: str) -> str:
    """Return a text as a network reads it at best: a character that it does not know as its nearest, or a space.

    Raises:
        UsageError: The text is empty, or has a character that is near to none.
    """
    return encode_leniently(vocabulary_of(model), text, "map")[1]


@cache
def free_text() -> str:
    """Return 30,000 characters of the English Wikipedia, letters and spaces alone, which every network of text reads.

    CC BY-SA 3.0: `datasets/free_text.md` says what it is of.
    """
    return resources.files("nlstm_lab.datasets").joinpath("free_text.txt").read_text(encoding="utf-8")


def composed(text: str, unknown: Unknown) -> str:
    """The text; where characters are mapped, in NFC: otherwise a combining mark would be a space, and split a word."""
    return unicodedata.normalize("NFC", text) if unknown == "map" else text


def _nearest(character: str, vocabulary: Vocabulary) -> str:
    base = unicodedata.normalize("NFKD", character)[0]
    for candidate in (character, character.lower(), base, base.lower(), " "):
        if candidate in vocabulary.symbols:
            return candidate
    return character  # `Vocabulary.encode` refuses it, and says what there is


def code_of(model: Network, target: Any, size: int, name: str = "target") -> int:
    """The code of a symbol or word among the `size` things that `model` predicts, by its name or as it is."""
    if isinstance(target, Integral) and not isinstance(target, bool):
        code = int(target)
        if not 0 <= code < size:
            raise UsageError(f"{name} must be a code from 0 to {size - 1}, not {code}")
        return code
    symbols = model.vocabulary.symbols if model.vocabulary is not None and not model.per_sequence else None
    names = symbols if model.words is None else model.words
    if names is None or len(names) != size:
        raise UsageError(f"{name} must be a code from 0 to {size - 1}: what is predicted has no names, not {target!r}")
    if not isinstance(target, str) or target not in names:
        near = get_close_matches(str(target), names, 3)
        listed = "one of " + " ".join(map(repr, names)) if size <= MANY else f"one of the {size} words it predicts"
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise UsageError(f"{name} must be {listed}, or its code, not {target!r}{hint}")
    return names.index(target)


def unit_input(model: Network, codes: Tensor) -> tuple[Tensor, ...]:
    """What the unit is called with, [T, features] each: embedded or one-hot symbols, and boundaries that are given."""
    codes = codes.to(model.device)
    return model.vectors(codes).detach(), *model.recurrent_arguments(codes)[1:]


def words_of(text: str) -> Words:
    """The word of every position, as the article's targets have it."""
    cuts = dict.fromkeys([0, *(t for t, character in enumerate(text) if character.isspace()), len(text)])
    names: list[str] = []
    start: list[int] = []
    known: list[int] = []
    for first, end in pairwise(cuts):
        word = text[first:end].strip()
        length, before = end - first, end - first - len(word)
        names += [word] * length
        start += [first] * length
        known += [max(t + 1 - before, 0) for t in range(length)]
    return Words(names, np.array(start), np.array(known))


def windows(text: str, longest: int) -> list[tuple[int, int]]:
    """Consecutive pieces (start, stop) of at most `longest` characters, cut before a space where there is one."""
    if longest < 1:
        raise UsageError(f"a window has at least one character, not {longest}")
    cuts = [0]
    while len(text) - cuts[-1] > longest:
        space = text.rfind(" ", cuts[-1] + 1, cuts[-1] + longest + 1)
        cuts.append(space if space > 0 else cuts[-1] + longest)
    return list(pairwise([*cuts, len(text)]))
