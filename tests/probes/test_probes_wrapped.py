"""A reader's own trained `nn.LSTM` goes through every probe."""

import numpy as np
import pytest
import torch
from torch import nn

from nlstm_lab import LSTM, models, probes
from nlstm_lab.datasets.base import Batch
from nlstm_lab.probes.slowness import gate_timescales
from nlstm_lab.training import evaluate

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
    assert gate_timescales(trace).from_mean_f.count() == 16
    np.testing.assert_allclose(probes.persistence(model, trace), trace.f[1:])
    assert probes.intervene(model, text, "zero", "layer 2", moments=MOMENTS).kl.max() > 0
    assert len(probes.unit_ablations(model, text, "layer 1", moments=MOMENTS)) == 8
    assert probes.loss_by_context(model, text, contexts=(1, 9), positions=5).shape == (2, 2)
    assert probes.decode(trace, text, ("since_space",)).score.notna().all()
    fresh = probes.trace(probes.untrained(model), probes.shuffled(text, "words"))
    assert fresh.sizes == trace.sizes


@pytest.mark.parametrize("kind", [nn.LSTM, LSTM])
def test_a_wrapped_network_takes_time_first_whatever_its_unit_took(kind):
    torch.manual_seed(0)
    rnn, embedding, readout = kind(4, 8, 2, batch_first=True), nn.Embedding(11, 4), nn.Linear(8, 11)
    model = models.wrap(rnn, embedding=embedding, readout=readout)
    codes = torch.randint(11, (7, 3))
    with torch.no_grad():
        logits = readout(rnn(embedding(codes.t()))[0]).transpose(0, 1)
        torch.testing.assert_close(model(codes)[0], logits)
        nats = nn.functional.cross_entropy(logits.flatten(0, 1), codes.flatten())
    assert rnn.batch_first
    told = evaluate(model, [Batch(codes, codes)], torch.device("cpu"), "nll_nats")
    assert told["nll_nats"] == pytest.approx(float(nats), abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_lens_and_a_patch_map_take_any_type(dtype):
    torch.manual_seed(0)
    parts = {"readout": nn.Linear(6, 4, dtype=dtype), "embedding": nn.Embedding(4, 3, dtype=dtype)}
    model = models.wrap(nn.LSTM(3, 6, dtype=dtype), vocabulary="abcd", **parts)
    assert np.isfinite(probes.patch(model, ("abcab", "abdab", "a", "b")).patched).all()
    assert probes.lens(model, "abcd" * 30, ahead=(0,), burn_in=10).ahead == (0,)
