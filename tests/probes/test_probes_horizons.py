"""A horizon is the loss from so much context, and ends where the memory does."""

import numpy as np
import pytest
import torch

from nlstm_lab.cells.lstm import LSTM
from nlstm_lab.errors import UsageError
from nlstm_lab.studies.interventions.measure import horizon


def test_the_horizon_is_the_loss_from_so_much_context(network, text):
    model = network(scale=3.0)  # driven hard enough for contexts to matter
    told = horizon(model, text, contexts=(1, 3, 50), positions=20)
    codes = model.vocabulary.encode(text)
    for context in (1, 3, 50):
        p = int(told.position[7])
        with torch.no_grad():
            log_p = model(codes[p - context : p, None])[0][-1, 0].log_softmax(-1)
        assert float(told.sel(context=context)[7]) == pytest.approx(-float(log_p[codes[p]]), abs=1e-5)


def test_the_horizon_ends_where_the_memory_does(network, text):
    model = network(LSTM)
    cell = model.recurrent.layers[0]
    with torch.no_grad():
        cell.bias.view(4, -1)[1] = -1e4  # the forget gate
        cell.weight_hh.zero_()  # neither c nor h carries anything from step to step
    told = horizon(model, text, contexts=(1, 5, 50), positions=30)
    np.testing.assert_allclose(told[0], told[2], atol=1e-6)


def test_bad_requests_are_refused_in_a_sentence(network, text):
    model = network()
    with pytest.raises(UsageError, match="700"):
        horizon(model, text)
    with pytest.raises(UsageError, match="context"):
        horizon(model, text, contexts=())
    model.words = ("a", "be", "cab", "dig")
    with pytest.raises(UsageError):
        horizon(model, text, contexts=(1, 5), positions=20)
