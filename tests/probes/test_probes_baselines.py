"""Baselines keep what they must keep, and lose what they must lose."""

import re

import pytest
import torch

from nlstm_lab.errors import UsageError
from nlstm_lab.probes.seeds import shuffled, untrained

TEXT = "the cat  sat on\nthe mat, and the dog did not"


def test_shuffling_keeps_the_characters_or_the_words():
    by_words, by_characters = shuffled(TEXT, "words"), shuffled(TEXT, "characters")
    assert sorted(by_words.split()) == sorted(TEXT.split())
    assert by_words.split() != TEXT.split()
    assert sorted(by_characters) == sorted(by_words) == sorted(TEXT)
    assert sorted(by_characters.split()) != sorted(TEXT.split())
    assert shuffled(TEXT, "words", 1) != by_words == shuffled(TEXT, "words")
    with pytest.raises(UsageError, match="'words'"):
        shuffled(TEXT, "sentences")


def test_an_untrained_copy_is_drawn_anew_and_reproducibly(network):
    model = network(scale=5.0, embedded=True)
    fresh = untrained(model, seed=3)
    for (name, trained), new in zip(model.named_parameters(), fresh.parameters(), strict=True):
        assert trained.shape == new.shape
        assert not torch.equal(trained, new), name
    torch.testing.assert_close(untrained(model, seed=3).state_dict(), fresh.state_dict(), rtol=0, atol=0)
    assert fresh.recurrent.layers[0].weight_ih.abs().max() < 1  # the unit's own initialization, not five times that


@pytest.mark.parametrize("seed", range(5))
def test_white_space_at_the_ends_stays_there(seed):
    assert re.fullmatch(r"  \w+ \w+\n\w+ ", shuffled("  one two\nthree ", "words", seed))
