"""The Nested LSTM is its equations, at the paper's depth and deeper, and nests any cell."""

import functools
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from scipy.special import expit as sigmoid

from nlstm_lab.cells import GRU, LSTM, RNN, GRUCell, LayerNormLSTMCell, LSTMCell, NestedLSTM, NestedLSTMCell
from nlstm_lab.cells.fast import disabled
from nlstm_lab.cells.lstm import GuardedLSTMCell

T, B, D, H = 6, 3, 5, 4


def maps(cell):
    """W, U and b of a cell: the four gates' blocks of each, i, f, g, o."""
    return (np.split(p.detach().numpy(), 4) for p in (cell.weight_ih, cell.weight_hh, cell.bias))


def random_unit(**flags):
    torch.manual_seed(5)
    unit = NestedLSTM(D, H, dtype=torch.float64, **flags)
    for parameter in unit.parameters():
        torch.nn.init.normal_(parameter)
    return unit


either_way = pytest.mark.parametrize("way", [nullcontext, disabled], ids=["the fast path", "the readable step"])


@either_way
def test_depth_2_is_equations_1_to_15(way):
    unit = random_unit()
    (Wi, Wf, Wc, Wo), (Ui, Uf, Uc, Uo), (bi, bf, bc, bo) = maps(unit.layers[0])
    (Vi, Vf, Vc, Vo), (Ri, Rf, Rc, Ro), (di, df, dc, do) = maps(unit.layers[0].memory)
    x = torch.randn(T, B, D, dtype=torch.float64)
    h, c, c_in = (np.zeros((B, H)) for _ in range(3))
    expected = []
    for x_t in x.numpy():
        i = sigmoid(x_t @ Wi.T + h @ Ui.T + bi)  # 1
        f = sigmoid(x_t @ Wf.T + h @ Uf.T + bf)  # 2
        o = sigmoid(x_t @ Wo.T + h @ Uo.T + bo)  # 5
        h_tilde = f * c  # 7
        x_tilde = i * (x_t @ Wc.T + h @ Uc.T + bc)  # 8, with the identity of section 4
        i_in = sigmoid(x_tilde @ Vi.T + h_tilde @ Ri.T + di)  # 10
        f_in = sigmoid(x_tilde @ Vf.T + h_tilde @ Rf.T + df)  # 11
        c_in = f_in * c_in + i_in * np.tanh(x_tilde @ Vc.T + h_tilde @ Rc.T + dc)  # 12
        o_in = sigmoid(x_tilde @ Vo.T + h_tilde @ Ro.T + do)  # 13, with its tildes
        c = o_in * np.tanh(c_in)  # 14, 15
        h = o * np.tanh(c)  # 6
        expected.append(h)
    with way():
        output, (h_n, memories) = unit(x)
    np.testing.assert_allclose(output.detach().numpy(), np.stack(expected), rtol=0, atol=1e-12)
    np.testing.assert_allclose(h_n[0].detach().numpy(), h, rtol=0, atol=1e-12)
    np.testing.assert_allclose(memories[0].detach().numpy(), np.stack([c, c_in]), rtol=0, atol=1e-12)


@either_way
@pytest.mark.parametrize("candidate", ["identity", "tanh"])
def test_deeper_ones_are_the_equations_nested(candidate, way):
    """The candidate's function is the outermost's alone; only the innermost memory adds."""

    def step(cell, x, h, memories, sigma):
        (Wi, Wf, Wc, Wo), (Ui, Uf, Uc, Uo), (bi, bf, bc, bo) = maps(cell)
        i, f, o = (
            sigmoid(x @ Wi.T + h @ Ui.T + bi),
            sigmoid(x @ Wf.T + h @ Uf.T + bf),
            sigmoid(x @ Wo.T + h @ Uo.T + bo),
        )
        g, c, inner = sigma(x @ Wc.T + h @ Uc.T + bc), memories[0], []
        if memories[1:]:
            c, inner = step(cell.memory, i * g, f * c, memories[1:], np.tanh)
        else:
            c = f * c + i * g
        return o * np.tanh(c), [c, *inner]

    unit = random_unit(depth=3, candidate=candidate)
    x = torch.randn(T, B, D, dtype=torch.float64)
    h, memories, expected = np.zeros((B, H)), [np.zeros((B, H))] * 3, []
    for x_t in x.numpy():
        h, memories = step(unit.layers[0], x_t, h, memories, np.tanh if candidate == "tanh" else lambda a: a)
        expected.append(h)
    with way():
        output, (_h_n, found) = unit(x)
    np.testing.assert_allclose(output.detach().numpy(), np.stack(expected), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[0].detach().numpy(), np.stack(memories), rtol=0, atol=1e-12)


