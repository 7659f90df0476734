"""Autocomplete: the softmax's own words, the same however they are typed, each character read once."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from nlstm_lab import probes
from nlstm_lab.cells import HMLSTM, NestedLSTM
from nlstm_lab.datasets.base import Vocabulary
from nlstm_lab.datasets.items import Handwriting
from nlstm_lab.errors import UsageError
from nlstm_lab.models import MixtureDensity, Network
from nlstm_lab.probes import Completer, continued, reading
from nlstm_lab.probes.writing import pen

ALPHABET = Vocabulary(tuple(" abcdefg"))
WORDS = ("<eos>", "<unknown>", "bad", "cafe", "dad", "face")


def network(hidden_size=9, words=WORDS, vocabulary=ALPHABET):
    torch.manual_seed(0)
    unit, size = NestedLSTM(hidden_size, hidden_size), len(vocabulary)
    names = None if words == vocabulary.symbols else words
    model = Network(unit, nn.Linear(hidden_size, len(words)), nn.Embedding(size, hidden_size), vocabulary, words=names)
    for parameter in model.parameters():
        parameter.data *= 2
    return model.double()


def complete(model, text, k=3):
    return Completer(model)(text, k)


def test_it_gives_the_likeliest_words_with_their_probabilities():
    model = network()
    with torch.no_grad():
        p = model(ALPHABET.encode(" bad fa").unsqueeze(1))[0][-1, 0].softmax(-1)
    order = [code for code in p.argsort(descending=True).tolist() if code > 1]  # <eos> and <unknown> are no words
    result = complete(model, " bad fa")
    assert [each.word for each in result] == [WORDS[code] for code in order[:3]]
    assert [each.probability for each in result] == pytest.approx(p[order[:3]].tolist())
    assert len(complete(model, " bad fa", k=99)) == 4


def test_any_prefix_will_do():
    model = network()
    assert complete(model, "") == complete(model, " ")
    assert complete(model, "bad") == complete(model, " bad")
    characters = network(words=ALPHABET.symbols)
    assert len(complete(characters, "ab c", k=8)) == 8
    assert complete(characters, "ab c", k=8) != complete(characters, " c", k=8)


def test_a_text_beyond_the_window_is_read_from_a_space(monkeypatch):
    monkeypatch.setattr(reading, "LONGEST", 20)
    model = network()
    text = " bad face" * 5
    assert complete(model, text) == complete(model, text[31:])


def test_a_word_that_is_long_does_not_push_everything_before_it_out_of_the_window(monkeypatch):
    """Each text beyond the window is read a quarter of the window at least, and mostly where the one before was."""
    monkeypatch.setattr(reading, "LONGEST", 20)
    characters, text = network(words=ALPHABET.symbols), "abcdefg" * 6 + " a" + "bcdefg" * 5
    starts = (10, 20, 30, 42, 50, 60)  # half a window on, or at the space near from there
    for n in range(21, len(text) + 1):
        found = complete(characters, text[:n])
        assert any(found == complete(characters, text[s:n]) for s in starts if 5 <= n - s <= 20), n
    assert complete(characters, text[:43]) == complete(characters, text[30:43])  # and not " " alone


@pytest.mark.slow
def test_typing_forth_and_back_gives_what_a_fresh_reading_does(monkeypatch):
    monkeypatch.setattr(reading, "LONGEST", 30)
    model = network()
    model.train()
    completer, text = Completer(model), " bad face cafe dad bad face cafe dad bad"
    typed = [text[:n] for n in range(len(text) + 1)]
    for prefix in [*typed, *reversed(typed), " face bad", " face bed"]:
        fresh = complete(model, prefix)
        for one, other in zip(completer(prefix), fresh, strict=True):
            assert one.word == other.word
            assert one.probability == pytest.approx(other.probability, abs=1e-12)
    assert model.training


def test_a_keystroke_reads_the_new_character_alone():
    """So that it costs the same after a text of any length."""
    model, read = network(), []
    completer, text = Completer(model), " bad cafe dad"
    completer(text)
    model.recurrent.register_forward_pre_hook(lambda _, given: read.append(len(given[0])))
    for n in range(3):
        completer(text + " fa"[: n + 1])
    assert read == [1, 1, 1]


@pytest.mark.slow
def test_a_continuation_is_drawn_from_the_networks_own_predictions():
    """At a temperature near 0 it is the likeliest character each time; at 1 its first letter is as often as likely."""
    model = network(words=ALPHABET.symbols)
    text = " bad"
    for _ in range(4):
        with torch.no_grad():
            logits = model(ALPHABET.encode(text).unsqueeze(1))[0][-1, 0]
        text += ALPHABET.symbols[int(logits.argmax())]
    assert continued(model, " bad", 4, temperature=1e-6) == text
    assert continued(model, " bad", 4, temperature=5e-324) == text
    assert continued(model, " bad", 9, seed=3) == continued(model, " bad", 9, seed=3)
    with torch.no_grad():
        p = model(ALPHABET.encode(" bad").unsqueeze(1))[0][-1, 0].softmax(-1)
    drawn = [continued(model, " bad", 1, seed=seed)[-1] for seed in range(300)]
    likeliest = ALPHABET.symbols[int(p.argmax())]
    assert drawn.count(likeliest) / 300 == pytest.approx(float(p.max()), abs=4 * (0.25 / 300) ** 0.5)


def test_what_is_no_character_is_never_drawn():
    vocabulary = Vocabulary(("\0", " ", "a"))
    model = network(words=vocabulary.symbols, vocabulary=vocabulary)
    with torch.no_grad():
        model.readout.bias.copy_(torch.tensor([50.0, 0, 0]))
    assert "\0" not in continued(model, " a", 20)


@pytest.fixture
def writer():
    torch.manual_seed(0)
    density = MixtureDensity(3)
    return Network(HMLSTM(3, 6, 2), nn.Linear(6, density.size), density=density, name="writer")


@pytest.mark.slow
def test_writing_is_reproducible_and_starts_from_nothing(writer):
    line = probes.write(writer, 50, seed=3)
    assert line.shape == (50, 3)
    assert not line[0].any()
    assert set(line[:, 2].tolist()) <= {0.0, 1.0}
    assert torch.equal(line, probes.write(writer, 50, seed=3))
    assert not torch.equal(line, probes.write(writer, 50, seed=4))


@pytest.mark.slow
def test_a_colder_network_strays_less(writer):
    spread = [probes.write(writer, 60, temperature)[1:, :2].std() for temperature in (0.1, 1.0, 4.0)]
    assert spread[0] < spread[1] < spread[2]


def test_a_pen_goes_where_its_offsets_say(probes_folder, monkeypatch):
    task = SimpleNamespace(mean=np.array([1.0, -1.0]), deviation=np.array([2.0, 3.0]))
    monkeypatch.setattr(Handwriting, "load", lambda self: task)
    found = pen(torch.tensor([[0.0, 0.0, 0.0], [1.0, 2.0, 1.0], [-2.0, 1.0, 1.0]]))  # +1 -1, +3 +5, -3 +2
    assert np.stack([found[name] for name in ("x", "y", "lifted")]).tolist() == [[0, 3, 0], [0, 5, 7], [0, 1, 1]]


def test_one_point_and_no_warmth_are_refused(writer):
    with pytest.raises(UsageError, match="points"):
        probes.write(writer, 1)
    with pytest.raises(UsageError, match="temperature"):
        probes.write(writer, temperature=0)
