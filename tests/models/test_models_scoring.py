"""Nats, hits and their gradients against torch's own functions, in one piece and in several."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nlstm_lab as lab
from nlstm_lab.datasets.base import Batch, Symbols, Vectors
from nlstm_lab.errors import UsageError
from nlstm_lab.models import MixtureDensity, Network, metrics, network, readouts


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


@pytest.mark.parametrize("rows", [1, 3, 7, 100])
@pytest.mark.parametrize("scale", [0.1, 30.0])
def test_a_softmax_in_pieces_is_that_of_torch(monkeypatch, rows, scale):
    """Value, hits and every gradient, whatever is held at a time; at the larger scale some shares are nearly 0 or 1."""
    torch.manual_seed(rows)
    monkeypatch.setitem(readouts.HELD, "cpu", rows * 11)
    layer, hidden = nn.Linear(4, 11).double(), torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        layer.weight *= scale
    targets, mask = torch.randint(11, (7,)), torch.tensor([True, True, False, True, False, True, True])
    inputs = [layer.weight, layer.bias, hidden]

    nats, hits = readouts.nats_of_many(layer, hidden, targets, mask)
    outputs = layer(hidden)
    expected = F.cross_entropy(outputs[mask], targets[mask], reduction="sum")
    torch.testing.assert_close(nats, expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(hits, outputs.argmax(-1) == targets)
    torch.testing.assert_close(
        torch.autograd.grad(3 * nats, inputs), torch.autograd.grad(3 * expected, inputs), rtol=1e-10, atol=1e-12
    )
    with torch.no_grad():
        read, again = readouts.nats_of_many(layer, hidden, targets, mask)
    torch.testing.assert_close(read, expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(again, hits)


def test_a_softmax_in_pieces_keeps_fp32s_accuracy():
    torch.manual_seed(0)
    layer, hidden = nn.Linear(32, 5368), torch.randn(200, 32)
    targets, mask = torch.randint(5368, (200,)), torch.ones(200, dtype=torch.bool)
    nats, _ = readouts.nats_of_many(layer, hidden, targets, mask)
    exact = F.cross_entropy(layer.double()(hidden.double()), targets, reduction="sum").item()
    assert nats.item() == pytest.approx(exact, rel=1e-6)


def test_its_second_derivative_is_refused():
    layer, mask = nn.Linear(2, 3), torch.ones(5, dtype=torch.bool)
    nats, _ = readouts.nats_of_many(layer, torch.randn(5, 2), torch.zeros(5, dtype=torch.long), mask)
    with pytest.raises(UsageError):
        torch.autograd.grad(nats, layer.weight, create_graph=True)


def test_one_share_that_is_not_finite_is_seen_in_the_loss():
    layer, mask = nn.Linear(2, 3), torch.ones(2, dtype=torch.bool)
    hidden = torch.tensor([[1.0, 2.0], [float("nan"), 0.0]])
    assert readouts.nats_of_many(layer, hidden, torch.zeros(2, dtype=torch.long), mask)[0].isnan()


@pytest.mark.parametrize("per_sequence", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_a_network_of_many_outputs_scores_as_one_of_few(monkeypatch, per_sequence, masked):
    """The same sums, state and gradients whether its predictions are held all at once or not."""
    ends = lab.models.Interface(Symbols(9), Symbols(9), per_sequence=per_sequence)
    model = lab.models.build(lab.models.ModelConfig("nlstm", 5), ends, seed=0).double()
    torch.manual_seed(0)
    inputs = torch.randint(9, (6, 4))
    targets = torch.randint(9, (4,) if per_sequence else (6, 4))
    batch = Batch(inputs, targets, targets > 3 if masked else None)
    found = []
    for many in (10, 9):
        monkeypatch.setattr(network, "MANY", many)
        score, state = model.score(batch)
        found.append((score, state, torch.autograd.grad(score.nats / score.counted, list(model.parameters()))))
    assert type(found[1][0].nats.grad_fn).__name__ == "_SummedNatsBackward"
    torch.testing.assert_close(found[0], found[1], rtol=1e-10, atol=1e-12)


def test_a_readout_without_a_bias_scores_as_one_of_few(monkeypatch):
    model = lab.models.wrap(nn.LSTM(9, 5), readout=nn.Linear(5, 9, bias=False))
    batch = Batch(torch.randint(9, (6, 4)), torch.randint(9, (6, 4)))
    expected, _ = model.score(batch)
    monkeypatch.setattr(network, "MANY", 9)
    assert model.score(batch)[0].nats == expected.nats
