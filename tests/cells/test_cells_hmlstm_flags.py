"""The HM-LSTM's choices: sampling, slope, threshold, norms; and what holds whichever are taken."""

from typing import ClassVar

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nlstm_lab.cells import HMLSTM, HMLSTMCell, Operation

T, B, D, H, L = 40, 4, 5, 6, 3
DOUBLE = torch.float64


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


def test_of_soft_boundaries_the_operation_is_noted_by_the_threshold():
    torch.manual_seed(0)
    unit = HMLSTM(D, H, L, boundary="soft", threshold=0.4)
    for parameter in unit.parameters():
        torch.nn.init.normal_(parameter)
    layers, z_below, seen = unit.trace(torch.randn(T, B, D))[2], torch.ones(T, B), set()
    for layer in layers:
        z_last = torch.cat([torch.zeros(1, B), layer["z"][:-1]])
        unflushed = torch.where(z_below > 0.4, Operation.UPDATE, Operation.COPY)
        assert torch.equal(layer["operation"], torch.where(z_last > 0.4, Operation.FLUSH, unflushed))
        seen |= set(layer["operation"].unique().tolist())
        z_below = layer["z"]
    assert seen == set(Operation)


def test_layer_norm_leaves_the_detector_alone_by_default():
    torch.manual_seed(0)
    x = torch.randn(50, D, dtype=DOUBLE)
    for together in (False, True):
        cell = HMLSTMCell(D, H, boundary="soft", layer_norm=True, normalize_boundary=together, dtype=DOUBLE)
        z = cell(x)[2]
        louder = HMLSTMCell(D, H, boundary="soft", layer_norm=True, normalize_boundary=together, dtype=DOUBLE)
        louder.load_state_dict(cell.state_dict())
        with torch.no_grad():
            louder.weight_ih.mul_(3)
        s = x @ cell.weight_ih[-1] if not together else None
        if together:  # the norm hides how loud the input is, but for epsilon
            torch.testing.assert_close(louder(x)[2], z, rtol=0, atol=1e-4)
        else:
            torch.testing.assert_close(z, ((s + 1) / 2).clamp(0, 1))
            assert not torch.allclose(louder(x)[2], z, atol=0.01)


class TestProperties:
    sizes: ClassVar = {
        "steps": st.integers(1, 8),
        "rows": st.integers(1, 3),
        "layers": st.integers(1, 4),
        "units": st.integers(1, 5),
        "seed": st.integers(0, 2**16),
        "selection": st.sampled_from(["arithmetic", "hard"]),
        "detect_from": st.sampled_from(["preactivation", "hidden"]),
        "boundary": st.sampled_from(["step", "sample"]),
        "dtype": st.sampled_from([torch.float32, torch.float64]),
    }

    @settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(**sizes)
    def test_operations_are_what_the_boundaries_say(self, steps, rows, layers, units, seed, dtype, **flags):
        torch.manual_seed(seed)
        unit = HMLSTM(3, units, layers, dtype=dtype, **flags)
        for parameter in unit.parameters():
            torch.nn.init.normal_(parameter, std=2)
        output, last, trace = unit.trace(torch.randn(steps, rows, 3, dtype=dtype))
        assert output.dtype == dtype
        assert [tuple(part.shape) for part in last] == [(layers, rows, units)] * 2 + [(layers, rows)]
        z_below = torch.ones(steps, rows, dtype=dtype)
        for layer in trace:
            z = layer["z"]
            assert ((z == 0) | (z == 1)).all()
            z_last = torch.cat([torch.zeros(1, rows, dtype=dtype), z[:-1]])
            expected = torch.where(z_last == 1, Operation.FLUSH, torch.where(z_below == 1, 1, 0))
            assert torch.equal(layer["operation"], expected)
            for name in ("h", "c"):
                before = torch.cat([torch.zeros(1, rows, units, dtype=dtype), layer[name][:-1]])
                copied = (expected == Operation.COPY).unsqueeze(-1)
                assert torch.equal(layer[name] * copied, before * copied)  # bit for bit
            z_below = z
        assert not trace[-1]["z"].any()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"boundary": "maybe"}, "boundary.*'maybe'"),
        ({"straight_through": "no"}, "straight_through"),
        ({"selection": "soft"}, "selection"),
        ({"detect_from": "x"}, "detect_from"),
        ({"boundary": "soft", "selection": "hard"}, "selection"),
        ({"normalize_boundary": True}, "normalize_boundary.*layer_norm"),
        ({"threshold": 1.0}, "threshold.*1.0"),
    ],
)
def test_refusals(flags, message):
    with pytest.raises(ValueError, match=message):
        HMLSTM(D, H, L, **flags)


@pytest.mark.slow
def test_the_gradients_limit_holds_at_every_step_and_changes_nothing_else():
    x = torch.randn(T, B, D, dtype=DOUBLE)
    gradients = {}
    for limit in (None, 1e9, 1e-3):
        torch.manual_seed(0)
        unit = HMLSTM(D, H, L, gradient_limit=limit, dtype=DOUBLE)
        output = unit(x)[0]
        output.square().sum().backward()
        gradients[limit] = output.detach(), unit.layers[0].bias.grad
    assert torch.equal(gradients[None][0], gradients[1e-3][0])
    assert torch.equal(gradients[None][1], gradients[1e9][1])
    # a bias collects the pre-activation's gradient from every step and sequence
    assert gradients[1e-3][1].abs().max() <= T * B * 1e-3 < gradients[None][1].abs().max()
