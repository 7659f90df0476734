"""One update of a network: forward, backward, clipping, optimizer; on a GPU the whole of it as one CUDA graph."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from nlstm_lab import cells
from nlstm_lab.cells.fast.compiling import compiled
from nlstm_lab.cells.precision import Precision
from nlstm_lab.datasets.base import Batch
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.models import Network
from nlstm_lab.training.config import TrainingConfig
from nlstm_lab.training.liveness import ratio_loss
from nlstm_lab.training.state import mapped

# Updates from which on compiling the fast paths' pointwise functions is worth the ten or twenty seconds that it takes.
# Results then differ from the eager functions' in the last digits.
COMPILED_FROM = 300

WARM = 3  # updates of a kind that run eagerly, on a stream of their own, before one is captured: what torch asks for

Updated = tuple[Tensor, Any]  # the parts of the score and the gradient's norm, in a row; the recurrent state, detached
Capture = Callable[[Callable[[], Updated]], Callable[[], Updated]]


class Updater:
    """Makes updates: `scores, state = updater(batch, state, update, epoch)`. Nothing here waits for the device.

    On a GPU a graph takes the place of the thousands of launches of an update. It holds shapes, learning rates and the
    slope as they were, so that there is one for each shape of a batch, and new ones once a rate or the slope changes.

    Args:
        updates: How many the training makes in all.
        capture: What makes a graph of an update; None for the device's own, which is none on a CPU.
    """

    def __init__(
        self,
        network: Network,
        config: TrainingConfig,
        optimizer: torch.optim.Optimizer,
        device: torch.device,
        precision: Precision,
        updates: int,
        capture: Capture | None = None,
    ) -> None:
        self.network, self.config, self.optimizer = network, config, optimizer
        self.device, self.precision, self.compile = device, precision, updates >= COMPILED_FROM
        self.capture = capture or (captured if device.type == "cuda" else None)
        self.constants: Any = None  # what the graphs hold as it was
        self.graphs: dict[Any, tuple[Batch, Any, Callable[[], Updated]]] = {}
        self.warm: dict[Any, int] = {}

    def __call__(self, batch: Batch, state: Any, update: int, epoch: int) -> Updated:
        self.network.train()
        state = None if batch.fresh else state
        if self.device.type == "cuda":  # or a copy to the device would wait for it
            inputs, targets, mask = mapped(batch[:3], Tensor.pin_memory)
            batch = Batch(inputs, targets, mask, batch.fresh)
        if self.capture is None or self.config.changes_at(update, epoch):
            return self.make(batch.to(self.device), state, update, epoch)
        constants = [group["lr"] for group in self.optimizer.param_groups], self.config.slope_at(epoch)
        if constants != self.constants:
            self.constants, self.graphs, self.warm = constants, {}, {}
        key = (batch.inputs.shape, batch.targets.shape, batch.mask is None, state is None)
        if key not in self.graphs:
            self.warm[key] = self.warm.get(key, 0) + 1
            if self.warm[key] <= WARM:
                with aside(self.device):
                    return self.make(batch.to(self.device), state, update, epoch)
            inputs, targets, mask = mapped(batch[:3], lambda part: part.to(self.device, copy=True))
            held = Batch(inputs, targets, mask, batch.fresh)
            kept = mapped(state, Tensor.clone)
            self.graphs[key] = held, kept, self.capture(lambda: self.make(held, kept, update, epoch))
        held, kept, replay = self.graphs[key]
        fill((held[:3], kept), (batch[:3], state))
        scores, after = replay()
        return scores.clone(), mapped(after, Tensor.clone)  # the next replay writes over them

    def make(self, batch: Batch, state: Any, update: int, epoch: int) -> Updated:
        """Make the update, from a batch on the device."""
        lengths = self.config.rate_lengths if self.config.holds_rates(epoch) else None
        with cells.precision(self.precision), compiled(self.compile):
            if lengths:
                hidden, after, z, z_tilde = self.network.read_boundaries(batch.inputs, state)
            else:
                hidden, after = self.network.read(batch.inputs, state)
            score = self.network.score_hidden(hidden, batch)
            loss = score.nats / score.counted  # the mean over what counts
            if lengths:
                loss = loss + self.config.rate_weight * ratio_loss(z, z_tilde, lengths)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
        norm = self.config.step(self.network, self.optimizer, update)
        return torch.stack([value.detach().double() for value in (*score, norm)]), mapped(after, Tensor.detach)


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


def fill(there: Any, here: Any) -> None:
    """Copy tensors (one, tuples of them, or None) into others of the same form."""
    if isinstance(there, tuple):
        for left, right in zip(there, here, strict=True):
            fill(left, right)
    elif there is not None:
        there.copy_(here, non_blocking=True)


def find_device(name: torch.device | str) -> torch.device:
    """Find the device of that name.

    Args:
        name: auto, cpu or cuda; auto is the GPU where there is one.

    Raises:
        UsageError: There is no such device, or not on this machine.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"device must be auto, cpu or cuda, not {name!r}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(f"there is no device {name} here; use --device cpu")
    return device


@contextmanager
def device_faults(device: torch.device, kept: Callable[[], str], batch_size: int | None) -> Iterator[None]:
    """Say in one sentence that the device is full, or has failed in the block, and what is kept."""
    try:
        yield
    except RuntimeError as error:
        first = str(error).partition("\n")[0]
        if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in first:
            raise LabError(
                f"the memory of the {device.type} is full with batches of {batch_size} sequences; {kept()}. A smaller "
                "batch_size makes a variation with runs of its own"
            ) from error
        if device.type == "cuda" and "CUDA" in first:
            raise LabError(f"the GPU has failed ({first}); {kept()}; the same command goes on") from error
        raise
