"""Gradients vanish as the mathematics says: by |W|^d in a plain network, by f^d through a memory cell."""

import numpy as np
import pytest
import torch

from nlstm_lab.cells import GRU, HMLSTM, LSTM, RNN, HierarchicalRNN, NestedLSTM
from nlstm_lab.errors import UsageError
from nlstm_lab.probes.lags import SMALLEST, gradient_by_distance


def decay(frame, where="input"):
    """Norms by distance, relative to the first, one column a sequence."""
    table = frame[frame["where"] == where].pivot(index="lag", columns="text", values="value").to_numpy()
    return 10 ** (table - table[0])


@pytest.mark.parametrize("factor", [0.5, 0.9])
def test_a_plain_network_without_input_forgets_by_its_factor(factor):
    unit = RNN(12, 12, dtype=torch.float64)
    with torch.no_grad():
        unit.cells[0].weight_hh *= factor  # orthogonal before
    frame = gradient_by_distance(unit, torch.zeros(20, 3, 12))  # h stays 0, where tanh' is 1
    for where in ("input", "layer 1"):
        relative = decay(frame, where)
        assert relative.shape == (20, 3)
        expected = factor ** np.arange(20)[:, None]
        exact = where == "layer 1"  # U of the input is no multiple of an orthogonal matrix
        np.testing.assert_allclose(relative / expected, 1, rtol=1e-10 if exact else 1)


@pytest.mark.parametrize("bias", [0.0, 4.0])
def test_an_lstm_whose_cells_hear_only_the_input_forgets_by_its_gate(bias):
    """h reaches no gate, so that the input's way leads through c alone: i g at t, then f for each step."""
    unit, f = LSTM(6, 6, forget_bias=bias), 1 / (1 + np.exp(-bias))
    with torch.no_grad():
        unit.cells[0].weight_hh.zero_()
    relative = decay(gradient_by_distance(unit, torch.zeros(30, 2, 6)))
    np.testing.assert_allclose(relative, f ** np.arange(30)[:, None] * np.ones(2), rtol=1e-9)


@pytest.mark.slow
def test_it_is_the_norm_of_the_jacobian():
    torch.manual_seed(0)
    unit, x = NestedLSTM(4, 5).double(), torch.randn(6, 1, 4, dtype=torch.float64)
    whole = torch.autograd.functional.jacobian(lambda x: unit(x)[0][-1, 0], x)[:, :, 0]  # [5, T, 4]
    expected = whole.square().sum((0, 2)).sqrt().flip(0).numpy()
    frame = gradient_by_distance(unit, x, projections=20_000).query("where == 'input'")
    np.testing.assert_allclose(10 ** frame["value"].to_numpy(), expected, rtol=0.03)


def test_every_layer_has_its_row_and_symbols_are_one_hot():
    torch.manual_seed(0)
    unit, symbols = LSTM(4, 5, num_layers=2), torch.randint(4, (7, 3))
    frame = gradient_by_distance(unit, symbols)
    assert frame.groupby("where").size().to_dict() == {"input": 21, "layer 1": 21, "layer 2": 21}
    vectors = gradient_by_distance(unit, torch.nn.functional.one_hot(symbols, 4).float())
    np.testing.assert_allclose(frame["value"], vectors["value"])
    assert next(unit.parameters()).dtype == torch.float32  # the unit itself is left alone


def test_a_gradient_of_exactly_0_is_a_number_too():
    unit = RNN(4, 4)
    with torch.no_grad():
        unit.cells[0].weight_hh.zero_()
    values = gradient_by_distance(unit, torch.zeros(3, 1, 4)).query("where == 'input'")["value"]
    assert values.iloc[1:].tolist() == [np.log10(SMALLEST)] * 2


@pytest.mark.parametrize("unit", [RNN(4, 6), GRU(4, 6, 2), NestedLSTM(4, 6, depth=3), HMLSTM(4, 6, 3)])
def test_any_unit_is_measured(unit):
    frame = gradient_by_distance(unit, torch.randint(4, (5, 2)))
    assert np.isfinite(frame["value"]).all()
    assert frame["where"].nunique() == 1 + unit.num_layers


@pytest.mark.slow
def test_sampled_boundaries_are_the_same_at_every_call_and_nobody_elses_numbers_change():
    torch.manual_seed(0)
    unit, symbols = HMLSTM(4, 6, 3, boundary="sample"), torch.randint(4, (30, 2))
    before = torch.get_rng_state()
    first = gradient_by_distance(unit, symbols)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    np.testing.assert_array_equal(gradient_by_distance(unit, symbols)["value"], first["value"])
    assert unit.training


def test_a_unit_whose_boundaries_are_given_is_refused():
    with pytest.raises(UsageError, match=r"lab\.probes\.connectivity"):
        gradient_by_distance(HierarchicalRNN(4, 6, 2), torch.randint(4, (5, 2)))
