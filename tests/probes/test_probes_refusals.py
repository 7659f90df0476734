"""What cannot be measured is refused in one sentence, and what is empty or small is measured as it is."""

import numpy as np
import pytest
import torch

from nlstm_lab import probes
from nlstm_lab.cells import HMLSTM, LSTM
from nlstm_lab.errors import UsageError
from nlstm_lab.models import wrap
from nlstm_lab.probes.boundary_scores import text_truths
from nlstm_lab.probes.decoding import labels
from nlstm_lab.probes.words import context_accuracy


@pytest.fixture
def hierarchical(network):
    return network(HMLSTM, num_layers=3, scale=2.5)


@pytest.mark.parametrize(
    "asked", [{"distance": 0}, {"distance": -5}, {"moments": -1}, {"moments": 0}, {"moments": 0, "distance": 0}]
)
def test_flushes_need_moments_and_a_distance(hierarchical, text, asked) -> None:
    with pytest.raises(UsageError, match=r"moments.*distance"):
        probes.flush_effects(hierarchical, text, **asked)


@pytest.mark.parametrize("temperature", [float("nan"), float("inf"), 0.0])
def test_a_temperature_is_positive_and_finite(network, temperature) -> None:
    with pytest.raises(UsageError, match="temperature"):
        probes.continued(network(), "abc", 3, temperature=temperature)


def test_codes_are_no_text_to_decode() -> None:
    torch.manual_seed(0)
    nameless = wrap(torch.nn.LSTM(5, 4), readout=torch.nn.Linear(4, 5))
    with pytest.raises(UsageError, match="codes"):
        probes.decode(probes.trace(nameless, torch.zeros(30, dtype=torch.long)), "a" * 30)


def test_an_empty_text_has_no_labels_and_no_truths() -> None:
    assert labels("").shape == (0, 5)
    truths = text_truths([])
    assert truths.keys() == text_truths("a").keys()
    assert not any(flags.size for flags in truths.values())


def test_of_two_words_the_third_likeliest_is_none(network) -> None:
    model = network(LSTM)
    model.readout, model.words = torch.nn.Linear(8, 2), ("ab", "ba")
    told = context_accuracy(model, [" ab ba cc"]).set_index(["top", "known"])["accuracy_pct"]
    assert set(told.loc[2]) == {100.0}
    np.testing.assert_array_equal(told.loc[3], told.loc[2])
