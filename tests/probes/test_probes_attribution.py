"""Attribution is captum's on a torch.nn.LSTM with the same weights, adds up where it is to, and refuses the rest."""

import captum.attr
import numpy as np
import pytest
import torch
from torch import nn

from nlstm_lab import models, probes
from nlstm_lab.cells import GRU, HMLSTM, LSTM, RNN, NestedLSTM
from nlstm_lab.errors import UsageError

TEXT = "a bad cafe fed a dad"
LETTERS = " abcdefghij"


@pytest.fixture(params=[True, False], ids=["embedded", "one-hot"])
def pair(request):
    """A torch.nn.LSTM with its ends, as a plain function of vectors [1, T, features], and wrapped."""
    torch.manual_seed(0)
    rnn, readout = nn.LSTM(6 if request.param else 11, 8, 2), nn.Linear(8, 11)
    embedding = nn.Embedding(11, 6) if request.param else None
    model = models.wrap(rnn, readout=readout, embedding=embedding, vocabulary=LETTERS)
    codes = torch.tensor([LETTERS.index(letter) for letter in TEXT])
    vectors = nn.functional.one_hot(codes, 11).float() if embedding is None else embedding(codes).detach()
    return model, vectors[None], lambda x: readout(rnn(x.transpose(0, 1))[0][-1])


CAPTUM = {
    "saliency": lambda f, x, e: captum.attr.Saliency(f).attribute(x, abs=False, target=e)[0].norm(dim=-1),
    "input_x_gradient": lambda f, x, e: captum.attr.InputXGradient(f).attribute(x, target=e)[0].sum(-1),
    "integrated_gradients": lambda f, x, e: captum.attr.IntegratedGradients(f).attribute(x, target=e)[0].sum(-1),
    "feature_ablation": lambda f, x, e: captum.attr.FeatureAblation(f).attribute(
        x, target=e, feature_mask=torch.arange(x.shape[1])[None, :, None].expand_as(x)
    )[0, :, 0],
}


@pytest.mark.parametrize("method", CAPTUM)
def test_it_is_captums_on_a_torch_lstm_with_the_same_weights(pair, method):
    model, vectors, function = pair
    expected = CAPTUM[method](function, vectors.requires_grad_(), LETTERS.index("e")).detach()
    found = probes.attribution(model, TEXT, "e", method=method)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert np.abs(found).max() > 1e-3
    assert "".join(found["symbol"].values) == TEXT


@pytest.mark.parametrize("kind", [RNN, GRU, LSTM, NestedLSTM, HMLSTM])
@pytest.mark.parametrize("embedded", [False, True])
def test_integrated_gradients_add_up_of_symbols_and_of_the_h_that_is_read(network, kind, embedded):
    model = network(kind, embedded=embedded, scale=1.5)
    with torch.no_grad():
        codes = model.vocabulary.encode(TEXT)[:, None]
        difference = [float(model(each)[0][12, 0, 4]) for each in (codes, torch.zeros_like(codes))]
    for memory in (None, "h"):
        found = probes.attribution(model, TEXT, "d", 12, baseline=" ", memory=memory)
        gap = difference[0] - difference[1]
        if kind is not HMLSTM:  # the straight-through estimate is no derivative of its steps
            assert float(found[12].sum() if memory else found.sum()) == pytest.approx(gap, rel=0.01)
        assert found.attrs["logit"] == pytest.approx(difference[0], abs=1e-5)
        assert found.attrs["sum"] == pytest.approx(float(found[12].sum() if memory else found.sum()), abs=1e-4)
        assert not found[13:].any()


def test_the_conductance_of_a_memory_is_captums_at_a_layer_of_its_own():
    """The last c of an LSTM, computed by a module that captum can hook."""
    torch.manual_seed(0)
    cell, readout = nn.LSTMCell(11, 5), nn.Linear(5, 11)

    class Unrolled(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Identity()

        def forward(self, x):
            h = c = x.new_zeros(len(x), 5)
            for step in x.unbind(1)[:-1]:
                h, c = cell(step, (h, c))
            h, c = cell(x[:, -1], (h, self.last(c + 0)))  # c as the last step reads it, and not h that was made of it
            return readout(h)

    rnn = nn.LSTM(11, 5)
    rnn.load_state_dict({f"{name}_l0": value for name, value in cell.state_dict().items()})
    model, net = models.wrap(rnn, readout=readout, vocabulary=LETTERS), Unrolled()
    x = nn.functional.one_hot(model.vocabulary.encode("bad"), 11).float()[None]
    conductance = captum.attr.LayerConductance(net, net.last).attribute(
        x, target=5, n_steps=4000, method="riemann_left"
    )
    found = probes.attribution(model, "bad", "e", memory="cell", points=1000)
    direct = probes.attribution(model, "bad", "e", memory="cell before", points=1000)
    np.testing.assert_allclose(direct[2], conductance[0].detach(), atol=2e-4)
    assert not np.allclose(found[1], direct[2], atol=1e-3)  # by h, too, would be another number
    product = captum.attr.LayerGradientXActivation(net, net.last).attribute(x, target=5)[0].detach()
    slope = product / captum.attr.LayerActivation(net, net.last).attribute(x)[0].detach()
    found = {m: probes.attribution(model, "bad", "e", -1, m, memory="cell before")[2] for m in probes.attributing.FREE}
    np.testing.assert_allclose(found["input_x_gradient"], product, atol=1e-6)
    np.testing.assert_allclose(found["saliency"], slope.abs(), atol=1e-5)


def test_a_path_in_pieces_is_the_whole_path(network, monkeypatch):
    model, memories = network(), (None, "inner")
    whole = [probes.attribution(model, TEXT, "d", memory=memory) for memory in memories]
    monkeypatch.setattr("nlstm_lab.probes.attributing.AT_ONCE", 1)
    for memory, expected in zip(memories, whole, strict=True):
        np.testing.assert_allclose(probes.attribution(model, TEXT, "d", memory=memory), expected, atol=1e-6)


def test_vectors_and_classes_are_attributed_too():
    torch.manual_seed(0)
    model = models.wrap(nn.LSTM(3, 8), readout=nn.Linear(8, 4), words=("a", "b", "c", "d"))
    model.per_sequence = True
    found = probes.attribution(model, torch.randn(30, 3), "c", baseline=torch.zeros(1, 3))
    assert found.attrs["missing"] < 0.01
    assert "symbol" not in found.coords
    with pytest.raises(UsageError, match="once a sequence"):
        probes.attribution(model, torch.randn(30, 3), "c", at=3)


def test_a_sum_that_misses_says_so(network):
    model = network(HMLSTM, num_layers=2, scale=3.0)
    with pytest.warns(UserWarning, match="missing"):
        found = probes.attribution(model, TEXT, "d")
    assert found.attrs["points"] == 50 * 2**3
