"""A trace is what the network's own equations say, whatever the chunk, the storage and the unit."""

import numpy as np
import pytest
import torch

from nlstm_lab import probes
from nlstm_lab.cells.clockwork import ClockworkRNN
from nlstm_lab.cells.gru import GRU
from nlstm_lab.cells.hmlstm import HMLSTM
from nlstm_lab.cells.lstm import LSTM
from nlstm_lab.cells.nested import NestedLSTM
from nlstm_lab.errors import UsageError
from nlstm_lab.probes import tracing
from nlstm_lab.probes.reading import reading, state_of


def test_a_trace_has_its_labels(network, text):
    model = network(NestedLSTM, 8, embedded=True)
    told = probes.trace(model, text, run="a run")
    assert dict(told.sizes) == {"time": 400, "memory": 2, "unit": 8, "layer": 1, "vocabulary": 11}
    assert "".join(told.symbol.values) == text
    assert list(told.memory.values) == ["outer", "inner"]
    assert told.leaks.values.tolist() == [False, True]
    assert list(told.vocabulary.values) == list(model.vocabulary.symbols)
    assert told.attrs == {"model": "small", "run": "a run", "depth": 2}
    assert all(told[name].dtype == np.float32 for name in told.data_vars)


@pytest.mark.parametrize(
    ("kind", "flags", "names"),
    [
        (LSTM, {}, ["cell"]),
        (LSTM, {"num_layers": 2}, ["layer 1", "layer 2"]),
        (NestedLSTM, {"depth": 1}, ["cell"]),
        (NestedLSTM, {"depth": 3}, ["outer", "middle", "inner"]),
        (NestedLSTM, {"depth": 4}, ["outer", "inner 1", "inner 2", "inner 3"]),
        (NestedLSTM, {"num_layers": 2}, ["layer 1 outer", "layer 1 inner", "layer 2 outer", "layer 2 inner"]),
    ],
)
def test_states_obey_the_equations_of_the_units(network, text, kind, flags, names):
    told = probes.trace(network(kind, **flags), text)
    assert list(told.memory.values) == names
    before = told.shift(time=1).isel(time=slice(1, None))
    now = told.isel(time=slice(1, None))
    innermost = [name for name in names if name.split()[0] == "cell" or name == names[-1]]
    for name in innermost:  # equations 3, 4
        m, b = now.sel(memory=name), before.sel(memory=name)
        np.testing.assert_allclose(m.c, m.f * b.c + m.i * m.g, atol=1e-6)
    outermost = len(names) // told.sizes["layer"]
    outer = told.isel(memory=slice(None, None, outermost))
    np.testing.assert_allclose(told.h, outer.o * np.tanh(outer.c), atol=1e-6)  # equation 6
    for k in range(len(names) - 1):  # what a nested memory hands out is the next outer memory's cell
        if outermost > 1 and (k + 1) % outermost:
            inside = told.isel(memory=k + 1)
            np.testing.assert_allclose(told.c.isel(memory=k), inside.o * np.tanh(inside.c), atol=1e-6)


@pytest.mark.slow
def test_a_trace_predicts_what_the_network_predicts(network, text, kind):
    model = network(kind, num_layers=2)
    with torch.no_grad():
        logits, (h, c) = model(model.vocabulary.encode(text)[:, None])
    told = probes.trace(model, text)
    np.testing.assert_allclose(told.log_p, torch.log_softmax(logits, -1).squeeze(1), atol=1e-5)
    np.testing.assert_allclose(told.h[-1], h[:, 0], atol=1e-6)
    np.testing.assert_allclose(told.c[-1], c.flatten(0, -3)[:, 0], atol=1e-6)
    assert "log_p" not in probes.trace(model, text, predictions=False)


@pytest.mark.slow
def test_chunks_and_the_disk_change_nothing(network, text, monkeypatch):
    model = network()
    whole = probes.trace(model, text)
    monkeypatch.setattr(tracing, "CHUNK", 7)
    monkeypatch.setattr(tracing, "IN_MEMORY", 1000)
    streamed = probes.trace(model, text)
    for name in whole.data_vars:
        assert isinstance(streamed[name].values.base, np.memmap)
        assert not isinstance(whole[name].values.base, np.memmap)
        np.testing.assert_allclose(streamed[name], whole[name], atol=1e-6)


def test_codes_serve_where_there_is_no_vocabulary(network, text):
    model = network()
    codes = model.vocabulary.encode(text)
    model.vocabulary = None
    told = probes.trace(model, codes)
    assert told.symbol.values.tolist() == codes.tolist()
    with pytest.raises(UsageError):
        probes.trace(model, text)


def test_bad_texts_are_refused_in_a_sentence(network):
    with pytest.raises(UsageError):
        probes.trace(network(), "")
    with pytest.raises(UsageError, match="'é'"):
        probes.trace(network(), "café")


def test_dropout_is_off_and_the_network_left_as_it_was(network, text):
    model = network(LSTM, num_layers=2, dropout=0.5).train()
    a, b = probes.trace(model, text), probes.trace(model, text)
    np.testing.assert_array_equal(a.c, b.c)
    assert model.training


@pytest.mark.slow
def test_units_without_memory_cells_are_traced_by_their_hidden_states(network, text):
    model = network(GRU, num_layers=2)
    told = probes.trace(model, text)
    assert "memory" not in told.dims
    assert told.h.shape == (400, 2, 8)
    with torch.no_grad():
        np.testing.assert_allclose(told.h[-1], model(model.vocabulary.encode(text)[:, None])[1][:, 0], atol=1e-5)


@pytest.mark.slow
def test_a_hierarchical_unit_keeps_its_boundaries(network, text):
    told = probes.trace(network(HMLSTM, num_layers=3, scale=3.0), text)
    assert list(told.memory.values) == ["layer 1", "layer 2", "layer 3"]
    assert set(np.unique(told.z)) == {0, 1}
    assert (told.z.sel(layer=3) == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("layers", [1, 2])
def test_a_clockwork_is_traced_and_its_clock_goes_on(network, text, layers):
    model = network(ClockworkRNN, num_layers=layers)
    told = probes.trace(model, text)
    assert dict(told.h.sizes) == {"time": 400, "layer": layers, "unit": 8}
    assert "active" not in told
    codes = model.vocabulary.encode(text)
    with reading(model):
        state = state_of(model, codes, told, 13)
        assert state[1].tolist() == [[13]] * layers
    longer = probes.trace(model, text[:13] + text, known=told)
    np.testing.assert_allclose(longer.h, probes.trace(model, text[:13] + text).h, atol=1e-6)


@pytest.mark.slow
def test_a_trace_shows_what_was_read_and_a_picture(network, text) -> None:
    one, several = (
        probes.trace(network(), "a <cab>".replace("<", " ").replace(">", " ")),
        probes.trace(network(), [text, "ab"]),
    )
    for shown in (one, several, one.isel(time=slice(2, 5))):
        html = shown._repr_html_()
        assert "data:image/png;base64," in html
        assert "outer, inner, 8 units each" in html
    assert "2 texts of up to 400 steps" in several._repr_html_()
    assert "base64" not in one[["log_p"]]._repr_html_()
