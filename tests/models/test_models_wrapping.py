"""What `wrap` takes is seen to fit before anything is probed."""

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from nlstm_lab import HMLSTM, NestedLSTM, cells, models, probes
from nlstm_lab.errors import UsageError

LETTERS = "abcdefgh"


def wrap(rnn=None, **changed):
    parts = {"readout": nn.Linear(6, 8), "embedding": nn.Embedding(8, 4), "vocabulary": LETTERS, **changed}
    return models.wrap(nn.LSTM(4, 6) if rnn is None else rnn, **parts)


class Doubled(nn.LSTM):
    def forward(self, input, hx=None):
        output, state = super().forward(input, hx)
        return 2 * output, state


class Summed(nn.GRU):
    def forward(self, input):
        return super().forward(input)[0].sum()


class Renamed(nn.LSTM):
    """Computes what its parent does."""


@pytest.mark.parametrize("kind", [Doubled, Summed])
def test_a_subclass_that_computes_something_else_is_refused_by_its_name(kind):
    with pytest.raises(TypeError, match=kind.__name__):
        wrap(rnn := kind(4, 6))
    assert rnn.training
    wrap(Renamed(4, 6))
    with torch.inference_mode(), pytest.raises(UsageError, match="gradients"):
        probes.attribution(wrap(Renamed(4, 6)), "abc", "d")


@pytest.mark.parametrize("norm", [nn.utils.weight_norm, nn.utils.parametrizations.weight_norm])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_weight_norm_is_taken_as_it_computes(norm):
    rnn = norm(nn.LSTM(4, 6), "weight_hh_l0")
    with torch.no_grad():
        for parameter in rnn.parameters():
            parameter.mul_(1.5)
    model, codes = wrap(rnn), torch.randint(8, (5, 1))
    with torch.no_grad():
        torch.testing.assert_close(model(codes)[0], model.readout(rnn(model.embedding(codes))[0]))


@pytest.mark.parametrize(
    "rnn", [nn.LSTM(4, 6, 2, batch_first=True), nn.GRU(4, 6), nn.RNN(4, 6), NestedLSTM(4, 6, batch_first=True)]
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_every_kind_and_type_is_taken_and_stays_as_it_was(rnn, dtype):
    rnn, batch_first = rnn.to(dtype).train(), rnn.batch_first
    model = wrap(rnn, readout=nn.Linear(6, 8, dtype=dtype), embedding=nn.Embedding(8, 4, dtype=dtype))
    assert (rnn.training, rnn.batch_first) == (True, batch_first)
    assert probes.trace(model, "abc").sizes["time"] == 3


def test_symbols_that_are_words_are_handed_in_as_codes():
    model = wrap(vocabulary=[f"word{k}" for k in range(8)])
    with pytest.raises(UsageError, match="codes"):
        probes.trace(model, "word1")
    assert probes.trace(model, [2, 0]).symbol.values.tolist() == ["word2", "word0"]
    assert probes.attribution(model, [2, 0], "word3").equals(probes.attribution(model, [2, 0], 3))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bias", [True, False])
def test_cells_that_stand_on_each_other_are_the_network_of_their_loop(kind, bias):
    rnn = kind(4, 6, 2, bias=bias)
    step = {nn.LSTM: nn.LSTMCell, nn.GRU: nn.GRUCell, nn.RNN: nn.RNNCell}[kind]
    steps = nn.ModuleList([step(4, 6, bias=bias), step(6, 6, bias=bias)])
    for k, cell in enumerate(steps):
        cell.load_state_dict({name: getattr(rnn, f"{name}_l{k}") for name, _ in cell.named_parameters()})
    x = torch.randn(5, 3, 4)
    with torch.no_grad():
        torch.testing.assert_close(wrap(steps).recurrent(x)[0], rnn(x)[0])
        assert wrap(steps[0]).recurrent.num_layers == 1
    with pytest.raises(ValueError, match="stand on each other"):
        wrap([steps[1], steps[0]])


def test_what_compile_or_data_parallel_put_around_a_module_is_taken_off():
    rnn, readout, embedding = nn.LSTM(4, 6), nn.Linear(6, 8), nn.Embedding(8, 4)
    model = wrap(torch.compile(rnn), readout=nn.DataParallel(readout), embedding=torch.compile(embedding))
    assert model.readout is readout
    assert model.embedding is embedding
    assert wrap(torch.compile(NestedLSTM(4, 6))).recurrent.hidden_size == 6
    assert wrap(nn.DataParallel(rnn)).recurrent.hidden_size == 6


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 6)


