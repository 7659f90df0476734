"""Connectivity is autograd's Jacobian, exactly 0 in the future, for any unit, text and target; and refuses the rest."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nlstm_lab.cells import fast
from nlstm_lab.datasets.base import Symbols, Vocabulary
from nlstm_lab.models import Interface, ModelConfig, build
from nlstm_lab.probes import connectivity, mapped
from nlstm_lab.probes.reading import words_of

ALPHABET = Vocabulary(tuple(" abcdefg"))
WORDS = ("<eos>", "<unknown>", "bad", "cafe", "dad", "face")
TEXT = " bad face cafe"
STACK = {"num_layers": 2}
UNITS = {
    "rnn": ModelConfig("rnn", 7),
    "gru": ModelConfig("gru", 7, **STACK),
    "lstm": ModelConfig("lstm", 7, **STACK),
    "nlstm": ModelConfig("nlstm", 7),
    "deep": ModelConfig("nlstm", 7, **STACK, flags={"depth": 3}),
    "lnlstm": ModelConfig("lnlstm", 7, **STACK),
    "cwrnn": ModelConfig("cwrnn", 8),
    "hmlstm": ModelConfig("hmlstm", 7, **STACK, output_embedding_size=6),
    "hrnn": ModelConfig("hrnn", 7, **STACK, boundaries=(" ",)),
}


def network(unit="nlstm", embedded=False, words=False, seed=0):
    config = replace(UNITS[unit], embedding_size=5 if embedded else None)
    ends = Interface(Symbols(len(ALPHABET)), Symbols(len(WORDS) if words else len(ALPHABET)), ALPHABET)
    model = build(config, ends, seed=seed, name="small").double().eval()
    model.words = WORDS if words else None
    for parameter in model.parameters():
        parameter.data *= 2  # a trained network is driven harder than a fresh one
    return model


def jacobian(model, text, codes):
    """d logit(t, codes[t]) / d one-hot x_s by autograd, through the readable loop: [T, T, symbols]."""
    one_hot = torch.eye(len(ALPHABET), dtype=torch.float64)[ALPHABET.encode(text)]

    def logits(x):
        x = x if model.embedding is None else x @ model.embedding.weight
        with fast.disabled():
            _, *given = model.recurrent_arguments(ALPHABET.encode(text).unsqueeze(1))
            return model.readout(model.recurrent(x.unsqueeze(1), *given)[0][:, 0])[torch.arange(len(text)), codes]

    return torch.autograd.functional.jacobian(logits, one_hot), one_hot


@pytest.mark.parametrize(
    ("mode", "unit", "embedded"),
    [
        *(("l2", unit, True) for unit in UNITS),
        ("l2", "nlstm", False),
        *(("gradient_x_input", "nlstm", embedded) for embedded in (False, True)),
    ],
)
def test_it_is_autograds_jacobian(mode, unit, embedded, monkeypatch):
    monkeypatch.setattr("nlstm_lab.probes.lags.CHUNK", 5)
    model = network(unit, embedded, words=True)
    codes = torch.tensor([WORDS.index(word) for word in words_of(TEXT).word])
    gradient, x = jacobian(model, TEXT, codes)
    expected = {"l2": gradient.norm(dim=-1), "gradient_x_input": (gradient * x).sum(-1)}[mode]
    found = connectivity(model, TEXT, mode=mode)["connectivity"].values
    np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=1e-10)
    assert np.abs(found).max() > 1e-3
    assert not np.triu(found, 1).any()  # exactly 0 in the future


def test_targets_are_the_true_word_the_predicted_one_or_a_given_one():
    model = network(words=True)
    true = connectivity(model, f"{TEXT} gag ")
    assert true["target"].values.tolist() == ["bad"] * 4 + ["face"] * 5 + ["cafe"] * 5 + [""] * 5
    assert np.isnan(true["connectivity"].values[-5:]).all()  # an unknown word, and no word at all
    assert np.isnan(true["p"].values[-5:]).all()
    predicted = connectivity(model, TEXT, target="predicted")
    assert predicted["target"].values.tolist() == predicted["prediction"].values[:, 0].tolist()
    np.testing.assert_allclose(predicted["p"], predicted["probability"][:, 0])
    assert set(predicted["prediction"].values.ravel()) <= set(WORDS[2:])
    assert set(connectivity(model, TEXT, given="dad")["target"].values) == {"dad"}
    following = connectivity(network(), TEXT)  # a network that predicts characters
    assert "".join(following["target"].values) == TEXT[1:]
    assert np.isnan(following["connectivity"].values[-1]).all()


def test_it_is_taken_in_eval_mode_without_cudnn_and_leaves_the_network_as_it_was():
    model, seen = network("lstm", words=True), []
    expected = connectivity(model, TEXT)

    def watched(x, *rest):
        seen.append((torch.backends.cudnn.enabled, model.training))
        return plain(x, *rest)

    model.recurrent.dropout = 0.5
    plain, model.recurrent.run = model.recurrent.run, watched
    found = connectivity(model.train(), TEXT)
    assert model.training
    assert torch.backends.cudnn.enabled
    assert seen[1] == (False, False)  # the first call predicts, and needs no gradient
    assert all(parameter.grad is None for parameter in model.parameters())
    np.testing.assert_array_equal(found["connectivity"], expected["connectivity"])


def test_an_unknown_character_is_mapped_to_its_nearest_and_an_accent_belongs_to_its_letter():
    model = network(words=True)
    assert [mapped(model, text) for text in (" Café", " cafe\u0301", "a-b")] == [" cafe", " cafe", "a b"]


def test_only_what_is_asked_for_is_computed():
    model = network("lstm", words=True)
    whole, some = connectivity(model, TEXT), connectivity(model, TEXT, at=[2, 5])
    np.testing.assert_allclose(some["connectivity"][[2, 5]], whole["connectivity"][[2, 5]], rtol=1e-12)
    assert np.isnan(some["connectivity"].values).all(1).sum() == len(TEXT) - 2
    np.testing.assert_array_equal(some["p"], whole["p"])
    assert np.isnan(connectivity(model, TEXT, at=())["connectivity"]).all()
