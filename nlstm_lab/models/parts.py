"""What a network is made of: literal values, and what stands around recurrent layers."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nlstm_lab.cells.base import RECORDED
from nlstm_lab.datasets.base import Mixture, Symbols, Task, Vectors, Vocabulary
from nlstm_lab.errors import UsageError
from nlstm_lab.settings import ADDED, check, plain

OutputBias = Literal["zero", "log_frequencies"]
OutputWeight = Literal["glorot", "orthogonal", "orthogonal_tiles", "zero"]
EmbeddingWeight = Literal["normal", "glorot"]
InitialState = Literal["zero", "learned"]
SEPARATOR = "\t"  # between the names of words in a record


@dataclass(frozen=True)
class ModelConfig:
    """A network without its task: what `build` needs besides the sizes of input and output.

    Args:
        cell_type: A key of `CELL_TYPES`.
        flags: Further arguments of its class, by their names.
        embedding_size: None for one-hot input (Nested LSTMs).
        output_embedding_size: Width of the HM-RNN paper's output module; None for a dense layer on the last layer's h.
        output_bias: Initialization of the readout's last bias.
        output_weight: Of its matrix: "glorot", "orthogonal", "zero", or "orthogonal_tiles" as zoneout's (`fill_tiles`).
        embedding_weight: Initialization of an embedding of symbols, of which none is padding.
        boundaries: Of `hrnn` alone: the symbols that end a segment of each level, the words' first.
        output_dropout: The probability with which what the readout reads is zeroed in training (arXiv 1409.2329).
        initial_state: Whether h and memories start at "zero" or at "learned" values, which add to the parameters.
    """

    cell_type: str
    hidden_size: int
    num_layers: int = 1
    flags: Mapping[str, Any] = field(default_factory=dict)
    embedding_size: int | None = None
    output_embedding_size: int | None = None
    output_bias: OutputBias = "zero"
    output_weight: OutputWeight = "glorot"
    embedding_weight: EmbeddingWeight = "normal"
    boundaries: tuple[str, ...] = ()
    output_dropout: float | None = field(default=None, metadata=ADDED)
    initial_state: InitialState = field(default="zero", metadata=ADDED)

    def __post_init__(self) -> None:
        check(self)
        if self.output_dropout is not None and self.output_dropout >= 1:
            raise UsageError(f"output_dropout must be below 1, not {self.output_dropout!r}")

    def record(self) -> dict[str, Any]:
        """Return the fields as plain values, with the names that records have, so that digests stay what they are."""
        fields = plain(self)
        if "initialization" in self.flags:
            now = self.flags["initialization"]
            fields["flags"] = {**self.flags, "initialization": RECORDED.get(now, now)}
        return fields


@dataclass(frozen=True)
class Interface:
    """What a network must know of its task: the sizes of its two ends, `input` and `output`, and what they mean.

    `log_frequencies`, if called, gives the natural logs of the targets' shares in training, [output size].
    """

    input: Symbols | Vectors
    output: Symbols | Mixture
    vocabulary: Vocabulary | None = None
    per_sequence: bool = False
    log_frequencies: Callable[[], Tensor] | None = None

    @classmethod
    def of(cls, task: Task) -> "Interface":
        """Take the interface from a `task` that is loaded."""
        return cls(task.input, task.output, task.vocabulary, task.per_sequence, lambda: task.log_frequencies)

    def record(self) -> dict[str, Any]:
        """Return it as plain JSON values, so that a run can be rebuilt without its data set.

        Symbols are one string where each is one character, as there may be thousands, else a list; names one line.
        """
        ends: dict[str, Any] = {}
        for end, value in (("in", self.input), ("out", self.output)):
            fields = dict(vars(value))
            if names := fields.pop("names", None):
                fields["names"] = SEPARATOR.join(names)
            ends[end] = {type(value).__name__: fields}
        symbols = [] if self.vocabulary is None else self.vocabulary.symbols
        known = "".join(symbols) if all(len(symbol) == 1 for symbol in symbols) else list(symbols)
        return {**ends, "vocabulary": known or None, "per_sequence": self.per_sequence}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Interface":
        """Read the interface that is written as `record`."""
        ends = []
        for end in ("in", "out"):
            (kind, fields), *_ = record[end].items()
            named = {"names": tuple(fields["names"].split(SEPARATOR))} if "names" in fields else {}
            ends.append({"Symbols": Symbols, "Vectors": Vectors, "Mixture": Mixture}[kind](**fields | named))
        symbols = record["vocabulary"]
        known = None if symbols is None else Vocabulary(tuple(symbols))
        return cls(ends[0], ends[1], known, record["per_sequence"])


def dense(inputs: int, outputs: int) -> nn.Linear:
    """A dense layer, Glorot uniform with zero bias (as of `ModelConfig.output_weight`)."""
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


@torch.no_grad()
def fill_tiles(weight: Tensor) -> None:
    """Fill a matrix in place with orthogonal squares, whose side is the greatest common divisor of its sides."""
    side = math.gcd(*weight.shape)
    if side == 1:
        sides = " x ".join(map(str, weight.shape))
        raise ValueError(f"orthogonal_tiles needs sides with a common divisor, not {sides}: change hidden_size")
    for rows in weight.split(side):
        for tile in rows.split(side, dim=1):
            nn.init.orthogonal_(tile)


FILLS: dict[str, Any] = {"orthogonal": nn.init.orthogonal_, "orthogonal_tiles": fill_tiles, "zero": nn.init.zeros_}


class PaddedEmbedding(nn.Module):
    """Vectors [..., width] for symbols [...] of which 0 is the padding, a row of zeros (Madsen's article)."""

    def __init__(self, symbols: int, width: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.empty(symbols - 1, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
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

    Gates and embedding, `embedding_size` wide, have biases, initialized at zero, which the equations lack.
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

    Called with `raw` and points it returns -log p of each point in nats, [...]. Deviations and correlations of its
    `components` are bounded, so that no point is infinitely likely.
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
        """Log weights [..., K], means and deviations [..., K, 2], correlations [..., K] and pen logit [...]."""
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
    def sample(self, raw: Tensor, generator: torch.Generator, temperature: float = 1.0) -> Tensor:
        """Draw points by a `generator`; a `temperature` below 1 narrows components and their choice."""
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

    nats, counted, hits: -log p of the predictions that count, how many these are, and how many of them are right.
    all_hits, all, sequences: How many of all predictions are right, how many there are, and how many sequences began.
    """

    nats: Tensor
    counted: Tensor
    hits: Tensor
    all_hits: Tensor
    all: Tensor
    sequences: Tensor


def metrics(sums: Sequence[float], metric: str) -> dict[str, float]:
    """Compute what the documents report from the `sums` of a `Score`: nats, `metric`, and the accuracy in percent.

    A density has no accuracy. Where the loss masks predictions that the article's accuracy does not (unknown words and
    padding), there is the accuracy over all as well.
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
