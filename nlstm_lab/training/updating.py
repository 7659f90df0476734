"""How a network is trained, as literal values; and one update of it: forward, backward, clipping, optimizer.

On a GPU the whole of an update is one CUDA graph.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from nlstm_lab import cells
from nlstm_lab.cells.fast import Precision, compiled
from nlstm_lab.datasets.base import Batch
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.models import Network
from nlstm_lab.settings import ADDED, check
from nlstm_lab.training.liveness import ratio_loss
from nlstm_lab.training.state import kept

# Updates from which on compiling the fast paths' pointwise functions is worth the ten or twenty seconds that it takes.
# Results then differ from the eager functions' in the last digits.
COMPILED_FROM = 300

WARM = 3  # updates of a kind that run eagerly, on a stream of their own, before one is captured: what torch asks for

Updated = tuple[Tensor, Any]  # the parts of the score and the gradient's norm, in a row; the recurrent state, detached
Capture = Callable[[Callable[[], Updated]], Callable[[], Updated]]


@dataclass(frozen=True)
class TrainingConfig:
    """Optimizer, clipping, schedules; numbers are above zero.

    Args:
        epochs: How often the training sequences are read.
        learning_rate: At the start.
        optimizer: Adam or RAdam with torch's betas, RMSprop with `decay`, or SGD without momentum.
        clip_norm: Threshold on a norm; None for none.
        clip: Of the whole "gradient", as in the Nested LSTM paper, or of the whole "update" that the optimizer took.
        divide_on_plateau: Divides the learning rate when an epoch's validation loss does not fall.
        slope, slope_start: (ceiling, growth) of HM-LSTM's annealing, min(ceiling, slope_start + growth * epoch).
        updates_per_epoch, batches_per_reading: At most so many an epoch, and batches a reading; None for all.
        warm_up: Updates over which the learning rate rises linearly.
        output_bias_rate: The output bias's learning rate, in learning rates.
        output_bias_first: Updates at the start that train the output bias alone; only these have the rate above.
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
        if self.slope is not None and len(self.slope) != 2:
            raise UsageError(f"slope must be a ceiling and a growth, numbers above zero, not {self.slope!r}")
        if not all(length > 1 for length in self.rate_lengths or ()):
            raise UsageError(f"rate_lengths must be above 1, the steps of a segment, not {self.rate_lengths!r}")

    def make_optimizer(self, network: nn.Module) -> torch.optim.Optimizer:
        """Make the optimizer. UsageError: the output bias is to be trained apart, and the network has none."""
        groups: Any = network.parameters()
        if self.output_bias_rate != 1 or self.output_bias_first:
            bias = _output_bias(network)
            groups = [{"params": [one for one in network.parameters() if one is not bias]}, {"params": [bias]}]
        if self.optimizer == "adam":  # fused: one pass over all parameters saves a tenth of an update on the poems
            return torch.optim.Adam(groups, lr=self.learning_rate, fused=True)
        if self.optimizer == "rmsprop":
            return torch.optim.RMSprop(groups, lr=self.learning_rate, alpha=self.decay)
        return (torch.optim.RAdam if self.optimizer == "radam" else torch.optim.SGD)(groups, lr=self.learning_rate)

    def step(self, network: nn.Module, optimizer: torch.optim.Optimizer, update: int = 0) -> Tensor:
        """Make one clipped update from the gradients that are there, after `update` others, and return their norm."""
        if update < (self.output_bias_first or 0):
            bias = _output_bias(network)
            for parameter in network.parameters():
                parameter.grad = parameter.grad if parameter is bias else None
        parameters, groups = list(network.parameters()), optimizer.param_groups
        limit = float("inf") if self.clip_norm is None else self.clip_norm
        norm = nn.utils.clip_grad_norm_(parameters, float("inf") if self.clip == "update" else limit)
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
                scale = (limit / nn.utils.get_total_norm(steps)).clamp(max=1)
                for parameter, old, step in zip(parameters, before, steps, strict=True):
                    parameter.copy_(old + scale * step)
        return norm

    def slope_at(self, epoch: int) -> float | None:
        """Return HM-LSTM's slope during `epoch` (from 0): sections 4.1 and 4.2."""
        return None if self.slope is None else min(self.slope[0], self.slope_start + self.slope[1] * epoch)

    def lengths_at(self, epoch: int) -> tuple[float, ...] | None:
        """Return the mean lengths of segments that the ratio loss holds during `epoch` (from 0), or None."""
        return self.rate_lengths if self.rate_epochs is None or epoch < self.rate_epochs else None


def _output_bias(network: nn.Module) -> nn.Parameter:
    bias: nn.Parameter | None = getattr(network, "output_bias", None)
    if bias is None:
        raise UsageError("output_bias_rate and output_bias_first need a readout with a bias, and this one has none")
    return bias


