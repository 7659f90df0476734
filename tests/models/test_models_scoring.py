"""Readouts against NumPy and SciPy; nats and hits of a score."""

import numpy as np
import pytest
import torch
from scipy.special import expit as sigmoid
from scipy.stats import bernoulli, multivariate_normal
from torch import nn
from torch.nn import functional as F

import nlstm_lab as lab
from nlstm_lab.datasets.base import Batch, Symbols, Vectors
from nlstm_lab.models import MixtureDensity, Network, OutputModule, metrics


def test_output_module_is_equations_11_and_12():
    torch.manual_seed(0)
    module = OutputModule(hidden_size=4, num_layers=3, embedding_size=5, outputs=6).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    h = np.random.default_rng(0).normal(size=(2, 12))
    w, b = (p.detach().numpy() for p in (module.gates.weight, module.gates.bias))
    e, eb = (p.detach().numpy() for p in (module.embedding.weight, module.embedding.bias))
    o, ob = (p.detach().numpy() for p in (module.output.weight, module.output.bias))
    total = eb
    for layer in range(3):
        gate = sigmoid(h @ w[layer] + b[layer])[:, None]  # equation 11
        part = slice(4 * layer, 4 * layer + 4)
        total = total + gate * (h[:, part] @ e[:, part].T)  # equation 12
    expected = np.maximum(total, 0) @ o.T + ob
    np.testing.assert_allclose(module(torch.from_numpy(h)).detach().numpy(), expected, atol=1e-12)


def test_mixture_density_is_that_of_scipy_with_the_parameters_of_graves_equations_18_to_22():
    """From the raw outputs alone: nothing here asks `split`."""
    torch.manual_seed(1)
    n, density = 3, MixtureDensity(components=3)
    raw, points = torch.randn(7, density.size, dtype=torch.float64), torch.randn(7, 3, dtype=torch.float64)
    points[:, 2] = (points[:, 2] > 0).double()
    for y, point, nats in zip(raw.numpy(), points.numpy(), density(raw, points).numpy(), strict=True):
        weights = np.exp(y[:n]) / np.exp(y[:n]).sum()
        means, sigmas = y[n : 3 * n].reshape(n, 2), np.exp(y[3 * n : 5 * n]).reshape(n, 2)
        rhos = density.RHO_BOUND * np.tanh(y[5 * n : 6 * n])
        p = 0.0
        for weight, mean, s, r in zip(weights, means, sigmas, rhos, strict=True):
            covariance = [[s[0] ** 2, r * s[0] * s[1]], [r * s[0] * s[1], s[1] ** 2]]
            p += weight * multivariate_normal(mean, covariance).pdf(point[:2])
        p *= bernoulli(sigmoid(y[6 * n])).pmf(int(point[2]))
        np.testing.assert_allclose(nats, -np.log(p), rtol=1e-9)


def test_no_point_is_infinitely_likely_nor_its_gradient_infinite():
    """Deviations at their floor and correlations at their bound: finite density, finite gradient."""
    density = MixtureDensity(components=2)
    for extreme in (-1e4, 1e4):
        raw = torch.full((1, density.size), extreme, requires_grad=True)
        nats = density(raw, torch.tensor([[0.0, 0.0, 1.0]]))
        nats.sum().backward()
        assert nats.isfinite().all()
        assert raw.grad.isfinite().all()


def test_samples_follow_the_density():
    """Means and correlation of many samples are those of a single component."""
    density = MixtureDensity(components=1)
    raw = torch.tensor([0.0, 1.0, -2.0, 0.0, 0.7, 1.2, 0.0])  # weight, means, log deviations, correlation, pen
    samples = density.sample(raw.expand(40_000, -1), torch.Generator().manual_seed(0)).double().numpy()
    _, means, sigma, rho, _ = density.split(raw)
    np.testing.assert_allclose(samples[:, :2].mean(0), means[0], atol=0.05)
    np.testing.assert_allclose(samples[:, :2].std(0), sigma[0], rtol=0.03)
    np.testing.assert_allclose(np.corrcoef(samples[:, 0], samples[:, 1])[0, 1], rho[0], atol=0.02)
    np.testing.assert_allclose(samples[:, 2].mean(), 0.5, atol=0.02)


def test_a_low_temperature_narrows_components_and_their_choice():
    density = MixtureDensity(components=2)
    raw = torch.tensor([0.0, np.log(3), -9.0, 0.0, 9.0, 0.0, *[0.0] * 7]).expand(40_000, -1)  # means (-9, 0), (9, 0)
    x = density.sample(raw, torch.Generator().manual_seed(0), temperature=0.5)[:, 0]
    assert (x > 0).float().mean().item() == pytest.approx(0.9, abs=0.01)  # 3 to 1, squared
    assert x[x > 0].std().item() == pytest.approx(0.5**0.5, rel=0.03)


class Given(nn.Module):
    """A unit whose hidden states are its input."""

    def forward(self, inputs, state):
        return inputs, state


def test_the_articles_accuracy_counts_what_the_loss_masks():
    """Protocol 30: of seven targets two are padding (0) and one is unknown (1); the loss sees the other four."""
    targets = torch.tensor([[2], [3], [1], [2], [3], [0], [0]])
    outputs = F.one_hot(torch.tensor([2, 3, 2, 2, 2, 2, 0]), 4).double().unsqueeze(1)
    score, _ = Network(Given(), nn.Identity()).score(Batch(outputs, targets, targets > 1))
    found = metrics([float(part) for part in score], "nll_nats")
    assert found["top1_accuracy_pct"] == pytest.approx(100 * 3 / 4)
    assert found["top1_accuracy_unmasked_pct"] == pytest.approx(100 * 4 / 7)  # a padding, too
    nats = -outputs.log_softmax(-1)[torch.arange(7), 0, targets[:, 0]]
    assert found["nll_nats"] == pytest.approx(float(nats[[0, 1, 3, 4]].mean()))


def test_a_lines_likelihood_is_the_sum_over_its_points_and_the_score_their_mean_over_lines():
    torch.manual_seed(0)
    density, sizes = MixtureDensity(2), (4, 2, 3)
    raw, points = torch.randn(4, 3, density.size), torch.rand(4, 3, 3).round()
    mask = torch.arange(4)[:, None] < torch.tensor(sizes)
    score, _ = Network(Given(), nn.Identity(), density=density).score(Batch(raw, points, mask))
    found = metrics([float(part) for part in score], "log_likelihood_nats")
    lines = [-float(density(raw[:n, k], points[:n, k]).sum()) for k, n in enumerate(sizes)]
    assert found["log_likelihood_nats"] == pytest.approx(sum(lines) / 3, rel=1e-5)
    assert found["nll_nats"] == pytest.approx(-sum(lines) / 9, rel=1e-5)


def test_a_class_is_predicted_from_the_last_step():
    ends = lab.models.Interface(Vectors(3), Symbols(4), per_sequence=True)
    model, x = lab.models.build(lab.models.ModelConfig("lstm", 5), ends, seed=0), torch.randn(6, 2, 3)
    torch.testing.assert_close(model(x)[0], model.readout(model.recurrent(x)[0][-1]))
    score, targets = model.score(Batch(x, torch.tensor([1, 3])))[0], torch.tensor([1, 3])
    torch.testing.assert_close(score.nats, nn.functional.cross_entropy(model(x)[0], targets, reduction="sum"))
    assert (int(score.counted), int(score.sequences)) == (2, 2)