SENT_BACK = {
    "no values": (nn.LSTM(4, 6, device="meta"), {}, ValueError, "rnn must hold values, and lies on the meta device"),
    "cells without values": ([nn.GRUCell(4, 6, device="meta")], {}, ValueError, "rnn must hold values"),
    "a readout without values": (None, {"readout": nn.Linear(6, 8, device="meta")}, ValueError, "readout must hold"),
    "no network": (["lstm"], {}, TypeError, "not list"),
    "two directions": (nn.LSTM(4, 6, bidirectional=True), {}, ValueError, "bidirectional=False"),
    "a projection": (nn.LSTM(4, 6, proj_size=3), {}, ValueError, "proj_size=0"),
    "a whole network": (LanguageModel(), {}, TypeError, r"hand in its recurrent part, \.lstm"),
    "one of our steps": (NestedLSTM(4, 6).layers[0], {}, TypeError, "hand in its network, NestedLSTM"),
    "given boundaries": (cells.HierarchicalRNN(4, 6, 2), {}, TypeError, "given boundaries"),
    "codes to symbols": (None, {"vocabulary": dict(enumerate(LETTERS))}, ValueError, "its code"),
    "only codes": (None, {"vocabulary": range(8)}, TypeError, "str, not int 0"),
    "a set": (None, {"vocabulary": set(LETTERS)}, TypeError, "not set"),
    "unlike cells": ([nn.RNNCell(4, 6, nonlinearity="relu"), nn.RNNCell(6, 6)], {}, ValueError, "stand on each other"),
    "bytes": (None, {"vocabulary": LETTERS.encode()}, TypeError, "decode bytes"),
    "truth values as codes": (None, {"vocabulary": {"a": False, "b": True}}, ValueError, "0, 1, 2"),
    "a number": (None, {"vocabulary": 8}, TypeError, "not int"),
    "no symbol": (None, {"vocabulary": ""}, ValueError, "one name at least"),
    "an empty symbol": (None, {"vocabulary": [*LETTERS[:7], ""]}, ValueError, "no empty one"),
    "words that are no text": (None, {"words": [1] * 8}, TypeError, "words must hold str, not int 1"),
    "no readout": (None, {"readout": None}, TypeError, "readout must be a torch.nn.Module"),
    "a softmax": (None, {"readout": nn.Sequential(nn.Linear(6, 8), nn.Softmax(-1))}, ValueError, "without its softmax"),
    "readout's input": (None, {"readout": nn.Linear(5, 8)}, ValueError, "readout"),
    "too few outputs": (None, {"readout": nn.Linear(6, 7)}, ValueError, "readout"),
    "too many outputs": (None, {"readout": nn.Linear(6, 9)}, ValueError, "readout"),
    "outputs for other names": (None, {"words": ["one", "two"]}, ValueError, "readout"),
    "embedding's width": (None, {"embedding": nn.Embedding(8, 5)}, ValueError, "embedding"),
    "too few symbols": (None, {"embedding": nn.Embedding(7, 4)}, ValueError, "embedding"),
    "more symbols than one-hot input": (None, {"embedding": None}, ValueError, "vocabulary"),
    "a symbol twice": (None, {"vocabulary": "abcdefga"}, ValueError, "vocabulary"),
    "a symbol twice, as codes": (None, {"vocabulary": {"a": 0, "b": 0}}, ValueError, "vocabulary"),
}


@pytest.mark.parametrize(("rnn", "changed", "error", "message"), SENT_BACK.values(), ids=SENT_BACK)
def test_what_cannot_be_wrapped_is_sent_back_with_the_way_out(rnn, changed, error, message):
    with pytest.raises(error, match=message):
        wrap(rnn, **changed)


def test_log_probabilities_are_logits_and_an_hmlstm_of_all_layers_fits_one_hot_input():
    wrap(readout=nn.Sequential(nn.Linear(6, 8), nn.LogSoftmax(-1)))
    wrap(HMLSTM(8, 3, num_layers=2, all_layers=True), embedding=None)


@pytest.mark.parametrize(
    "spoil",
    [
        nn.utils.weight_norm,
        nn.utils.parametrizations.weight_norm,
        lambda part, name: prune.l1_unstructured(part, name, 0.5),
    ],
)
@pytest.mark.parametrize("where", ["recurrent", "readout", "embedding"])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_computed_weight_is_not_drawn_anew_and_said_to_be_so(spoil, where):
    model = wrap(NestedLSTM(4, 6))
    part = {"recurrent": model.recurrent.layers[0], "readout": model.readout, "embedding": model.embedding}[where]
    spoil(part, name := "weight_hh" if where == "recurrent" else "weight")
    with pytest.raises(UsageError, match=name):
        probes.untrained(model)


def test_a_weight_that_no_reset_reaches_is_refused_by_its_name():
    class Stubborn(nn.Linear):
        def reset_parameters(self):
            if not hasattr(self, "drawn"):
                super().reset_parameters()
            self.drawn = True

    class Gained(nn.Linear):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.gain = nn.Parameter(torch.randn(8))

    for kind, name in ((Stubborn, "weight"), (Gained, "gain")):
        with pytest.raises(UsageError, match=rf"readout\.{name}"):
            probes.untrained(wrap(readout=kind(6, 8)))
