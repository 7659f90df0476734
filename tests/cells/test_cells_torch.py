"""RNN, LSTM and GRU are torch.nn's where torch has them, and their documents' equations where it has not."""

import numpy as np
import pytest
import torch
from scipy.special import expit as sigmoid
from torch import nn

from nlstm_lab.cells import GRU, LSTM, RNN, Addition, LayerNormLSTM, NestedLSTM

T, B, D, H = 7, 3, 5, 4


def same(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def outputs_and_gradients(unit, x, state=None):
    """Outputs, final states and the input's gradient of a loss that weighs all of them differently."""
    x = x.clone().requires_grad_()
    output, last = unit(x, state)
    seen = [output, *(last if isinstance(last, tuple) else (last,))]
    loss = sum((tensor * torch.linspace(-1, 2, tensor.numel()).view(tensor.shape)).sum() for tensor in seen)
    loss.backward()
    return [*seen, x.grad]


@pytest.fixture(autouse=True)
def _doubles():
    torch.manual_seed(3)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


PAIRS = [(LSTM, nn.LSTM, {}), (RNN, nn.RNN, {}), (RNN, nn.RNN, {"nonlinearity": "relu"}), (GRU, nn.GRU, {})]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("ours", "theirs", "flags"), PAIRS)
def test_from_torch_computes_the_same_outputs_and_gradients(ours, theirs, flags, bias):
    module = theirs(D, H, num_layers=2, bias=bias, **flags)
    unit = ours.from_torch(module)
    x = torch.randn(T, B, D)
    for a, b in zip(outputs_and_gradients(unit, x), outputs_and_gradients(module, x), strict=True):
        same(a, b)
    for k, cell in enumerate(unit.layers):
        same(cell.weight_ih.grad, getattr(module, f"weight_ih_l{k}").grad)
        same(cell.weight_hh.grad, getattr(module, f"weight_hh_l{k}").grad)
        if bias:
            same(cell.bias.grad, getattr(module, f"bias_ih_l{k}").grad)
    unit.reset_parameters()  # as torch draws: no gate has a bias of its own
    assert all(weight.abs().max() <= H**-0.5 for weight in unit.parameters())


@pytest.mark.parametrize(("ours", "theirs", "flags"), PAIRS)
def test_to_torch_computes_the_same_and_comes_back(ours, theirs, flags):
    extra = {"reset": "after"} if ours is GRU else flags
    unit = ours(D, H, num_layers=2, batch_first=True, **extra).eval()
    module = unit.to_torch()
    assert type(module) is theirs
    assert module.batch_first
    assert not module.training
    x = torch.randn(B, T, D)
    for a, b in zip(outputs_and_gradients(unit, x), outputs_and_gradients(module, x), strict=True):
        same(a, b)
    again = ours.from_torch(module)
    assert not again.training
    assert all(torch.equal(weight, again.state_dict()[name]) for name, weight in unit.state_dict().items())


def test_exchange_refuses_what_cannot_be_the_same():
    with pytest.raises(TypeError, match="GRU"):
        LSTM.from_torch(nn.GRU(D, H))
    with pytest.raises(ValueError, match="direction"):
        LSTM.from_torch(nn.LSTM(D, H, bidirectional=True))
    with pytest.raises(ValueError, match=r"proj_size"):
        LSTM.from_torch(nn.LSTM(D, H, proj_size=2))
    with pytest.raises(ValueError, match="reset"):
        GRU(D, H).to_torch()
    with pytest.raises(ValueError, match="all_layers"):
        LSTM(D, H, all_layers=True).to_torch()


@pytest.mark.parametrize("flags", [{"depth": 1}, {"memory": Addition}], ids=["depth 1", "addition"])
def test_nested_lstm_with_addition_as_memory_is_torchs_lstm(flags):
    module = nn.LSTM(D, H, num_layers=2)
    unit = NestedLSTM(D, H, num_layers=2, candidate="tanh", **flags)
    unit.load_state_dict(LSTM.from_torch(module).state_dict())
    x, h, c = torch.randn(T, B, D), torch.randn(2, B, H), torch.randn(2, B, H)
    output, h_n, memories, gradient = outputs_and_gradients(unit, x, (h, c.unsqueeze(1)))
    for a, b in zip(
        (output, h_n, memories.squeeze(1), gradient), outputs_and_gradients(module, x, (h, c)), strict=True
    ):
        same(a, b)
    same(unit.layers[1].weight_hh.grad, module.weight_hh_l1.grad)


def test_gru_with_reset_before_the_matrix_is_the_articles():
    unit = GRU(D, H, num_layers=2, reset="before")
    unit.requires_grad_(False)
    x = torch.randn(T, B, D)
    below = x.numpy()
    for cell in unit.layers:
        (RW, UW, ZW), (RU, UU, ZU), (rb, ub, zb) = (
            np.split(weight.numpy(), 3) for weight in (cell.weight_ih, cell.weight_hh, cell.bias)
        )
        h, above = np.zeros((B, H)), []
        for h_below in below:
            r = sigmoid(h_below @ RW.T + h @ RU.T + rb)
            u = sigmoid(h_below @ UW.T + h @ UU.T + ub)
            z = np.tanh(h_below @ ZW.T + (h * r) @ ZU.T + zb)  # the candidate is z in the article
            h = (1 - u) * z + u * h
            above.append(h)
        below = np.stack(above)
    same(unit(x)[0], torch.from_numpy(below))


def test_layer_norm_lstm_is_its_equations():
    unit = LayerNormLSTM(D, H)
    for parameter in unit.parameters():
        nn.init.normal_(parameter)
    unit.requires_grad_(False)
    cell = unit.layers[0]

    def LN(z, gain, bias=0.0):
        return (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + 1e-5) * gain + bias

    W, U, b = (p.numpy() for p in (cell.weight_ih, cell.weight_hh, cell.bias))
    x = torch.randn(T, B, D)
    h = c = np.zeros((B, H))
    expected = []
    for x_t in x.numpy():
        s = LN(h @ U.T, cell.norm.weight.numpy()) + LN(x_t @ W.T, cell.norm_ih.weight.numpy()) + b
        i, f, g, o = np.split(s, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(LN(c, cell.norm_c.weight.numpy(), cell.norm_c.bias.numpy()))
        expected.append(h)
    same(unit(x)[0], torch.from_numpy(np.stack(expected)))
