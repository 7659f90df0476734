"""Guards of the inner memory, against the equations and at their edges."""

import numpy as np
import pytest
import torch

from nlstm_lab.cells import NestedLSTM
from nlstm_lab.cells.lstm import GuardedLSTMCell

D, H, B = 3, 5, 4


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def expected(guard, rows, c):
    """One step's h and c [B, H] in NumPy, from pre-activations in the order of the cell's gates."""
    blocks = np.split(rows, rows.shape[1] // H, axis=1)
    g, o = np.tanh(blocks[-2]), sigmoid(blocks[-1])
    if guard == "coupled":
        f = sigmoid(blocks[0])
        i = 1 - f
    elif guard == "refined":  # Gu et al. 2020: g_t = r (1 - (1 - f)^2) + (1 - r) f^2
        r, f = sigmoid(blocks[0]), sigmoid(blocks[1])
        f = r * (1 - (1 - f) ** 2) + (1 - r) * f**2
        i = 1 - f
    else:
        i, f = sigmoid(blocks[0]), sigmoid(blocks[1])
    c = f * c + i * g
    if guard == "clipped":
        c = np.clip(c, -1, 1)
    if guard == "normalized":
        c = (c - c.mean(1, keepdims=True)) / np.sqrt(c.var(1, keepdims=True) + 1e-5)
    return o * np.tanh(c), c


@pytest.mark.parametrize("guard", ["coupled", "refined", "clipped", "normalized"])
def test_a_step_is_the_equations(guard):
    torch.manual_seed(0)
    cell = GuardedLSTMCell(D, H, guard=guard, dtype=torch.float64)
    x, h, c = (torch.randn(B, size, dtype=torch.float64) for size in (D, H, H))
    c = 3 * c  # some beyond the bound
    rows = (x @ cell.weight_ih.t() + h @ cell.weight_hh.t() + cell.bias).detach().numpy()
    for ours, theirs in zip(cell(x, (h, c)), expected(guard, rows, c.numpy()), strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs, rtol=1e-12)
    weights = [cell.weight_ih, cell.weight_hh, cell.bias]
    assert torch.autograd.gradcheck(lambda *_: cell(x, (h, c)), weights)


@pytest.mark.parametrize("guard", ["coupled", "refined", "clipped", "normalized"])
def test_where_every_gate_is_pinned_a_guarded_memory_does_not_count_and_the_lstm_does(guard):
    x = torch.randn(50, 2, D)
    ends = []
    for inner_cell in (guard, "lstm"):
        torch.manual_seed(0)
        unit = NestedLSTM(D, H, inner_cell=inner_cell)
        torch.nn.init.constant_(unit.layers[0].memory.bias, 20.0)  # every gate and the candidate at 1
        ends.append(unit(x)[1][1][0, 1].abs().max().item())
    assert ends[0] <= 2 < 40 < ends[1]  # of five units a normalized one is at most 2 away from their mean


@pytest.fixture
def empty(monkeypatch):
    """Large matrices need no values where biases are looked at."""
    for name in ("orthogonal_", "xavier_uniform_"):
        monkeypatch.setattr(torch.nn.init, name, lambda tensor, *_, **__: tensor)


def test_ur_gates_start_at_uniform_timescales_and_opposite_refinements(empty):
    cell = GuardedLSTMCell(D, 2000, guard="refined")
    refine, forget = cell.bias[:2000], cell.bias[2000:4000]
    assert torch.equal(refine, -forget)
    shares = torch.sigmoid(forget).sort().values
    torch.testing.assert_close(shares, torch.linspace(0, 1, 2000), atol=0.05, rtol=0)


def test_chrono_biases_are_logarithms_of_uniform_times(empty):
    memory = NestedLSTM(D, 2000, inner_chrono=101).layers[0].memory
    i, f, g, o = memory.bias.view(4, 2000)
    assert torch.equal(i, -f)
    assert not g.any()
    assert not o.any()
    torch.testing.assert_close(f.exp().sort().values, torch.linspace(1, 100, 2000), atol=5.0, rtol=0)


def test_the_inner_input_gates_bias_starts_as_configured():
    unit = NestedLSTM(D, H, inner_input_bias=-1.0, inner_forget_bias=2.0)
    assert unit.layers[0].memory.bias.view(4, H).mean(1).tolist() == [-1, 2, 0, 0]
    assert unit.layers[0].bias.view(4, H).mean(1).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"inner_cell": "gru"}, "inner_cell"),
        ({"inner_cell": "clipped", "depth": 3}, "inner_cell"),
        ({"inner_cell": "clipped", "inner_chrono": 100}, "inner_chrono"),
        ({"inner_chrono": 2}, "inner_chrono"),
        ({"inner_chrono": 100, "depth": 1}, "inner_chrono"),
        ({"inner_input_bias": 1.0, "memory": GuardedLSTMCell}, "inner_input_bias"),
    ],
)
def test_what_cannot_be_started_so_is_refused(flags, named):
    with pytest.raises(ValueError, match=named):
        NestedLSTM(D, H, **flags)
