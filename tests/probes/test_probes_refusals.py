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


SYMBOLS = [
    lambda model, text: probes.trace(model, text),
    lambda model, text: probes.run(model, text),
    lambda model, text: probes.lens(model, text, burn_in=0),
    lambda model, text: probes.attribution(model, text, "d"),
    lambda model, text: probes.patch(model, (text, "abc", "a", "b")),
    lambda model, text: probes.intervene(model, text, "zero", "inner", moments=[2], distance=1),
    lambda model, text: probes.loss_by_context(model, text, contexts=(1,), positions=1),
    lambda model, text: probes.units(model, text, burn_in=0),
    lambda model, text: probes.fixed_points(model, text, starts=1),
    lambda model, text: probes.timescales(model, text, burn_in=0),
]


@pytest.mark.parametrize("probe", SYMBOLS)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("abz", "'z'.*it knows"),
        ("", "empty"),
        (None, "(text|clean) must be a string or codes"),
        (torch.tensor([1, 2, 11]), "codes from 0 to 10, not 11"),
        (np.array([1, -1, 2]), "codes from 0 to 10, not -1"),
        (torch.tensor([True, False]), "must be a string or codes"),
        (torch.ones(2, 3, dtype=torch.long), r"must be a string or codes.*\[2, 3\]"),
        (torch.rand(4, 3), r"vectors \[T, 11\].*\[4, 3\]"),
        (3, "must be a string or codes"),
    ],
)
def test_what_no_probe_can_read_is_refused_in_the_same_sentence(network, probe, text, said):
    with pytest.raises(UsageError, match=said):
        probe(network(), text)


@pytest.mark.parametrize("make", [np.array, list, lambda codes: torch.tensor([codes]), torch.tensor])
def test_codes_are_read_as_the_text_that_they_are_of(network, text, make):
    model = network(scale=2.0)
    codes = make(model.vocabulary.encode(text[:60]).tolist())
    for probe in (probes.trace, lambda *given: probes.run(*given).trace):
        np.testing.assert_array_equal(probe(model, codes).c, probe(model, text[:60]).c)
    assert probes.attribution(model, codes, "d").equals(probes.attribution(model, text[:60], "d"))


@pytest.mark.parametrize("burn_in", [-5, 2.5, None, True, 400, 1000])
@pytest.mark.parametrize("probe", [probes.units, probes.timescales, probes.slow_parts, probes.contents, probes.lens])
def test_burn_in_is_a_whole_number_that_leaves_something(network, text, probe, burn_in):
    with pytest.raises(UsageError, match="burn_in"):
        probe(network(), text, burn_in=burn_in)
