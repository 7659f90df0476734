"""Fixed points and time constants of networks in which both are known."""

import numpy as np
import pytest
import torch
import xarray as xr
from test_probes_patching import OPEN, delay_line
from torch import nn

import nlstm_lab as lab
from nlstm_lab.cells import LSTM, NestedLSTM
from nlstm_lab.probes import fixed_points
from nlstm_lab.probes.dynamics import _modes


def one_cell(forget, *, from_input=0.0, from_itself=0.0):
    """An LSTM of one cell, c = f c + tanh(from_input x + from_itself h), h = tanh c, where x is 1 for "a", else 0."""
    unit = LSTM(2, 1)
    cell = unit.layers[0]
    with torch.no_grad():
        cell.bias[:] = torch.tensor([2 * OPEN, forget, 0, 2 * OPEN])
        cell.weight_ih.zero_()[2, 1] = from_input
        cell.weight_hh.zero_()[2, 0] = from_itself
    return lab.models.wrap(unit, readout=nn.Linear(1, 2), vocabulary=" a")


def size(found):
    return np.hypot(found.eigenvalue.sel(part="real"), found.eigenvalue.sel(part="imaginary"))


def test_a_leaky_integrator_rests_where_what_leaks_is_what_comes_in():
    leak = 1 / (1 + np.exp(-3.0))
    found = fixed_points(one_cell(3.0, from_input=0.5), "a  a a  ", constant="a", starts=3).isel(point=0)
    assert found.kind == "fixed"
    assert int(found.starts) == 3
    assert found.state.sel(memory="cell").item() == pytest.approx(np.tanh(0.5) / (1 - leak), rel=1e-6)
    np.testing.assert_allclose(found.timescale, [-1 / np.log(leak), 0], rtol=1e-6, atol=1e-9)
    assert float(found.share.sel(memory="cell")[0]) > 0.9


def test_a_latch_has_two_resting_points_and_one_between_from_which_it_moves_away():
    """c = c/2 + tanh(2 tanh c): at 0 and at +-c*; there a small change shrinks by 1/2 + 2 sech^2(2 h) sech^2(c)."""
    model = one_cell(0.0, from_input=4.0, from_itself=2.0)
    with torch.no_grad():
        model.recurrent.layers[0].weight_ih[2, 0] = -4.0  # " " the other way
    c = 1.0
    for _ in range(200):
        c = c / 2 + np.tanh(2 * np.tanh(c))
    found = fixed_points(model, "a" * 6 + " " * 6, starts=11)  # up, then down; the mean of the two is nothing
    assert set(found.kind.values) == {"fixed"}
    stable = found.isel(point=[k for k in range(found.sizes["point"]) if float(size(found)[k].max()) < 1])
    rested = sorted(float(each) for each in stable.state.sel(memory="cell").values.ravel())
    np.testing.assert_allclose(rested, [-c, c], rtol=1e-5)
    shrinks = 0.5 + 2 * (1 - np.tanh(2 * np.tanh(c)) ** 2) * (1 - np.tanh(c) ** 2)
    np.testing.assert_allclose(size(stable).max("mode"), shrinks, rtol=1e-4)


def test_a_delay_line_rests_at_one_point_and_forgets_all_at_once(tmp_path):
    found = fixed_points(delay_line(4), " ab ba  ", constant=" ", starts=4)
    assert found.sizes["point"] == 1
    np.testing.assert_allclose(found.state, 0, atol=1e-6)
    assert float(found.timescale.max()) < 0.5  # nilpotent: every eigenvalue is 0, as far as they can be computed
    found.to_netcdf(tmp_path / "points.nc")
    assert xr.open_dataset(tmp_path / "points.nc").equals(found)  # as saved


def test_a_counter_never_rests_under_drive():
    found = fixed_points(one_cell(2 * OPEN, from_input=1.0), "a" * 8, constant="a", starts=2)
    assert set(found.kind.values) == {"moving"}
    np.testing.assert_allclose(found.speed, np.tanh(1.0), rtol=0.05)
    for drive, kind in ((0.01, "slow"), (0.045, "moving")):  # so much a step; the text's are 0.76
        given = torch.tensor([[0, drive]])
        found = fixed_points(one_cell(2 * OPEN, from_input=1.0), "a" * 8, constant=given, starts=2)
        assert set(found.kind.values) == {kind}
    assert float(found.timescale[0, 0]) > 1e6


def test_a_mode_belongs_to_the_memory_that_its_left_and_right_vectors_share():
    step = torch.tensor([[0.9, 5.0], [0.0, 0.5]], dtype=torch.float64)  # far from normal
    np.testing.assert_allclose(_modes(step, 2)[1], [[1, 0], [0, 1]], atol=1e-12)


def test_at_a_point_the_modes_are_those_of_the_step(network, text):
    """The Jacobian of a nested network against differences, and every mode's shares against 1."""
    model = network(NestedLSTM, hidden_size=3, scale=1.5)
    found = fixed_points(model, text[:40], starts=2)
    assert set(found.kind.values) <= {"fixed", "slow"}
    np.testing.assert_allclose(found.share.sum("memory"), 1, rtol=1e-6)
    assert list(found.memory.values) == ["outer", "inner", "h"]
    codes = model.vocabulary.encode(text[:40])
    x = nn.functional.one_hot(codes, 11).double().mean(0).expand(1, 1, -1)
    unit = model.double().recurrent
    outer, inner, h = torch.from_numpy(found.state[0].values)

    def step(s):
        hidden, cells = unit(x, (s[2].view(1, 1, 3), s[:2].view(1, 2, 1, 3)))[1]
        return torch.cat([cells.flatten(), hidden.flatten()]).detach()

    at = torch.stack([outer, inner, h])
    assert float((step(at) - at.flatten()).norm()) == pytest.approx(float(found.speed[0]), abs=1e-9)
    differences = []
    for k in range(9):
        change = torch.zeros(9, dtype=torch.float64)
        change[k] = 1e-5
        differences.append((step(at + change.view(3, 3)) - step(at - change.view(3, 3))) / 2e-5)
    expected = np.sort(np.abs(np.linalg.eigvals(torch.stack(differences, 1).numpy())))[::-1]
    np.testing.assert_allclose(size(found)[0], expected, atol=1e-6)
