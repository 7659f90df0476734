"""The formula of the local persistence is the derivative that autograd takes of the cell's own step."""

import numpy as np
import pytest
import torch

from nlstm_lab import probes
from nlstm_lab.cells.lstm import LSTM
from nlstm_lab.cells.nested import NestedLSTM
from nlstm_lab.probes.persistence import persistence


def by_autograd(model, text, layer, part, steps):
    """The diagonal of d(part of the next state) / d(the same part of the last), by the step itself."""
    codes = model.vocabulary.encode(text)[: steps + 1, None]
    cells, x, told = list(model.unit.layers), model.inputs(codes), []
    states = [cell.initial_state(1) for cell in cells]
    for step in x:
        for k, cell in enumerate(cells):
            if k == layer:
                state = states[k]

                def move(value, cell=cell, step=step, state=state):
                    return cell.step(step, (*state[:part], value, *state[part + 1 :]))[part]

                jacobian = torch.autograd.functional.jacobian(move, state[part])
                told.append(jacobian[0, :, 0].diagonal())
            states[k] = tuple(value.detach() for value in cell.step(step, states[k]))
            step = states[k][0]
    return torch.stack(told[1:])


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        (LSTM, {}),
        (LSTM, {"num_layers": 2}),
        (NestedLSTM, {"depth": 1}),
        (NestedLSTM, {}),
        (NestedLSTM, {"candidate": "tanh", "num_layers": 2}),
        (NestedLSTM, {"depth": 3}),
        (NestedLSTM, {"depth": 4}),
    ],
)
def test_persistence_is_the_derivative(network, text, kind, flags):
    model = network(kind, 5, scale=2.0, **flags)
    told = persistence(model, probes.trace(model, text[:20]))
    depth = told.sizes["memory"] // model.unit.num_layers
    for k, memory in enumerate(told.memory.values):
        layer, part = k // depth, 1 + k % depth
        np.testing.assert_allclose(told.sel(memory=memory), by_autograd(model, text, layer, part, 19), atol=2e-6)


def test_pieces_change_nothing(network, text, monkeypatch):
    model = network(depth=3)
    trace = probes.trace(model, text)
    whole = persistence(model, trace)
    monkeypatch.setattr("nlstm_lab.probes.persistence.CELLS", 1000)
    np.testing.assert_allclose(persistence(model, trace), whole, atol=1e-6)
    part = persistence(model, trace.isel(time=slice(100, 200)))
    np.testing.assert_allclose(part, whole.isel(time=slice(100, 199)), atol=1e-6)
