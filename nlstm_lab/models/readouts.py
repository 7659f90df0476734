"""What stands around recurrent layers: embedding, dense layers, output module, mixture density, and their scores."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlstm_lab.errors import UsageError

# Outputs from which on a batch's predictions are never held all at once, and how many are held then: what stays in a
# core's cache, or fills a GPU.
MANY = 2_048
HELD = {"cpu": 1 << 19, "cuda": 1 << 26}


def dense(inputs: int, outputs: int) -> nn.Linear:
    """A dense layer, Glorot uniform with zero bias (as of `ModelConfig.output_weight`)."""
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


@torch.no_grad()
def fill_tiles(weight: Tensor) -> None:
    """Fill a matrix in place with orthogonal squares, whose side is the greatest common divisor of its sides.

    Args:
        weight: [rows, columns]; its entries have the deviation 1 / sqrt(side).

    Raises:
        ValueError: The sides have no common divisor, so that every square would be 1 or -1.
    """
    side = math.gcd(*weight.shape)
    if side == 1:
        rows, columns = weight.shape
        raise ValueError(
            f"orthogonal_tiles needs sides with a common divisor, not {rows} x {columns}: change hidden_size"
        )
    for rows in weight.split(side):
        for tile in rows.split(side, dim=1):
            nn.init.orthogonal_(tile)


class PaddedEmbedding(nn.Module):
    """Vectors [..., width] for symbols [...] of which 0 is the padding, a row of zeros (Madsen's article)."""

    def __init__(self, symbols: int, width: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.empty(symbols - 1, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rows as at the start."""
        bound = 1 / math.sqrt(len(self.rows))
        nn.init.uniform_(self.rows, -bound, bound)

    @property
    def weight(self) -> Tensor:
        """The whole matrix [symbols, width], as of `nn.Embedding`."""
        return torch.cat([torch.zeros_like(self.rows[:1]), self.rows])

    def forward(self, symbols: Tensor) -> Tensor:
        return F.embedding(symbols, self.weight)


class OutputModule(nn.Module):
    """HM-RNN, equations 11 and 12: every layer's h, gated by a scalar, through one ReLU layer to the predictions.

    Gates and embedding have biases, initialized at zero, which the equations lack.

    Args:
        embedding_size: Width of the ReLU layer.
    """

    def __init__(self, hidden_size: int, num_layers: int, embedding_size: int, outputs: int) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.gates = dense(num_layers * hidden_size, num_layers)
        self.embedding = dense(num_layers * hidden_size, embedding_size)
        self.output = dense(embedding_size, outputs)

    def forward(self, hidden: Tensor) -> Tensor:
        gates = torch.sigmoid(self.gates(hidden))  # equation 11, one scalar a layer
        gated = hidden.unflatten(-1, (self.num_layers, -1)) * gates.unsqueeze(-1)
        embedded = torch.relu(self.embedding(gated.flatten(-2)))  # equation 12: the sum over layers is this product
        return self.output(embedded)  # type: ignore[no-any-return]


class MixtureDensity(nn.Module):
    """Graves (2013), equations 18 to 23: a mixture of bivariate Gaussians for the offset, a Bernoulli for the pen.

    Called with `raw` and points it returns -log p of each point in nats, [...]. Deviations and correlations are
    bounded, so that no point is infinitely likely.

    Args:
        components: Number of Gaussians.
    """

    SIGMA_RANGE = (1e-3, 1e3)  # in normalized units, where the offsets' own deviation is 1
    RHO_BOUND = 0.999

    def __init__(self, components: int) -> None:
        super().__init__()
        self.components = components

    @property
    def size(self) -> int:
        """Values that a prediction is made of."""
        return 6 * self.components + 1

    def split(self, raw: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Split predictions into the parts of their mixtures of K Gaussians.

        Returns:
            Log weights [..., K], means [..., K, 2], deviations [..., K, 2], correlations [..., K], pen logit [...].
        """
        k = self.components
        weights, means, sigmas, rhos, pen = raw.split([k, 2 * k, 2 * k, k, 1], dim=-1)
        low, high = (math.log(bound) for bound in self.SIGMA_RANGE)
        sigma = sigmas.unflatten(-1, (k, 2)).clamp(low, high).exp()
        rho = self.RHO_BOUND * torch.tanh(rhos)
        return weights.log_softmax(-1), means.unflatten(-1, (k, 2)), sigma, rho, pen.squeeze(-1)

    def forward(self, raw: Tensor, points: Tensor) -> Tensor:
        log_weights, means, sigma, rho, pen = self.split(raw)
        z = (points[..., None, :2] - means) / sigma
        one_minus = 1 - rho**2
        square = (z**2).sum(-1) - 2 * rho * z[..., 0] * z[..., 1]
        log_normal = -square / (2 * one_minus) - sigma.log().sum(-1) - 0.5 * one_minus.log() - math.log(2 * math.pi)
        offset = torch.logsumexp(log_weights + log_normal, -1)
        return F.binary_cross_entropy_with_logits(pen, points[..., 2], reduction="none") - offset

    @torch.no_grad()
    def at_floor(self, raw: Tensor) -> Tensor:
        """Return the share [...] of each prediction's weight whose deviation, in x or y, is the smallest allowed.

        Where it is large, the likelihood is that bound's and not the network's.
        """
        log_weights, _, sigma, _, _ = self.split(raw)
        lowest = (sigma <= self.SIGMA_RANGE[0] * (1 + 1e-6)).any(-1)
        return (log_weights.exp() * lowest).sum(-1)

    @torch.no_grad()
    def sample(self, raw: Tensor, generator: torch.Generator, temperature: float = 1.0) -> Tensor:
        """Draw points from the predictions.

        Args:
            generator: Of the random numbers.
            temperature: Below 1 narrows components and their choice.
        """
        log_weights, means, sigma, rho, pen = self.split(raw)
        weights = (log_weights / temperature).softmax(-1)
        chosen = torch.multinomial(weights.reshape(-1, self.components), 1, generator=generator)
        chosen = chosen.view(*raw.shape[:-1], 1)
        mean, deviation = (
            tensor.gather(-2, chosen.unsqueeze(-1).expand(*chosen.shape, 2))[..., 0, :] for tensor in (means, sigma)
        )
        r = rho.gather(-1, chosen)[..., 0]
        noise = torch.randn(mean.shape, generator=generator) * math.sqrt(temperature)
        second = r * noise[..., 0] + (1 - r**2).sqrt() * noise[..., 1]
        offset = mean + deviation * torch.stack([noise[..., 0], second], -1)
        up = torch.rand(pen.shape, generator=generator) < torch.sigmoid(pen)
        return torch.cat([offset, up.unsqueeze(-1).float()], -1)


class Score(NamedTuple):
    """Sums over a batch, still on its device.

    Args:
        nats: -log p of the predictions that count.
        counted, hits: How many these are, and how many of them are right.
        all_hits, all: How many of all predictions are right, and how many there are.
        sequences: How many sequences began.
    """

    nats: Tensor
    counted: Tensor
    hits: Tensor
    all_hits: Tensor
    all: Tensor
    sequences: Tensor


def metrics(sums: Sequence[float], metric: str) -> dict[str, float]:
    """Compute what the documents report from the sums of a `Score`.

    Args:
        sums: The sums of a `Score`.
        metric: The metric's name, with its unit, such as "bpc".

    Returns:
        By name: nats, `metric`, and accuracy in percent, which a density has not. Where the loss masks predictions that
        the article's accuracy does not (unknown words and padding), accuracy over all as well.
    """
    nats, counted, hits, all_hits, everything, sequences = sums
    nll = nats / counted
    if metric == "log_likelihood_nats":
        return {"nll_nats": nll, metric: -nats / sequences}
    named = {"nll_nats": nll, "top1_accuracy_pct": 100 * hits / counted}
    if metric == "nll_nats" and everything != counted:
        named["top1_accuracy_unmasked_pct"] = 100 * all_hits / everything
    elif metric == "bpc":
        named["bpc"] = nll / math.log(2)
    elif metric == "perplexity":
        named["perplexity"] = math.exp(min(nll, 700.0))  # above, a float overflows
    return named


def nats_of_many(layer: nn.Linear, hidden: Tensor, targets: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """A dense layer's cross-entropy in nats, summed where `mask` [N] is true, and which predictions are hits.

    The same as `cross_entropy` of the layer's outputs for hidden [N, inputs], but made a few rows at a time, while they
    lie in the cache, which takes half the time for Chinese poetry's.
    """
    if not torch.is_grad_enabled():
        nats, hits, *_ = _in_pieces(layer.weight, layer.bias, hidden, targets, mask, with_gradients=False)
        return nats, hits
    return _SummedNats.apply(layer.weight, layer.bias, hidden, targets, mask)  # type: ignore[no-any-return, no-untyped-call]


class _SummedNats(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        nats, hits, *gradients = _in_pieces(*tensors, with_gradients=True)
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(hits)
        return nats, hits

    @staticmethod
    def backward(ctx: Any, d_nats: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise UsageError(f"the loss of {MANY} outputs and more has no second derivative: use F.cross_entropy")
        return *(d_nats * gradient for gradient in ctx.saved_tensors), None, None


def _in_pieces(
    weight: Tensor, bias: Tensor, hidden: Tensor, targets: Tensor, mask: Tensor, *, with_gradients: bool
) -> tuple[Tensor, ...]:
    """Summed nats, hits and, where asked for, the gradients of the nats by weight, bias and hidden."""
    rows = max(1, HELD[hidden.device.type] // len(weight))
    held = hidden.new_empty(2, min(rows, len(hidden)), len(weight))
    nats, hits = hidden.new_empty(len(hidden)), torch.empty_like(mask)
    gradients = [torch.zeros_like(weight), torch.zeros_like(bias), torch.empty_like(hidden)] if with_gradients else []
    for start in range(0, len(hidden), rows):
        here = slice(start, start + rows)
        h, target = hidden[here], targets[here].unsqueeze(1)
        logits, shares = held[:, : len(h)]
        torch.addmm(bias, h, weight.t(), out=logits)
        largest, chosen = logits.amax(1), logits.gather(1, target).squeeze(1)
        torch.softmax(logits, 1, out=shares)
        # the largest logit's own share gives the normalizer, which softmax keeps to itself
        nats[here] = largest - shares.amax(1).log() - chosen
        hits[here] = chosen == largest
        if with_gradients:
            d_weight, d_bias, d_hidden = gradients
            shares.scatter_add_(1, target, shares.new_full((1, 1), -1.0).expand_as(target))
            shares.mul_(mask[here].unsqueeze(1))
            torch.mm(shares, weight, out=d_hidden[here])
            d_weight.addmm_(shares.t(), h)
            d_bias.add_(shares.sum(0))
    return torch.where(mask, nats, 0).sum(), hits, *gradients
