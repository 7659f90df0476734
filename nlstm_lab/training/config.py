"""How a network is trained, as literal values that an experiment holds."""

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn

from nlstm_lab.errors import UsageError
from nlstm_lab.settings import ADDED, check


@dataclass(frozen=True)
class TrainingConfig:
    """Optimizer, clipping, schedules; numbers are above zero.

    Args:
        epochs: How often the training sequences are read.
        learning_rate: At the start.
        optimizer: Adam or RAdam with torch's betas, RMSprop with `decay`, or SGD without momentum.
        clip_norm: Threshold on a norm; None for none.
        clip: Of the whole "gradient", or of the whole "update" that the optimizer took, as in the Nested LSTM paper.
        divide_on_plateau: Divides the learning rate when an epoch's validation loss does not fall.
        slope, slope_start: (ceiling, growth) of HM-LSTM's annealing, min(ceiling, slope_start + growth * epoch).
        updates_per_epoch, batches_per_reading: Of an epoch, and of validation and test, cut short; None for all.
        warm_up: Updates over which the learning rate rises linearly.
        output_bias_rate: The output bias's learning rate, in learning rates.
        output_bias_first: Updates at the start that train the output bias alone; the rate above then holds for these.
        rate_lengths: Mean segment lengths, one for each layer with a detector, to which `ratio_loss` with `rate_weight`
            holds the boundaries in the first `rate_epochs` epochs; None for all.
        select_by: What is lowest on validation in the best epoch, whose weights are kept: the "loss" or "error" rate.
    """

    epochs: int
    learning_rate: float
    optimizer: Literal["adam", "rmsprop", "radam", "sgd"] = "adam"
    decay: float = 0.9
    clip_norm: float | None = 1.0
    clip: Literal["gradient", "update"] = "gradient"
    divide_on_plateau: float | None = None
    slope: tuple[float, float] | None = None
    updates_per_epoch: int | None = None
    batches_per_reading: int | None = None
    warm_up: int | None = field(default=None, metadata=ADDED)
    output_bias_rate: float = field(default=1.0, metadata=ADDED)
    output_bias_first: int | None = field(default=None, metadata=ADDED)
    slope_start: float = field(default=1.0, metadata=ADDED)
    rate_lengths: tuple[float, ...] | None = field(default=None, metadata=ADDED)
    rate_weight: float = field(default=0.03, metadata=ADDED)
    rate_epochs: int | None = field(default=None, metadata=ADDED)
    select_by: Literal["loss", "error"] = field(default="loss", metadata=ADDED)

    def __post_init__(self) -> None:
        check(self)
        pair = self.slope or (1.0, 1.0)
        if len(pair) != 2 or not all(0 < value < float("inf") for value in pair):
            raise UsageError(f"slope must be a ceiling and a growth, numbers above zero, not {self.slope!r}")
        if not all(length > 1 for length in self.rate_lengths or ()):
            raise UsageError(f"rate_lengths must be above 1, the steps of a segment, not {self.rate_lengths!r}")

    def make_optimizer(self, network: nn.Module) -> torch.optim.Optimizer:
        """Make the optimizer of a network.

        Raises:
            UsageError: The output bias is to be trained apart, and the network has none.
        """
        groups: Any = network.parameters()
        if self.output_bias_rate != 1 or self.output_bias_first:
            bias = _output_bias(network)
            groups = [{"params": [one for one in network.parameters() if one is not bias]}, {"params": [bias]}]
        match self.optimizer:
            case "adam":  # in one pass over the parameters, a tenth of the poems' whole step saved
                return torch.optim.Adam(groups, lr=self.learning_rate, fused=True)
            case "radam":
                return torch.optim.RAdam(groups, lr=self.learning_rate)
            case "sgd":
                return torch.optim.SGD(groups, lr=self.learning_rate)
        return torch.optim.RMSprop(groups, lr=self.learning_rate, alpha=self.decay)

    def step(self, network: nn.Module, optimizer: torch.optim.Optimizer, update: int = 0) -> torch.Tensor:
        """Make one clipped update from the gradients that are there.

        Args:
            optimizer: Of the network.
            update: How many were made before.

        Returns:
            The gradient's norm before clipping.
        """
        if update < (self.output_bias_first or 0):
            bias = _output_bias(network)
            for parameter in network.parameters():
                parameter.grad = parameter.grad if parameter is bias else None
        parameters, groups = list(network.parameters()), optimizer.param_groups
        limit = float("inf") if self.clip_norm is None or self.clip == "update" else self.clip_norm
        norm = nn.utils.clip_grad_norm_(parameters, limit)
        rates = [group["lr"] for group in groups]
        ramp = min(1.0, (update + 1) / (self.warm_up or 1))
        fast = len(groups) == 2 and (self.output_bias_first is None or update < self.output_bias_first)
        for k, group in enumerate(groups):  # of two groups the second is the output bias's
            group["lr"] *= ramp * (self.output_bias_rate if fast and k == 1 else 1.0)
        with torch.no_grad():
            before = [parameter.clone() for parameter in parameters] if self.clip == "update" else []
            optimizer.step()
            for group, rate in zip(groups, rates, strict=True):
                group["lr"] = rate
            if self.clip == "update":
                steps = [parameter - old for parameter, old in zip(parameters, before, strict=True)]
                scale = (self.clip_norm / nn.utils.get_total_norm(steps)).clamp(max=1) if self.clip_norm else 1.0
                for parameter, old, step in zip(parameters, before, steps, strict=True):
                    parameter.copy_(old + scale * step)
        return norm

    def changes_at(self, update: int, epoch: int) -> bool:
        """Say whether what `update` does is not what the next one does, so that no graph can repeat it."""
        return update < max(self.warm_up or 0, self.output_bias_first or 0) or self.holds_rates(epoch)

    def slope_at(self, epoch: int) -> float | None:
        """Return HM-LSTM's slope during `epoch` (from 0): sections 4.1 and 4.2."""
        return None if self.slope is None else min(self.slope[0], self.slope_start + self.slope[1] * epoch)

    def holds_rates(self, epoch: int) -> bool:
        """Say whether the ratio loss is part of the loss during `epoch` (from 0)."""
        return bool(self.rate_lengths) and (self.rate_epochs is None or epoch < self.rate_epochs)


def _output_bias(network: nn.Module) -> nn.Parameter:
    bias: nn.Parameter | None = getattr(network, "output_bias", None)
    if bias is None:
        raise UsageError("output_bias_rate and output_bias_first need a readout with a bias, and this one has none")
    return bias
