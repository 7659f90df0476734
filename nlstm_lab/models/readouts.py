"""What stands around recurrent layers: an embedding with padding, dense layers, an output module, a mixture density."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


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

    Gates and embedding have biases, started at zero, which the equations lack.

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
