"""What `wrap` takes is seen to fit before anything is probed."""

import pytest
import torch
from torch import nn

from nlstm_lab import HMLSTM, NestedLSTM, models, probes

LETTERS = "abcdefgh"


def wrap(rnn=None, **changed):
    parts = {"readout": nn.Linear(6, 8), "embedding": nn.Embedding(8, 4), "vocabulary": LETTERS, **changed}
    return models.wrap(rnn or nn.LSTM(4, 6), **parts)


class Doubled(nn.LSTM):
    def forward(self, input, hx=None):
        output, state = super().forward(input, hx)
        return 2 * output, state


class Alone(nn.GRU):
    def forward(self, input):
        return super().forward(input)[0].sum()


class Renamed(nn.LSTM):
    """Computes what its parent does."""


@pytest.mark.parametrize("kind", [Doubled, Alone])
def test_a_subclass_that_computes_something_else_is_refused_by_its_name(kind):
    with pytest.raises(TypeError, match=kind.__name__):
        wrap(kind(4, 6))
    wrap(Renamed(4, 6))


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


@pytest.mark.parametrize("rnn", [nn.LSTM(4, 6, 2, batch_first=True), nn.GRU(4, 6), nn.RNN(4, 6), NestedLSTM(4, 6)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_every_kind_and_type_is_taken_and_stays_as_it_was(rnn, dtype):
    rnn = rnn.to(dtype).train()
    model = wrap(rnn, readout=nn.Linear(6, 8, dtype=dtype), embedding=nn.Embedding(8, 4, dtype=dtype))
    assert rnn.training
    assert probes.trace(model, "abc").sizes["time"] == 3


WRONG = {
    "readout's input": ("readout", {"readout": nn.Linear(5, 8)}),
    "too few outputs": ("readout", {"readout": nn.Linear(6, 7)}),
    "too many outputs": ("readout", {"readout": nn.Linear(6, 9)}),
    "outputs for other names": ("readout", {"words": ["one", "two"]}),
    "embedding's width": ("embedding", {"embedding": nn.Embedding(8, 5)}),
    "too few symbols": ("embedding", {"embedding": nn.Embedding(7, 4)}),
    "more symbols than one-hot input": ("vocabulary", {"embedding": None}),
    "a symbol twice": ("vocabulary", {"vocabulary": "abcdefga"}),
    "a symbol twice, as codes": ("vocabulary", {"vocabulary": {"a": 0, "b": 0}}),
}


@pytest.mark.parametrize(("named", "changed"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_named(named, changed):
    with pytest.raises(ValueError, match=named):
        wrap(**changed)


def test_an_hmlstm_of_all_layers_and_one_hot_input_fits():
    wrap(HMLSTM(8, 3, num_layers=2, all_layers=True), embedding=None)
