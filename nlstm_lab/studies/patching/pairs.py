"""Minimal pairs: two texts that differ in a word and end alike, and how each goes on."""

from typing import NamedTuple

NOUNS = """
company bank market stock price year government trader analyst investor bond fund share rate firm plan official issue
president maker
"""
BETWEEN = ("", " in japan", " of the group", " on the market", " at the new york exchange")
VERBS = """
buy:bank sell:state make:market give:government pay:price raise:rate take:trade help:house find:fund keep:key
"""
SUBJECTS = ("he expects ", "they want ", "the company plans ", "it agreed with ")
ADVERBS = (" ", " also ", " now really ")
NAMES = """
john:josh smith:small david:daniel miller:mitchell peters:perry morgan:morris robert:roger stevens:stewart
carter:carlson harris:harvey
"""
SAID = (" said ", " said that ", " said the company is his and that ")


class Pair(NamedTuple):
    """A clean and a corrupted text, and the symbols with which the clean and the corrupted one go on."""

    family: str
    clean: str
    corrupted: str
    right: str
    wrong: str


def minimal_pairs() -> list[Pair]:
    """Return the generated pairs of all families.

    - number: the verb of a singular or plural noun, some words later ("w": was or were; "ha": has or have);
    - class: a verb or a noun after "to" or "a", as far as they begin alike;
    - repetition: a name that was read before, as far as two names begin alike.
    """
    return [*_number(), *_class(), *_repetition()]


def _number() -> list[Pair]:
    found = []
    for noun in NOUNS.split():
        plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
        for between in BETWEEN:
            for start in ("the ", "some of what the "):
                one, many = (f"{start}{each}{between}" for each in (noun, plural))
                found.append(Pair("number", f"{one} w", f"{many} w", "a", "e"))
                found.append(Pair("number", f"{many} ha", f"{one} ha", "v", "s"))
    return found


def _class() -> list[Pair]:
    found = []
    for pair in VERBS.split():
        verb, noun = pair.split(":")
        same, right, wrong = _parted(verb, noun)
        for subject in SUBJECTS:
            for adverb in ADVERBS:
                clean, corrupted = (f"{subject}{word}{adverb}{same}" for word in ("to", "a"))
                found.append(Pair("class", clean, corrupted, right, wrong))
    return found


def _repetition() -> list[Pair]:
    found = []
    for pair in NAMES.split():
        one, other = pair.split(":")
        for first, second in ((one, other), (other, one)):
            same, right, wrong = _parted(first, second)
            for said in SAID:
                clean, corrupted = (f"mr. {name}{said}mr. {same}" for name in (first, second))
                found.append(Pair("repetition", clean, corrupted, right, wrong))
    return found


def _parted(one: str, other: str) -> tuple[str, str, str]:
    """What two words begin with alike, and how each goes on."""
    k = next(k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return one[:k], one[k], other[k]
