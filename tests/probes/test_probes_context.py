"""Accuracy by characters known, counted by hand; and what is known of one word."""

import pandas as pd
import pytest
import torch
from torch import nn

from nlstm_lab.cells import RNN
from nlstm_lab.datasets.base import Vocabulary
from nlstm_lab.models import Network
from nlstm_lab.probes import context_accuracy, repetition

ALPHABET = Vocabulary(("\0", *" abcdef"))
WORDS = ("<eos>", "<unknown>", "ab", "ad", "fade", "a")


def network(likeliest):
    """One that ranks the words of a table by the last letter that was read."""
    unit, readout = RNN(len(ALPHABET), len(ALPHABET)), nn.Linear(len(ALPHABET), len(WORDS), bias=False)
    with torch.no_grad():
        for parameter in (*unit.parameters(), readout.weight):
            parameter.zero_()
        next(p for p in unit.parameters() if p.dim() == 2).copy_(torch.eye(len(ALPHABET)))
        for symbol, words in likeliest.items():
            for place, word in enumerate(words):  # what it reads is the one-hot symbol, squashed
                readout.weight[WORDS.index(word), ALPHABET.symbols.index(symbol)] = 9.0 - place
    return Network(unit, readout, vocabulary=ALPHABET, words=WORDS)


TABLE = {
    " ": ["ab", "ad", "fade"],
    "a": ["ad", "ab", "a"],
    "b": ["ab", "a", "ad"],
    "f": ["fade", "a", "ab"],
    "d": ["ab", "a", "fade"],
}
TEXTS = [" ab ad fade", " ab bee a"]  # "bee" is no word of the network's


def accuracy(top, known):
    return context_accuracy(network(TABLE), TEXTS).query("top == @top and known == @known").squeeze()


def test_accuracy_is_counted_by_characters_known():
    at_space = accuracy(1, 0)  # the words are ab, ad, fade; ab, (bee), a: "ab" is right twice of five, or six
    assert (at_space.counted, at_space["all"]) == (5, 6)
    assert at_space.accuracy_pct == pytest.approx(100 * 2 / 5)
    assert at_space.accuracy_unmasked_pct == pytest.approx(100 * 2 / 6)
    assert accuracy(2, 0).accuracy_pct == pytest.approx(100 * 3 / 5)
    assert accuracy(3, 0).accuracy_pct == pytest.approx(100 * 4 / 5)
    # the first letters are a, a, f; a, (b), a: "ad" is second guess of none, "fade" comes first after f
    assert accuracy(1, 1).accuracy_pct == pytest.approx(100 * 2 / 5)
    assert accuracy(2, 1).accuracy_pct == pytest.approx(100 * 4 / 5)
    assert accuracy(3, 1).accuracy_pct == pytest.approx(100)
    assert accuracy(3, 4)["all"] == 1
    assert context_accuracy(network(TABLE), [" ab", " abcdef"])["known"].max() == 2  # of no other word anything counts


def test_it_does_not_hang_on_what_is_read_beside():
    """Padding to the longest text, and batches, change nothing."""
    many = context_accuracy(network(TABLE), TEXTS * 40)
    few = context_accuracy(network(TABLE), TEXTS)
    pd.testing.assert_frame_equal(many.drop(columns=["counted", "all"]), few.drop(columns=["counted", "all"]))


def test_a_word_that_comes_twice_is_looked_at_twice():
    """Here after f "fade" is suggested each time, and "bead" never; "bee" is too short, "abed" comes once."""
    words = (*WORDS, "bead", "abed")
    model = network(TABLE)
    model.words, weight = words, nn.functional.pad(model.readout.weight, (0, 0, 0, 2), value=-1.0)
    model.readout.weight = nn.Parameter(weight)
    frame = repetition(model, [" fade bead abed fade bead fade", " fade bead", " bee bee"])
    assert frame.to_numpy().tolist() == [[0, "fade", 0, 0], [0, "bead", 5, 5]]


def test_a_word_without_a_space_before_it_is_known_whole_at_its_end():
    frame = context_accuracy(network({"e": ["fade"]}), ["fade"])
    assert frame.loc[frame["top"] == 1, ["known", "accuracy_pct"]].values.tolist() == [[1, 0], [2, 0], [3, 0], [4, 100]]
