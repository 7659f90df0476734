"""The HM-LSTM is equations 1-9 of its paper, and its gradient the straight-through one, by definition."""

import itertools

import numpy as np
import pytest
import torch

from nlstm_lab.cells import HMLSTM, HMLSTMCell, LayerNormLSTMCell, LSTMCell, Operation

T, B, D, H, L = 40, 4, 5, 6, 3
DOUBLE = torch.float64


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def hard_sigm(x, a):
    return np.maximum(0, np.minimum(1, (a * x + 1) / 2))


class Transcription:
    """The equations for one sequence [T, D], layer by layer, step by step, in NumPy; no batch, no shortcut.

    `offsets[t, l]`, where given, replace the step function: z = z~ + offset, the function that the
    straight-through estimator really differentiates (at the point from which the offsets were taken).
    """

    def __init__(self, unit, slope=1.0, soft=False, from_hidden=False):
        self.cells = [{name: p.detach().numpy() for name, p in c.state_dict().items()} for c in unit.layers]
        self.slope, self.soft, self.from_hidden = slope, soft, from_hidden

    def __call__(self, xs, offsets=None):
        h = [np.zeros(H) for _ in range(L)]
        c = [np.zeros(H) for _ in range(L)]
        z = [0.0] * L
        hs, zs, self.offsets, self.seen = [], [], np.zeros((len(xs), L)), set()
        for t, x in enumerate(xs):
            h_last, c_last, z_last = list(h), list(c), list(z)
            h_below, z_below = x, 1.0  # h^0_t = x_t, z^0_t = 1
            for l, p in enumerate(self.cells):
                s = p["weight_hh"] @ h_last[l]  # 5
                if l < L - 1:
                    s = s + z_last[l] * (p["weight_th"] @ h_last[l + 1])  # 6
                s = s + z_below * (p["weight_ih"] @ h_below) + p["bias"]  # 7
                i, f, g, o = s[:H], s[H : 2 * H], s[2 * H : 3 * H], s[3 * H : 4 * H]
                i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)  # 4
                if self.soft or offsets is not None:
                    copy = (1 - z_last[l]) * (1 - z_below)
                    update = (1 - z_last[l]) * z_below
                    c[l] = update * (f * c_last[l] + i * g) + copy * c_last[l] + z_last[l] * (i * g)
                    h[l] = copy * h_last[l] + (1 - copy) * o * np.tanh(c[l])
                elif z_last[l] == 0 and z_below == 1:  # 2, UPDATE
                    c[l] = f * c_last[l] + i * g
                    h[l] = o * np.tanh(c[l])  # 3
                elif z_last[l] == 0 and z_below == 0:  # 2, COPY
                    c[l], h[l] = c_last[l], h_last[l]  # 3
                else:  # 2, FLUSH
                    c[l] = i * g
                    h[l] = o * np.tanh(c[l])  # 3
                if l < L - 1:
                    pre = p["weight_z"][0] @ h[l] if self.from_hidden else s[4 * H]  # footnote 2, or 4
                    z_tilde = hard_sigm(pre, self.slope)
                    fired = float(z_tilde > 0.5)  # 9
                    self.offsets[t, l] = fired - z_tilde
                    z[l] = z_tilde if self.soft else fired if offsets is None else z_tilde + offsets[t, l]
                self.seen.add((l, z_below, z_last[l], z[l]))
                h_below, z_below = h[l], z[l]
            hs.append(np.concatenate(h))
            zs.append(list(z))
        return np.stack(hs), np.array(zs)


def random_unit(seed=4, scale=1.0, **flags):
    torch.manual_seed(seed)
    unit = HMLSTM(D, H, L, all_layers=True, dtype=DOUBLE, **flags)
    for parameter in unit.parameters():
        torch.nn.init.normal_(parameter, std=scale)
    for cell in unit.layers[:-1]:
        torch.nn.init.zeros_(cell.bias[-1:])  # detectors in balance, so that everything happens
    return unit


