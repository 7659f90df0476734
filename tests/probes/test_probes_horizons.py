"""A horizon is the loss from so much context, and ends where the memory does."""

import numpy as np
import pytest
import torch

from nlstm_lab.cells.lstm import LSTM
from nlstm_lab.errors import UsageError
from nlstm_lab.probes.interventions import loss_by_context


def test_the_horizon_is_the_loss_from_so_much_context(network, text):
    model = network(scale=3.0)  # driven hard enough for contexts to matter
    told = loss_by_context(model, text, contexts=(1, 3, 50), positions=20).set_index("context")["loss"]
    codes = model.vocabulary.encode(text)
    for context in (1, 3, 50):
        losses = []
        for p in np.linspace(50, len(codes) - 1, 20).round().astype(int):
            with torch.no_grad():
                log_p = model(codes[p - context : p, None])[0][-1, 0].log_softmax(-1)
            losses.append(-float(log_p[codes[p]]))
        assert told[context] == pytest.approx(np.mean(losses), abs=1e-5)


def test_the_horizon_ends_where_the_memory_does(network, text):
    model = network(LSTM)
    cell = model.recurrent.layers[0]
    with torch.no_grad():
        cell.bias.view(4, -1)[1] = -1e4  # the forget gate
        cell.weight_hh.zero_()  # neither c nor h carries anything from step to step
    told = loss_by_context(model, text, contexts=(1, 5, 50), positions=30)["loss"]
    np.testing.assert_allclose(told[0], told[2], atol=1e-6)


def test_bad_requests_are_refused_in_a_sentence(network, text):
    model = network()
    with pytest.raises(UsageError, match="1000"):
        loss_by_context(model, text)
    with pytest.raises(UsageError, match="context"):
        loss_by_context(model, text, contexts=())
    model.words = ("a", "be", "cab", "dig")
    with pytest.raises(UsageError):
        loss_by_context(model, text, contexts=(1, 5), positions=20)
