"""The units of fixed timescales: the hierarchical RNN with given boundaries, and the clockwork RNN."""

import numpy as np
import pytest
import torch
from scipy.special import expit as sigmoid

from nlstm_lab.cells import LSTM, ClockworkRNN, HierarchicalRNN, HierarchicalRNNCell

T, B, D, H, L = 12, 3, 5, 8, 3
DOUBLE = torch.float64


def close(tensor, array):
    np.testing.assert_allclose(tensor.detach().numpy(), array, rtol=0, atol=1e-12)


def randomized(unit):
    for parameter in unit.parameters():
        torch.nn.init.normal_(parameter)
    return unit


def test_hierarchical_rnn_is_figure_1a():
    torch.manual_seed(0)
    unit = randomized(HierarchicalRNN(D, H, L, all_layers=True, dtype=DOUBLE))
    x, boundaries = torch.randn(T, B, D, dtype=DOUBLE), torch.randint(2, (T, B, L - 1))
    output, (h_n, c_n, _z_n) = unit(x, boundaries)
    cells = [{name: p.detach().numpy() for name, p in cell.state_dict().items()} for cell in unit.layers]
    for row in range(B):
        h, c = ([np.zeros(H) for _ in range(L)] for _ in range(2))
        anew = [False] * L
        for t in range(T):
            h_last, ends = list(h), [True, *boundaries[t, row].cumprod(-1).bool().tolist(), False]
            for l, p in enumerate(cells):
                if not ends[l]:  # the layer below is within a segment
                    continue
                below = x[t, row].numpy() if l == 0 else h[l - 1]
                recurrent = p["weight_th"] @ h_last[l + 1] if anew[l] else p["weight_hh"] @ h_last[l]
                i, f, g, o = np.split(p["weight_ih"] @ below + recurrent + p["bias"], 4)
                c[l] = sigmoid(f) * c[l] * (not anew[l]) + sigmoid(i) * np.tanh(g)
                h[l] = sigmoid(o) * np.tanh(c[l])
                anew[l] = ends[l + 1]
            close(output[t, row], np.concatenate(h))
        close(h_n[:, row], np.stack(h))
        close(c_n[:, row], np.stack(c))


def test_one_layer_is_an_lstm_and_so_is_the_lowest_within_a_segment():
    lstm = LSTM(D, H, dtype=DOUBLE)
    x = torch.randn(T, B, D, dtype=DOUBLE)
    for layers in (1, 3):
        unit = HierarchicalRNN(D, H, layers, all_layers=True, dtype=DOUBLE)
        unit.load_state_dict(lstm.state_dict(), strict=False)
        output, _last = unit(x, torch.zeros(T, B, layers - 1))
        torch.testing.assert_close(output[..., :H], lstm(x)[0], rtol=0, atol=1e-12)
        assert not output[..., H:].any()


def test_a_new_segment_forgets_the_layers_own_past_and_hears_the_layer_above():
    cell = HierarchicalRNNCell(D, H)
    x, h, c, above = (torch.randn(B, n) for n in (D, H, H, H))
    ended, now = torch.ones(B), torch.ones(B)
    new = cell(x, (h, c, ended), z_below=now, h_above=above)
    other_past = cell(x, (c, h, ended), z_below=now, h_above=above)
    assert all(map(torch.equal, new, other_past))
    assert not torch.isclose(new[0], cell(x, (h, c, ended), z_below=now, h_above=-above)[0]).any()
    waiting = cell(x, (h, c, ended), z_below=0 * now, h_above=above)
    assert all(map(torch.equal, waiting, (h, c, ended)))


@pytest.mark.parametrize("layer_norm", [False, True])
def test_clockwork_rnn_is_its_equations(layer_norm):
    torch.manual_seed(1)
    periods, width = (1, 2, 4, 8), H // 4
    unit = randomized(ClockworkRNN(D, H, periods=periods, layer_norm=layer_norm, dtype=DOUBLE))
    cell = unit.layers[0]
    x = torch.randn(20, D, dtype=DOUBLE)
    W, b = cell.weight_ih.detach().numpy(), cell.bias.detach().numpy()
    U = np.zeros((H, H))  # upper block-triangular: modules read themselves and slower ones
    for k, block in enumerate(cell.weight_hh):
        U[k * width : (k + 1) * width, k * width :] = block.detach().numpy()
    h, expected = np.zeros(H), []
    for t, x_t in enumerate(x.numpy()):
        s = W @ x_t + U @ h
        if layer_norm:
            m = s.reshape(4, width)
            m = (m - m.mean(1, keepdims=True)) / np.sqrt(m.var(1, keepdims=True) + 1e-5)
            s = m.ravel() * cell.gain.detach().numpy()
        h_new = np.tanh(s + b)
        h = np.where(np.repeat([t % period == 0 for period in periods], width), h_new, h)
        expected.append(h)
    close(unit(x)[0], np.stack(expected))
    assert sum(parameter.numel() for parameter in unit.parameters()) == D * H + H * H * 10 // 16 + (1 + layer_norm) * H
    first, state = unit(x[:5])  # a carried state keeps the rhythm
    assert state[1].tolist() == [5]
    close(torch.cat([first, unit(x[5:], state)[0]]), np.stack(expected))


def test_slow_modules_do_not_hear_fast_ones():
    unit = ClockworkRNN(D, H, layer_norm=True)
    h = torch.randn(1, B, H, requires_grad=True)
    output, _last = unit(torch.randn(T, B, D), (h, torch.zeros(1, B, dtype=torch.long)))
    for k in range(4):
        (gradient,) = torch.autograd.grad(output[..., 2 * k : 2 * k + 2].sum(), h, retain_graph=True)
        assert not gradient[..., : 2 * k].any()
        assert gradient[..., 2 * k :].any()