def test_any_cell_can_be_nested():
    unit = random_unit(memory=GRUCell)
    cell = unit.layers[0]
    assert cell.depth == 1  # a GRU keeps no memory of its own
    x, h, c = (torch.randn(B, n, dtype=torch.float64) for n in (D, H, H))
    i, f, g, o = (x @ cell.weight_ih.t() + h @ cell.weight_hh.t() + cell.bias).chunk(4, -1)
    new = cell.memory(i.sigmoid() * g, f.sigmoid() * c)
    got_h, got_memories = cell(x, (h, c.unsqueeze(0)))
    torch.testing.assert_close(got_memories[0], new, rtol=0, atol=1e-12)
    torch.testing.assert_close(got_h, o.sigmoid() * new.tanh(), rtol=0, atol=1e-12)

    nested = random_unit(memory=functools.partial(NestedLSTMCell, depth=2, memory=LayerNormLSTMCell))
    assert nested.layers[0].depth == 3
    assert nested(torch.randn(T, B, D, dtype=torch.float64))[1][1].shape == (1, 3, B, H)
    unit = NestedLSTM(D, H, num_layers=2, memory=LSTMCell)
    assert unit.layers[0].memory is not unit.layers[1].memory


def test_gates_start_at_their_biases_and_matrices_as_the_paper_says():
    unit = NestedLSTM(D, H, num_layers=2, forget_bias=2.0, inner_forget_bias=-1.0)
    for cell in unit.layers:
        assert cell.bias.view(4, H).mean(1).tolist() == [0, 2, 0, 0]
        assert cell.memory.bias.view(4, H).mean(1).tolist() == [0, -1, 0, 0]
        for matrix in (cell.weight_hh, cell.memory.weight_ih, cell.memory.weight_hh):
            for block in matrix.split(H):
                torch.testing.assert_close(block @ block.t(), torch.eye(H))
    for block in unit.layers[1].weight_ih.split(H):  # it takes a hidden state, not the input vector
        torch.testing.assert_close(block @ block.t(), torch.eye(H))
    input_bias = NestedLSTM(D, H, inner_input_bias=-1.0, inner_forget_bias=2.0).layers[0].memory.bias
    assert input_bias.view(4, H).mean(1).tolist() == [-1, 2, 0, 0]
    first = unit.layers[0].weight_ih
    assert first.abs().max() <= (6 / (D + H)) ** 0.5
    for block in LSTM(D, 50, initialization="glorot").layers[0].weight_hh.split(50):
        assert 0.95 < block.abs().max() / (6 / 100) ** 0.5 <= 1
    assert NestedLSTM(D, H, initialization="torch", forget_bias=0.0).layers[0].bias.abs().max() <= H**-0.5


def test_madsens_cells_start_every_gate_of_a_kernel_within_one_bound():
    """Its cells keep one kernel [inputs, outputs]: 4 gates in an LSTM, r and u in a GRU, and the candidate alone."""
    d, h = 30, 50
    nested = NestedLSTM(d, h, initialization="madsen").layers[0]
    gru = GRU(d, h, initialization="madsen").layers[0]
    rnn = RNN(d, h, initialization="madsen").layers[0]
    for matrices, fans in (
        ((nested.weight_ih, nested.weight_hh), d + h + 4 * h),
        ((nested.memory.weight_ih, nested.memory.weight_hh), 2 * h + 4 * h),
        ((gru.weight_ih[: 2 * h], gru.weight_hh[: 2 * h]), d + h + 2 * h),
        ((gru.weight_ih[2 * h :], gru.weight_hh[2 * h :]), d + h + h),
        ((rnn.weight_ih, rnn.weight_hh), d + h + h),
    ):
        for matrix in matrices:
            for block in matrix.split(h):
                assert 0.95 < block.abs().max() / (6 / fans) ** 0.5 <= 1
    assert nested.bias.view(4, h).mean(1).tolist() == [0, 1, 0, 0]
    assert gru.bias.view(3, h).mean(1).tolist() == [1, 1, 0]


def test_the_candidates_recurrent_matrix_may_start_at_the_identity_and_nothing_else_changes():
    found = []
    for flags in ({}, {"candidate_start": "identity"}):
        torch.manual_seed(3)
        found.append(LSTM(5, 4, num_layers=2, **flags).state_dict())
    for name, value in found[0].items():
        if name.endswith("weight_hh"):
            i, f, g, o = value.chunk(4)
            torch.testing.assert_close(g @ g.T, torch.eye(4))  # orthogonal, and not the identity
            assert not torch.equal(g, torch.eye(4))
            value = torch.cat([i, f, torch.eye(4), o])
        assert torch.equal(found[1][name], value), name


# Guards of the inner memory, against the equations and at their edges.

every_guard = pytest.mark.parametrize("guard", ["coupled", "refined", "clipped", "normalized"])


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


@every_guard
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


@every_guard
def test_where_every_gate_is_pinned_a_guarded_memory_does_not_count_and_the_lstm_does(guard):
    x = torch.randn(50, 2, D)
    ends = []
    for inner_cell in (guard, "lstm"):
        torch.manual_seed(0)
        unit = NestedLSTM(D, H, inner_cell=inner_cell)
        torch.nn.init.constant_(unit.layers[0].memory.bias, 20.0)  # every gate and the candidate at 1
        ends.append(unit(x)[1][1][0, 1].abs().max().item())
    assert ends[0] <= 2 < 40 < ends[1]  # of four units a normalized one is at most 2 away from their mean


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
    memory = NestedLSTM(D, 2000, inner_chrono=11).layers[0].memory
    i, f, g, o = memory.bias.view(4, 2000)
    assert torch.equal(i, -f)
    assert not g.any()
    assert not o.any()
    torch.testing.assert_close(f.exp().sort().values, torch.linspace(1, 10, 2000), atol=0.5, rtol=0)
