"""A trace is what the network's own equations say, whatever the chunk, the storage and the unit."""

import numpy as np
import pytest
import torch
from torch import nn

from nlstm_lab import models, probes
from nlstm_lab.cells import HMLSTM, LSTM, NestedLSTM
from nlstm_lab.probes import tracing
from nlstm_lab.probes.lags import gradient_by_distance
from nlstm_lab.probes.reading import evaluating


def test_a_trace_has_its_labels(network, text):
    model = network(NestedLSTM, 8, embedded=True)
    result = probes.trace(model, text)
    assert dict(result.sizes) == {"time": 400, "memory": 2, "unit": 8, "layer": 1, "vocabulary": 11}
    assert "".join(result.symbol.values) == text
    assert list(result.memory.values) == ["outer", "inner"]
    assert result.leaks.values.tolist() == [False, True]
    assert list(result.vocabulary.values) == list(model.vocabulary.symbols)
    assert result.attrs == {"model": "small", "depth": 2}
    assert all(result[name].dtype == np.float32 for name in result.data_vars)


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
    result = probes.trace(network(kind, **flags), text)
    assert list(result.memory.values) == names
    before = result.shift(time=1).isel(time=slice(1, None))
    now = result.isel(time=slice(1, None))
    innermost = [name for name in names if name.split()[0] == "cell" or name == names[-1]]
    for name in innermost:  # equations 3, 4
        m, b = now.sel(memory=name), before.sel(memory=name)
        np.testing.assert_allclose(m.c, m.f * b.c + m.i * m.g, atol=1e-6)
    outermost = len(names) // result.sizes["layer"]
    outer = result.isel(memory=slice(None, None, outermost))
    np.testing.assert_allclose(result.h, outer.o * np.tanh(outer.c), atol=1e-6)  # equation 6
    for k in range(len(names) - 1):  # what a nested memory hands out is the next outer memory's cell
        if outermost > 1 and (k + 1) % outermost:
            inside = result.isel(memory=k + 1)
            np.testing.assert_allclose(result.c.isel(memory=k), inside.o * np.tanh(inside.c), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LSTM, NestedLSTM])
def test_a_trace_predicts_what_the_network_predicts(network, text, kind):
    model = network(kind, num_layers=2)
    with torch.no_grad():
        logits, (h, c) = model(model.vocabulary.encode(text)[:, None])
    result = probes.trace(model, text)
    np.testing.assert_allclose(result.log_p, torch.log_softmax(logits, -1).squeeze(1), atol=1e-5)
    np.testing.assert_allclose(result.h[-1], h[:, 0], atol=1e-6)
    np.testing.assert_allclose(result.c[-1], c.flatten(0, -3)[:, 0], atol=1e-6)
    assert "log_p" not in probes.trace(model, text, predictions=False)


@pytest.mark.slow
def test_chunks_change_nothing(network, text, monkeypatch):
    model = network()
    whole = probes.trace(model, text)
    monkeypatch.setattr(tracing, "CHUNK", 7)
    pieces = probes.trace(model, text)
    for name in whole.data_vars:
        np.testing.assert_allclose(pieces[name], whole[name], atol=1e-6)


def test_every_part_keeps_its_own_mode(network):
    model = network(LSTM)
    model.train()
    model.recurrent.eval()
    before = {name: part.training for name, part in model.named_modules()}
    with evaluating(model):
        assert not any(part.training for part in model.modules())
    assert {name: part.training for name, part in model.named_modules()} == before
    assert len(set(before.values())) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "read",
    [
        lambda model, text: probes.trace(model, text).z.values,
        lambda model, text: list(probes.continued(model, text[:4], 60, seed=3)),
        lambda model, text: gradient_by_distance(model.recurrent, model.vocabulary.encode(text)[:30, None])["value"],
    ],
)
def test_sampled_boundaries_are_the_same_at_every_reading_and_draw_no_numbers(network, text, read):
    model = network(HMLSTM, num_layers=3, boundary="sample").train()
    before = torch.get_rng_state()
    first = read(model, text)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    np.testing.assert_array_equal(read(model, text), first)
    assert model.training


MOMENTS = [50, 200]


@pytest.mark.slow
@pytest.mark.parametrize("batch_first", [False, True])
def test_every_probe_takes_a_wrapped_network(text, batch_first):
    torch.manual_seed(0)
    rnn, embedding, readout = nn.LSTM(4, 8, 2, batch_first=batch_first), nn.Embedding(11, 4), nn.Linear(8, 11)
    model = models.wrap(rnn, embedding=embedding, readout=readout, vocabulary=" abcdefghij")
    trace = probes.trace(model, text)
    with torch.no_grad():
        codes = model.vocabulary.encode(text)
        hidden, (_, c) = rnn(embedding(codes))
    np.testing.assert_allclose(trace.h.sel(layer=2), hidden, atol=1e-5)
    np.testing.assert_allclose(trace.c[-1], c, atol=1e-5)
    np.testing.assert_allclose(trace.log_p, readout(hidden).log_softmax(-1).detach(), atol=1e-5)
    assert probes.state_timescales(trace).timescale.notna().any()
    assert probes.intervene(model, text, "layer 2", moments=MOMENTS).kl.max() > 0
    assert len(probes.unit_ablations(model, text, "layer 1", moments=MOMENTS)) == 8
    assert probes.loss_by_context(model, text, contexts=(1, 9), positions=5).shape == (2, 2)
    assert probes.decode(trace, text, ("since_space",)).score.notna().all()
    fresh = probes.trace(probes.untrained(model), probes.shuffled(text, "words"))
    assert fresh.sizes == trace.sizes


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_lens_and_a_patch_take_any_type(dtype):
    torch.manual_seed(0)
    parts = {"readout": nn.Linear(6, 4, dtype=dtype), "embedding": nn.Embedding(4, 3, dtype=dtype)}
    model = models.wrap(nn.LSTM(3, 6, dtype=dtype), vocabulary="abcd", **parts)
    assert np.isfinite(probes.patch(model, ("abcab", "abdab", "a", "b")).patched).all()
    assert probes.lens(model, "abcd" * 30, ahead=(0,), burn_in=10).ahead == (0,)
