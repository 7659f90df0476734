"""The formula of the local persistence is the derivative that autograd takes of the cell's own step."""

import functools

import numpy as np
import pytest
import torch
from torch import nn

from nlstm_lab import probes
from nlstm_lab.cells import HMLSTM, LSTM, HierarchicalRNN, LayerNormLSTM, NestedLSTM, NestedLSTMCell, Operation
from nlstm_lab.datasets.base import Vocabulary
from nlstm_lab.models import Network
from nlstm_lab.probes import persistence, retention, run, trace
from nlstm_lab.probes.reading import reading

ALPHABET = Vocabulary(tuple(" abcdefghij"))


def by_autograd(model, text, layer, part, steps):
    """The diagonal of d(part of the next state) / d(the same part of the last), by the step itself."""
    codes = model.vocabulary.encode(text)[: steps + 1, None]
    cells, x, result = list(model.recurrent.layers), model.inputs(codes), []
    states = [cell.initial_state(1) for cell in cells]
    for step in x:
        for k, cell in enumerate(cells):
            if k == layer:
                state = states[k]

                def move(value, cell=cell, step=step, state=state):
                    return cell.step(step, (*state[:part], value, *state[part + 1 :]))[part]

                jacobian = torch.autograd.functional.jacobian(move, state[part])
                result.append(jacobian[0, :, 0].diagonal())
            states[k] = tuple(value.detach() for value in cell.step(step, states[k]))
            step = states[k][0]
    return torch.stack(result[1:])


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
        (NestedLSTM, {"memory": functools.partial(NestedLSTMCell, depth=2)}),  # whose candidate is the identity
    ],
)
def test_persistence_is_the_derivative(network, text, kind, flags):
    model = network(kind, 5, scale=2.0, **flags)
    result = persistence(model, probes.trace(model, text[:20]))
    depth = result.sizes["memory"] // model.recurrent.num_layers
    for k, memory in enumerate(result.memory.values):
        layer, part = k // depth, 1 + k % depth
        np.testing.assert_allclose(result.sel(memory=memory), by_autograd(model, text, layer, part, 19), atol=2e-6)


@pytest.mark.slow
def test_pieces_change_nothing(network, text, monkeypatch):
    model = network(depth=3)
    trace = probes.trace(model, text)
    whole = persistence(model, trace)
    monkeypatch.setattr("nlstm_lab.probes.forgetting.CELLS", 1000)
    np.testing.assert_allclose(persistence(model, trace), whole, atol=1e-6)
    part = persistence(model, trace.isel(time=slice(100, 200)))
    np.testing.assert_allclose(part, whole.isel(time=slice(100, 199)), atol=1e-6)


@pytest.mark.slow
def test_copy_keeps_everything_and_flush_nothing(network, text):
    model = network(HMLSTM, num_layers=3, scale=3.0)
    trace = probes.trace(model, text)
    result = persistence(model, trace)
    with reading(model):
        records = model.recurrent.trace(model.vocabulary.encode(text)[:, None])[2]
    for k, record in enumerate(records):
        operation = record["operation"][1:, 0].numpy()
        f = record["f"][1:, 0].numpy()
        kept = np.select([operation[:, None] == code for code in (Operation.COPY, Operation.UPDATE)], [1, f], 0)
        np.testing.assert_allclose(result[:, k], kept, atol=1e-6)
    assert {0, 1, 2} == {int(code) for record in records for code in record["operation"].unique()}


@pytest.mark.slow
def test_given_boundaries_say_when_a_layer_moves_and_when_it_begins_anew(text):
    torch.manual_seed(0)
    ends = torch.zeros(11, 2)
    ends[0, 0] = ends[5, 0] = ends[5, 1] = 1  # layer 1 ends at a space and an e, layer 2 at an e
    model = Network(HierarchicalRNN(11, 8, 3), nn.Linear(8, 11), None, ALPHABET, segment_ends=ends, name="given")
    result = persistence(model, probes.trace(model, text))
    with reading(model):
        records = model.trace(ALPHABET.encode(text)[:, None])[2]
    for k, record in enumerate(records):
        active, f = record["active"][1:].numpy().astype(bool), record["f"][1:, 0].numpy()
        anew = record["z"][:-1].numpy() > 0
        np.testing.assert_allclose(result[:, k], np.where(active, np.where(anew, 0, f), 1), atol=1e-6)
        assert k == 2 or anew.any()


@pytest.mark.parametrize(
    ("kind", "flags", "memory"),
    [
        (LSTM, {}, "cell"),
        (LSTM, {"num_layers": 2}, "layer 1"),
        (LayerNormLSTM, {}, "cell"),
        (NestedLSTM, {}, "inner"),
        (NestedLSTM, {"depth": 3, "num_layers": 2}, None),
    ],
)
def test_it_is_numpys_product_and_the_parts_sum_to_the_state(network, text, kind, flags, memory):
    traced = trace(network(kind, scale=3.0, **flags), text[:120])
    found = retention(traced, memory, [3, -1, 60], [1, 6])
    name = memory or str(traced.memory.values[-1])
    assert found.attrs["memory"] == name
    i, f, g, c = (traced[gate].sel(memory=name).values.astype(np.float64)[:, [1, 6]] for gate in "ifgc")
    for row, step in enumerate((3, 119, 60)):
        for source in range(120):
            left = np.prod(f[source + 1 : step + 1], 0) if source <= step else 0.0
            np.testing.assert_allclose(found.left[row, source], np.broadcast_to(left, 2), rtol=1e-5, atol=1e-12)
            np.testing.assert_allclose(found.part[row, source], left * i[source] * g[source], rtol=1e-5, atol=1e-12)
        np.testing.assert_allclose(found.part[row].sum("source"), c[step], atol=3e-6)
    assert "".join(found.symbol.values) == text[:120]


def test_units_share_out_a_logit(network, text):
    model = network(scale=2.0)
    found = retention(trace(model, text[:30]), "inner", [4, -1], model=model, target="d")
    logits = run(model, text[:30]).logits[:, 4]
    bias = model.readout.bias[4].item()
    np.testing.assert_allclose(found.logit.sum("unit") + bias, logits[[4, 29]], atol=1e-5)
