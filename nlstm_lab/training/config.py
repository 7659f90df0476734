"""How a network is trained, as literal values that an experiment holds."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from nlstm_lab.settings import check


@dataclass(frozen=True)
class TrainingConfig:
    """Optimizer, clipping, schedules.

    optimizer: Adam with torch's betas, or RMSprop with `decay`. clip_norm: threshold on the norm of the whole gradient
    (`clip="gradient"`), or of the whole step that the optimizer took (`clip="update"`, as the code behind the Nested
    LSTM paper's protocol did). divide_on_plateau: the learning rate is divided by it when an epoch's validation loss
    does not fall. slope: (ceiling, growth) of HM-LSTM's annealing, min(ceiling, 1 + growth * epoch).
    updates_per_epoch: an epoch cut short, None for all of it. batches_per_reading: valid and test cut short likewise.
    UsageError: a number that is not above zero, or a word that is none of these.
    """

    epochs: int
    learning_rate: float
    optimizer: Literal["adam", "rmsprop"] = "adam"
    decay: float = 0.9
    clip_norm: float | None = 1.0
    clip: Literal["gradient", "update"] = "gradient"
    divide_on_plateau: float | None = None
    slope: tuple[float, float] | None = None
    updates_per_epoch: int | None = None
    batches_per_reading: int | None = None

    def __post_init__(self) -> None:
        check(self)

    def make_optimizer(self, network: nn.Module) -> torch.optim.Optimizer:
        if self.optimizer == "adam":  # in one pass over the parameters, a tenth of the poems' whole step saved
            return torch.optim.Adam(network.parameters(), lr=self.learning_rate, fused=True)
        return torch.optim.RMSprop(network.parameters(), lr=self.learning_rate, alpha=self.decay)

    def step(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> torch.Tensor:
        """One clipped update from the gradients that are there; returns the gradient's norm before clipping."""
        parameters = list(network.parameters())
        limit = float("inf") if self.clip_norm is None or self.clip == "update" else self.clip_norm
        norm = nn.utils.clip_grad_norm_(parameters, limit)
        if self.clip == "gradient":
            optimizer.step()
            return norm
        with torch.no_grad():
            before = [parameter.clone() for parameter in parameters]
            optimizer.step()
            steps = [parameter - old for parameter, old in zip(parameters, before, strict=True)]
            scale = (self.clip_norm / nn.utils.get_total_norm(steps)).clamp(max=1) if self.clip_norm else 1.0
            for parameter, old, step in zip(parameters, before, steps, strict=True):
                parameter.copy_(old + scale * step)
        return norm

    def slope_at(self, epoch: int) -> float | None:
        """HM-LSTM's slope during `epoch` (from 0): section 4.1 and 4.2, `epoch` read as the current one."""
        return None if self.slope is None else min(self.slope[0], 1.0 + self.slope[1] * epoch)


def set_slope(unit: Any, slope: float | None) -> None:
    """Set a unit's slope where the schedule names one."""
    if slope is not None:
        unit.slope = slope