@pytest.mark.parametrize(
    "flags",
    [{}, {"selection": "hard"}, {"detect_from": "hidden"}, {"boundary": "soft"}],
    ids=["arithmetic", "hard", "footnote 2", "soft"],
)
def test_the_unrolled_unit_is_the_equations(flags):
    unit = random_unit(**flags)
    unit.slope = 1.5
    equations = Transcription(unit, 1.5, "boundary" in flags, "detect_from" in flags)
    x = torch.randn(T, B, D, dtype=DOUBLE)
    output, (h_n, _c_n, z_n), layers = unit.trace(x)
    z = torch.stack([layer["z"] for layer in layers])
    seen = set()
    for row in range(B):
        hs, zs = equations(x[:, row].numpy())
        seen |= equations.seen
        np.testing.assert_allclose(output[:, row].detach().numpy(), hs, rtol=0, atol=1e-12)
        np.testing.assert_allclose(z[:, :, row].detach().numpy().T, zs, rtol=0, atol=1e-12)
        np.testing.assert_allclose(h_n[:, row].flatten().detach().numpy(), hs[-1], rtol=0, atol=1e-12)
        np.testing.assert_allclose(z_n[:, row].detach().numpy(), zs[-1], rtol=0, atol=1e-12)
    if not flags.keys() & {"boundary", "detect_from"}:  # a copied h fires no detector of footnote 2
        middle = {combination[1:] for combination in seen if combination[0] == 1}
        assert middle == set(itertools.product((0.0, 1.0), repeat=3))  # below now, own before, own now


@pytest.mark.parametrize("selection", ["arithmetic", "hard"])
@pytest.mark.parametrize(("z_below", "z_last", "z_now"), [*itertools.product((0.0, 1.0), repeat=3)])
def test_a_step_in_each_of_the_eight_combinations(z_below, z_last, z_now, selection):
    torch.manual_seed(2)
    cell = HMLSTMCell(D, H, selection=selection, dtype=DOUBLE)
    with torch.no_grad():
        cell.bias[-1] = 20 if z_now else -20
    cell.requires_grad_(False)
    x, h, c, h_above = (torch.randn(n, dtype=DOUBLE) for n in (D, H, H, H))
    z = torch.tensor(z_last, dtype=DOUBLE)
    got_h, got_c, got_z = cell(x, (h, c, z), torch.tensor(z_below, dtype=DOUBLE), h_above)
    s = cell.weight_hh @ h + z_last * (cell.weight_th @ h_above) + z_below * (cell.weight_ih @ x) + cell.bias
    i, f, g, o = s[: 4 * H].chunk(4)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    if z_last:  # FLUSH
        c_new = i * g
    elif z_below:  # UPDATE
        c_new = f * c + i * g
    else:  # COPY
        assert torch.equal(got_c, c)
        assert torch.equal(got_h, h)
        c_new = None
    if c_new is not None:
        torch.testing.assert_close(got_c, c_new, rtol=0, atol=1e-12)
        torch.testing.assert_close(got_h, o * c_new.tanh(), rtol=0, atol=1e-12)
    assert got_z.item() == z_now


@pytest.mark.parametrize("selection", ["arithmetic", "hard"])
def test_without_boundaries_upper_layers_keep_their_states_bit_for_bit(selection):
    unit = random_unit(selection=selection)
    with torch.no_grad():
        for cell in unit.layers[:-1]:
            cell.weight_ih[-1] = cell.weight_hh[-1] = cell.weight_th[-1] = 0
            cell.bias[-1] = -1
    h, c, z = (
        torch.randn(L, B, H, dtype=DOUBLE),
        torch.randn(L, B, H, dtype=DOUBLE),
        torch.zeros(L, B, dtype=DOUBLE),
    )
    output, (h_n, c_n, z_n), layers = unit.trace(torch.randn(T, B, D, dtype=DOUBLE), (h, c, z))
    assert not z_n.any()
    assert all((layer["operation"] == Operation.COPY).all() for layer in layers[1:])
    assert (layers[0]["operation"] == Operation.UPDATE).all()
    assert torch.equal(h_n[1:], h[1:])
    assert torch.equal(c_n[1:], c[1:])
    assert torch.equal(output[:, :, H:], torch.cat([h[1], h[2]], -1).expand(T, B, 2 * H))


@pytest.mark.parametrize("selection", ["arithmetic", "hard"])
@pytest.mark.parametrize("z_below", [0.0, 1.0])
def test_flush_ignores_the_old_cell_but_not_the_old_hidden_state(selection, z_below):
    cell = HMLSTMCell(D, H, selection=selection, dtype=DOUBLE)
    x, h, c, above = (torch.randn(B, n, dtype=DOUBLE) for n in (D, H, H, H))
    ended, below = torch.ones(B, dtype=DOUBLE), torch.full((B,), z_below, dtype=DOUBLE)
    once = cell(x, (h, c, ended), below, above)
    other_c = cell(x, (h, torch.randn_like(c), ended), below, above)
    other_h = cell(x, (torch.randn_like(h), c, ended), below, above)
    assert all(torch.equal(a, b) for a, b in zip(once, other_c, strict=True))
    assert not torch.isclose(once[0], other_h[0]).any()
    other_above = cell(x, (h, c, ended), below, torch.randn_like(above))
    assert not torch.isclose(once[0], other_above[0]).any()


