"""Nats, hits and their gradients against torch's own functions, in one piece and in several."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nlstm_lab as lab
from nlstm_lab.datasets.base import Batch, Symbols, Vectors
from nlstm_lab.models import MixtureDensity, Network, metrics


class Readout(nn.Module):
    """Passes on what it is given."""

    def forward(self, hidden):
        return hidden


class Given(nn.Module):
    """A unit whose hidden states are its input."""

    def forward(self, inputs, state):
        return inputs, state


def test_the_articles_accuracy_counts_what_the_loss_masks():
    """Protocol 30: of seven targets two are padding (0) and one is unknown (1); the loss sees the other four."""
    targets = torch.tensor([[2], [3], [1], [2], [3], [0], [0]])
    outputs = F.one_hot(torch.tensor([2, 3, 2, 2, 2, 2, 2]), 4).double().unsqueeze(1)
    score, _ = Network(Given(), Readout()).score(Batch(outputs, targets, targets > 1))
    found = metrics([float(part) for part in score], "nll_nats")
    assert found["top1_accuracy_pct"] == pytest.approx(100 * 3 / 4)
    assert found["top1_accuracy_unmasked_pct"] == pytest.approx(100 * 3 / 7)
    nats = -outputs.log_softmax(-1)[torch.arange(7), 0, targets[:, 0]]
    assert found["nll_nats"] == pytest.approx(float(nats[[0, 1, 3, 4]].mean()))


def test_a_lines_likelihood_is_the_sum_over_its_points_and_the_score_their_mean_over_lines():
    torch.manual_seed(0)
    density, sizes = MixtureDensity(2), (4, 2, 3)
    raw, points = torch.randn(4, 3, density.size), torch.rand(4, 3, 3).round()
    mask = torch.arange(4)[:, None] < torch.tensor(sizes)
    score, _ = Network(Given(), Readout(), density=density).score(Batch(raw, points, mask))
    told = metrics([float(part) for part in score], "log_likelihood_nats")
    lines = [-float(density(raw[:n, k], points[:n, k]).sum()) for k, n in enumerate(sizes)]
    assert told["log_likelihood_nats"] == pytest.approx(sum(lines) / 3, rel=1e-5)
    assert told["nll_nats"] == pytest.approx(-sum(lines) / 9, rel=1e-5)


def test_a_class_is_predicted_from_the_last_step():
    ends = lab.models.Interface(Vectors(3), Symbols(4), per_sequence=True)
    model, x = lab.models.build(lab.models.ModelConfig("lstm", 5), ends, seed=0), torch.randn(6, 2, 3)
    torch.testing.assert_close(model(x)[0], model.readout(model.recurrent(x)[0][-1]))