@dataclass
class Updater:
    """Makes updates: `scores, state = updater(batch, state, update, epoch)`, without a wait for the device.

    On a GPU a graph takes the place of the thousands of launches of an update (`capture` makes it): one for each shape
    of a batch, and new ones once a learning rate or the slope changes, which it holds as they were.
    """

    network: Network
    config: TrainingConfig
    optimizer: torch.optim.Optimizer
    device: torch.device
    precision: Precision
    updates: int  # in all
    capture: Capture | None = None
    constants: Any = None  # what the graphs hold as it was
    graphs: dict[Any, tuple[Batch, Any, Callable[[], Updated]]] = field(default_factory=dict)
    warm: Counter[Any] = field(default_factory=Counter)  # eager updates of each kind

    def __call__(self, batch: Batch, state: Any, update: int, epoch: int) -> Updated:
        self.network.train()
        state = None if batch.fresh else state
        changes = update < max(self.config.warm_up or 0, self.config.output_bias_first or 0)  # no graph can repeat it
        if self.device.type == "cuda":  # or a copy to the device would wait for it
            self.capture = self.capture or captured
            batch = tree_map_only(Tensor, Tensor.pin_memory, batch)
        if self.capture is None or changes or self.config.lengths_at(epoch):
            return self.make(batch.to(self.device), state, update, epoch)
        constants = [group["lr"] for group in self.optimizer.param_groups], self.config.slope_at(epoch)
        if constants != self.constants:
            self.constants, self.graphs, self.warm = constants, {}, Counter()
        key = (batch.inputs.shape, batch.targets.shape, batch.mask is None, state is None)
        if key not in self.graphs:
            self.warm[key] += 1
            if self.warm[key] <= WARM:
                with aside(self.device):
                    return self.make(batch.to(self.device), state, update, epoch)
            held = tree_map_only(Tensor, lambda part: part.to(self.device, copy=True), batch)
            before = tree_map_only(Tensor, Tensor.clone, state)
            self.graphs[key] = held, before, self.capture(lambda: self.make(held, before, update, epoch))
        held, before, replay = self.graphs[key]
        for there, here in zip(tree_leaves((held, before)), tree_leaves((batch, state)), strict=True):
            if isinstance(there, Tensor):
                there.copy_(here, non_blocking=True)
        scores, after = replay()
        return scores.clone(), tree_map_only(Tensor, Tensor.clone, after)  # the next replay writes over them

    def make(self, batch: Batch, state: Any, update: int, epoch: int) -> Updated:
        """Make the update, from a batch on the device."""
        lengths = self.config.lengths_at(epoch)
        with cells.precision(self.precision), compiled(self.updates >= COMPILED_FROM):
            if lengths:
                hidden, after, z, z_tilde = self.network.read_boundaries(batch.inputs, state)
            else:
                hidden, after = self.network.read(batch.inputs, state)
            score = self.network.score_hidden(hidden, batch)
            loss = score.nats / score.counted.clamp(min=1)  # the mean over what counts, if anything does
            if lengths:
                loss = loss + self.config.rate_weight * ratio_loss(z, z_tilde, lengths)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
        norm = self.config.step(self.network, self.optimizer, update)
        scores = torch.stack([value.detach().double() for value in (*score, norm)])
        return scores, tree_map_only(Tensor, Tensor.detach, after)


def captured(make: Callable[[], Updated]) -> Callable[[], Updated]:
    """Capture what `make` does on a GPU, undone; what is returned does it, with the tensors that were there."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        updated = make()

    def replay() -> Updated:
        graph.replay()
        return updated

    return replay


@contextmanager
def aside(device: torch.device) -> Iterator[None]:
    """On a GPU, run what the block holds on a stream of its own, in order with the others."""
    if device.type != "cuda":
        yield
        return
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        yield
    torch.cuda.current_stream().wait_stream(side)


def make_capturable(groups: list[dict[str, Any]], device: torch.device) -> None:
    """Have an optimizer's step count lie where a graph can reach it on a GPU, and where it always did on a CPU."""
    for group in groups:
        if "capturable" in group:
            group["capturable"] = device.type == "cuda"


def find_device(name: torch.device | str) -> torch.device:
    """Find the device of that name: auto (the GPU where there is one), cpu or cuda. UsageError: it is not here."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"(cpu|cuda)(:\d+)?", str(name)):
        raise UsageError(f"device must be auto, cpu or cuda, not {name!r}")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(f"there is no device {name} here; use --device cpu")
    return device


@contextmanager
def device_faults(device: torch.device, file: Path | None, batch_size: int | None) -> Iterator[None]:
    """Say in one sentence that the device is full, or has failed in the block, and what is kept."""
    try:
        yield
    except RuntimeError as error:
        first = str(error).partition("\n")[0]
        if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in first:
            size = f" with batches of {batch_size} sequences" if batch_size else ""  # a task of your own may have none
            raise LabError(
                f"the memory of the {device.type} is full{size}; {kept(file)}. A smaller batch_size, hidden_size or "
                "length makes a variation with runs of its own"
            ) from error
        if device.type == "cuda" and "CUDA" in first:
            raise LabError(f"the GPU has failed ({first}); {kept(file)}; the same command goes on") from error
        raise