@pytest.mark.parametrize("layer_norm", [False, True])
def test_update_is_an_lstm_step(layer_norm):
    flags = {"layer_norm": True, "normalize_cell": True} if layer_norm else {}
    hm = HMLSTMCell(D, H, dtype=DOUBLE, **flags)
    lstm = LayerNormLSTMCell(D, H, normalized="sum", dtype=DOUBLE) if layer_norm else LSTMCell(D, H, dtype=DOUBLE)
    for cell in (hm, lstm):
        for parameter in cell.parameters():
            torch.nn.init.normal_(parameter)
    shared = {name: weight[: 4 * H] for name, weight in hm.state_dict().items() if name in lstm.state_dict()}
    lstm.load_state_dict(shared)
    x, h, c = (torch.randn(B, n, dtype=DOUBLE) for n in (D, H, H))
    got = hm(x, (h, c, torch.zeros(B, dtype=DOUBLE)), h_above=torch.randn(B, H, dtype=DOUBLE))
    for a, b in zip(got[:2], lstm(x, (h, c)), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("slope", [1.0, 3.0])
def test_boundary_gradient_is_the_hard_sigmoids_or_the_identitys(slope):
    s = torch.tensor([-2.0, -0.3, -0.1, 0.2, 2.0], dtype=DOUBLE)
    gradients = {}
    for straight_through in ("clamped", "identity"):
        cell = HMLSTMCell(1, 1, straight_through=straight_through, bias=False, dtype=DOUBLE)
        cell.slope.fill_(slope)
        torch.nn.init.ones_(cell.weight_ih)
        x = s.unsqueeze(-1).clone().requires_grad_()
        _h, _c, z = cell(x)
        assert z.tolist() == [0, 0, 0, 1, 1]  # exactly
        z.sum().backward()
        gradients[straight_through] = x.grad[:, 0]
    assert gradients["identity"].tolist() == [1] * 5
    inside = (slope * s).abs() < 1
    torch.testing.assert_close(gradients["clamped"], torch.where(inside, slope / 2, 0.0).double())


def test_straight_through_gradient_of_the_unit_is_that_of_the_function_it_stands_for():
    """Backward the step is a hard sigmoid: finite differences of the equations with z = z~ + a constant."""
    unit = random_unit(seed=4, scale=0.6)
    x = torch.randn(12, D, dtype=DOUBLE)
    weights = torch.randn(12, L * H, dtype=DOUBLE)
    (unit(x)[0] * weights).sum().backward()
    equations = Transcription(unit)
    hs, _zs = equations(x.numpy())
    offsets = equations.offsets
    np.testing.assert_allclose(equations(x.numpy(), offsets)[0], hs, rtol=0, atol=1e-12)
    rng = np.random.default_rng(0)
    reached = 0
    for layer, name in itertools.product(range(L), ("weight_ih", "weight_hh", "weight_th", "bias")):
        if name not in equations.cells[layer]:
            continue
        values = equations.cells[layer][name]
        gradient = getattr(unit.layers[layer], name).grad
        rows = [*rng.choice(len(values), 3, replace=False), len(values) - 1]  # the last row is the detector's
        for row in rows:
            index = (row,) if values.ndim == 1 else (row, 0)
            kept, differences = values[index], []
            for step in (1e-6, -1e-6):
                values[index] = kept + step
                differences.append((equations(x.numpy(), offsets)[0] * weights.numpy()).sum())
            values[index] = kept
            assert gradient[index].item() == pytest.approx((differences[0] - differences[1]) / 2e-6, abs=1e-6)
            reached += gradient[index].item() != 0
    assert reached > 30


def test_hard_selection_passes_no_gradient_through_the_choice():
    gradients = {}
    for selection in ("arithmetic", "hard"):
        torch.manual_seed(0)
        cell = HMLSTMCell(D, H, selection=selection, dtype=DOUBLE)
        torch.nn.init.zeros_(cell.weight_th)  # the other way of z_last to reach the output
        z_last = torch.ones(B, dtype=DOUBLE, requires_grad=True)
        h, c, _z = cell(torch.randn(B, D).double(), (torch.randn(B, H).double(), torch.randn(B, H).double(), z_last))
        (h.sum() + c.sum()).backward()
        gradients[selection] = 0 if z_last.grad is None else z_last.grad.abs().sum().item()
    assert gradients["hard"] == 0
    assert gradients["arithmetic"] > 0
