"""The HM-LSTM is equations 1-9 of its paper, and its gradient the straight-through one, by definition."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import expit as sigmoid

from nlstm_lab.cells import HMLSTM, HMLSTMCell, Operation

T, B, D, H, L = 40, 4, 5, 6, 3
DOUBLE = torch.float64


def hard_sigm(x, a):
    return np.maximum(0, np.minimum(1, (a * x + 1) / 2))


class Transcription:
    """The equations for one sequence [T, D], layer by layer, step by step, in NumPy; no batch, no shortcut.

    `offsets[t, l]`, where given, replace the step function: z = z~ + offset, the function that the
    straight-through estimator really differentiates (at the point from which the offsets were taken).
    """

    def __init__(self, unit, slope=1.0, boundary="", detect_from="", reset=True, top_down=True, **_):
        self.cells = [{name: p.detach().numpy() for name, p in c.state_dict().items()} for c in unit.layers]
        self.slope, self.soft, self.from_hidden = slope, bool(boundary), bool(detect_from)
        self.reset, self.top_down = reset, top_down

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
                if l < L - 1 and self.top_down:
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
                    c[l] = i * g + (0 if self.reset else f * c_last[l])
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
    [{}, {"selection": "hard"}, {"detect_from": "hidden"}, {"boundary": "soft"}, {"reset": False}, {"top_down": False}],
)
def test_the_unrolled_unit_is_the_equations(flags):
    unit = random_unit(**flags)
    unit.slope = 1.5
    equations = Transcription(unit, 1.5, **flags)
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
    if not flags.keys() & {"boundary", "detect_from", "top_down"}:  # a copied h fires no detector of footnote 2
        middle = {combination[1:] for combination in seen if combination[0] == 1}
        assert middle == set(itertools.product((0.0, 1.0), repeat=3))  # below now, own before, own now


def test_a_normed_update_is_a_normed_lstm_step():
    hm = HMLSTMCell(D, H, dtype=DOUBLE, layer_norm=True, normalize_cell=True)
    for parameter in hm.parameters():
        torch.nn.init.normal_(parameter)
    x, h, c = (torch.randn(B, n, dtype=DOUBLE) for n in (D, H, H))
    norm = torch.nn.functional.layer_norm  # of the four gates' sum, and of the cell on its way out
    summed = norm(x @ hm.weight_ih[: 4 * H].t() + h @ hm.weight_hh[: 4 * H].t(), (4 * H,), hm.norm.weight)
    i, f, g, o = (summed + hm.bias[: 4 * H]).chunk(4, -1)
    inside = f.sigmoid() * c + i.sigmoid() * g.tanh()
    expected = o.sigmoid() * norm(inside, (H,), hm.norm_c.weight, hm.norm_c.bias).tanh(), inside
    got = hm(x, (h, c, torch.zeros(B, dtype=DOUBLE)), h_above=torch.randn(B, H, dtype=DOUBLE))
    for a, b in zip(got[:2], expected, strict=True):
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


def test_it_has_the_rows_that_its_equations_give():
    lowest, middle, top = (4 * H + 1) * (D + H + H + 1), (4 * H + 1) * (3 * H + 1), 4 * H * (2 * H + 1)
    assert sum(parameter.numel() for parameter in HMLSTM(D, H, 3).parameters()) == lowest + middle + top


@pytest.mark.parametrize("detect_from", ["preactivation", "hidden"])
def test_the_detectors_weights_alone_start_scaled(detect_from):
    cells = []
    for scale in (1.0, 0.25):
        torch.manual_seed(0)
        cells.append(HMLSTMCell(D, H, detect_from=detect_from, detector_scale=scale).state_dict())
    for name, value in cells[0].items():
        if name == "weight_z" or (detect_from == "preactivation" and name.startswith("weight")):
            value[-1] *= 0.25
        assert torch.equal(cells[1][name], value), name


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


# The choices: sampling, slope, threshold, norms; and what holds whichever are taken.


def test_sampling_follows_the_seed_and_its_probability():
    torch.manual_seed(0)
    cell = HMLSTMCell(1, 2, boundary="sample", dtype=DOUBLE)
    with torch.no_grad():
        cell.weight_ih[-1], cell.bias[-1] = 0, -0.4  # z~ = .3
    rows = torch.zeros(20_000, 1, dtype=DOUBLE)
    z = cell(rows)[2]
    assert set(z.tolist()) == {0.0, 1.0}
    assert z.mean().item() == pytest.approx(0.3, abs=4 * (0.3 * 0.7 / 20_000) ** 0.5)

    unit = HMLSTM(D, H, L, boundary="sample")
    x, outputs = torch.randn(T, B, D), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outputs.append(unit(x)[0])
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


@pytest.mark.slow
def test_slope_is_set_for_every_layer_and_saved():
    unit = HMLSTM(D, H, L, boundary="soft")
    x = torch.randn(T, B, D)
    before = unit(x)[0]
    assert unit.slope == 1
    unit.slope = 3.0
    before.sum().backward()  # an old graph is left alone
    after = unit(x)[0]
    assert not torch.equal(before, after)
    again = HMLSTM(D, H, L, boundary="soft")
    again.load_state_dict(unit.state_dict())
    assert again.slope == 3
    assert torch.equal(again(x)[0], after)
    with pytest.raises(ValueError, match=r"slope.*0"):
        unit.slope = 0


def test_threshold_and_detection_on_copy():
    always = HMLSTMCell(D, H, threshold=0.0)
    with torch.no_grad():
        always.weight_ih[-1], always.bias[-1] = 0, -0.9  # z~ = .05
    assert always(torch.randn(B, D))[2].tolist() == [1] * B
    z_below = torch.tensor([0.0, 1.0])
    for detect_on_copy, expected in ((True, [1, 1]), (False, [0, 1])):
        cell = HMLSTMCell(D, H, detect_on_copy=detect_on_copy)
        with torch.no_grad():
            cell.bias[-1] = 20
        assert cell(torch.randn(2, D), z_below=z_below)[2].tolist() == expected


def test_layer_norm_does_not_touch_the_detector_by_default():
    torch.manual_seed(0)
    x = torch.randn(50, D, dtype=DOUBLE)
    for normalized in (False, True):
        cell = HMLSTMCell(D, H, boundary="soft", layer_norm=True, normalize_boundary=normalized, dtype=DOUBLE)
        z = cell(x)[2]
        louder = HMLSTMCell(D, H, boundary="soft", layer_norm=True, normalize_boundary=normalized, dtype=DOUBLE)
        louder.load_state_dict(cell.state_dict())
        with torch.no_grad():
            louder.weight_ih.mul_(3)
        s = x @ cell.weight_ih[-1] if not normalized else None
        if normalized:  # the norm hides how loud the input is, but for epsilon
            torch.testing.assert_close(louder(x)[2], z, rtol=0, atol=1e-4)
        else:
            torch.testing.assert_close(z, ((s + 1) / 2).clamp(0, 1))
            assert not torch.allclose(louder(x)[2], z, atol=0.01)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.integers(1, 8),
    rows=st.integers(1, 3),
    layers=st.integers(1, 4),
    units=st.integers(1, 5),
    seed=st.integers(0, 2**16),
    selection=st.sampled_from(["arithmetic", "hard"]),
    detect_from=st.sampled_from(["preactivation", "hidden"]),
    boundary=st.sampled_from(["step", "sample", "soft"]),
    threshold=st.sampled_from([0.4, 0.5]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_operations_are_what_the_boundaries_say(
    steps, rows, layers, units, seed, dtype, boundary, threshold, selection, detect_from
):
    torch.manual_seed(seed)
    soft = boundary == "soft"
    flags = {"boundary": boundary, "threshold": threshold, "selection": "arithmetic" if soft else selection}
    unit = HMLSTM(3, units, layers, dtype=dtype, detect_from=detect_from, **flags)
    for parameter in unit.parameters():
        torch.nn.init.normal_(parameter, std=2)
    trace, z_below = unit.trace(torch.randn(steps, rows, 3, dtype=dtype))[2], torch.ones(steps, rows, dtype=dtype)
    for layer in trace:
        z = layer["z"]
        z_last = torch.cat([torch.zeros(1, rows, dtype=dtype), z[:-1]])
        unflushed = torch.where(z_below > threshold, Operation.UPDATE, Operation.COPY)
        expected = torch.where(z_last > threshold, Operation.FLUSH, unflushed)
        assert torch.equal(layer["operation"], expected)
        z_below = z
        if soft:
            continue
        assert ((z == 0) | (z == 1)).all()
        for name in ("h", "c"):
            before = torch.cat([torch.zeros(1, rows, units, dtype=dtype), layer[name][:-1]])
            copied = (expected == Operation.COPY).unsqueeze(-1)
            assert torch.equal(layer[name] * copied, before * copied)  # bit for bit
    assert not trace[-1]["z"].any()


@pytest.mark.parametrize(("steps", "rows", "layers"), [(1, 1, 1), (T, B, L)])
def test_the_gradients_limit_holds_at_every_step_and_changes_nothing_else(steps, rows, layers):
    """A bias collects the pre-activation's gradient from every step and sequence; of one it is that gradient."""
    x = torch.randn(steps, rows, D, dtype=DOUBLE)
    outputs, gradients = {}, {}
    for limit in (None, 1e9, 1e-3):
        torch.manual_seed(0)
        unit = HMLSTM(D, H, layers, gradient_limit=limit, dtype=DOUBLE)
        outputs[limit] = unit(x)[0]
        outputs[limit].square().sum().backward()
        gradients[limit] = unit.layers[0].bias.grad
    assert torch.equal(outputs[None], outputs[1e-3])
    assert torch.equal(gradients[None], gradients[1e9])
    assert gradients[1e-3].abs().max() <= steps * rows * 1e-3 < gradients[None].abs().max()
    if steps * rows == 1:
        assert torch.equal(gradients[None].clamp(-1e-3, 1e-3), gradients[1e-3])
