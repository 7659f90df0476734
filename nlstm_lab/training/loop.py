"""The training loop: blocks or carried streams, evaluation, checkpoints, and a history in long format."""

import math
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm.auto import tqdm

from nlstm_lab.datasets.base import Batch, Split, Task
from nlstm_lab.errors import LabError, TrainingFailed
from nlstm_lab.models import Network, Score, metrics
from nlstm_lab.training import checkpoint as checkpoints
from nlstm_lab.training.config import TrainingConfig, set_slope
from nlstm_lab.training.liveness import shares

# Updates of the first epoch after which the loss so far and the share of dead memory cells are logged: the inner
# memory of a Nested LSTM can die within ten updates (protocol 38), so they lie close together at the start.
EARLY = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)

NOTHING = (0.0,) * len(Score._fields)
SPLITS: tuple[Split, ...] = ("valid", "test")  # train is read while it trains
Row = tuple[int, int, str, str, str, float]
COLUMNS = ("epoch", "update", "split", "reader", "metric", "value")


class Interrupted(LabError):
    """Training was stopped by a signal after its state was saved."""

    exit_code = 130


@dataclass
class Fit:
    """What training leaves: the history, the best epoch of each metric, the weights of the best validation loss."""

    history: list[Row]
    best_epoch: int
    weights: dict[str, Tensor]
    seconds: float
    tokens_per_second: float


@dataclass
class _Progress:
    """Everything besides parameters and random states that a resumed training must know."""

    epoch: int = 0
    batch: int = 0  # batches of this epoch that are done
    update: int = 0
    sums: list[float] = field(default_factory=lambda: list(NOTHING))  # of this epoch's training scores
    early_sums: list[float] = field(default_factory=lambda: list(NOTHING))  # since the last early row
    history: list[Row] = field(default_factory=list)
    best_epoch: int = 0
    best_loss: float = math.inf
    last_loss: float = math.inf
    seconds: float = 0.0
    tokens: int = 0


def detach(state: Any) -> Any:
    """A state cut off from the graph that made it."""
    return tuple(detach(part) for part in state) if isinstance(state, tuple) else state.detach()


@torch.inference_mode()
def evaluate(network: Network, batches: Iterable[Batch], device: torch.device, metric: str) -> dict[str, float]:
    """Metrics over all predictions of `batches`, with the state carried where a batch says so."""
    network.eval()
    state, sums = None, None
    for batch in batches:
        moved = batch.to(device)
        outputs, state = network(moved.inputs, None if batch.fresh else state)
        score = torch.stack([part.double() for part in network.score(outputs, moved)])
        sums = score if sums is None else sums + score
    if sums is None:
        raise LabError("there is nothing to evaluate: the split is shorter than one block")
    return metrics(sums.tolist(), metric)


class _Trainer:
    def __init__(
        self, network: Network, task: Task, config: TrainingConfig, seed: int, file: Path | None, device: torch.device
    ) -> None:
        self.network, self.task, self.config = network.to(device), task, config
        self.seed, self.file, self.device = seed, file, device
        self.optimizer = config.make_optimizer(network)
        self.progress = _Progress()
        self.state: Any = None  # of the unit, where streams carry it
        self.best: dict[str, Tensor] = {}
        self.signalled: int | None = None
        torch.manual_seed(seed)
        self.restore()

    # -- the state on disk

    def restore(self) -> None:
        saved = checkpoints.load(self.file) if self.file else None
        if saved is None:
            return
        self.network.load_state_dict(saved["network"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.progress = _Progress(**saved["progress"])
        self.progress.history = [tuple(row) for row in self.progress.history]  # type: ignore[misc]
        self.state, self.best = saved["state"], saved["best"]
        torch.set_rng_state(saved["random"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(saved["cuda_random"], self.device)

    def save(self) -> None:
        if self.file is None:
            return
        saved = {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "progress": vars(self.progress),
            "state": self.state,
            "best": self.best,
            "random": torch.get_rng_state(),
        }
        if self.device.type == "cuda":
            saved["cuda_random"] = torch.cuda.get_rng_state(self.device)
        checkpoints.save(self.file, saved)

    # -- one update, one epoch

    def update(self, batch: Batch) -> list[float]:
        moved = batch.to(self.device)
        outputs, state = self.network(moved.inputs, None if batch.fresh else self.state)
        score = self.network.score(outputs, moved)
        loss = score.nats / score.counted
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = self.config.step(self.network, self.optimizer)
        if not math.isfinite(float(loss.detach())) or not math.isfinite(float(norm)):
            what = "loss" if not math.isfinite(float(loss.detach())) else "gradient"
            raise TrainingFailed(
                f"the {what} is not finite after {self.progress.update} updates (epoch {self.progress.epoch + 1}): "
                "the last good checkpoint is kept; lower the learning rate or the clipping threshold"
            )
        self.state = detach(state)
        return [float(part.detach()) for part in score]

    def batches(self) -> Iterator[Batch]:
        """This epoch's training batches; their order depends on the seed and the epoch alone."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.progress.epoch)
        return islice(self.task.train(generator), self.progress.batch, self.config.updates_per_epoch)

    def log(self, epoch: int, split: str, reader: str, values: dict[str, float]) -> None:
        at = (epoch, self.progress.update)
        self.progress.history += [(*at, split, reader, name, value) for name, value in values.items()]

    def log_early(self) -> None:
        """The training loss since the last early row, and the share of dead cells in every memory."""
        progress, reader = self.progress, self.task.readers[0]
        if progress.early_sums[1]:
            self.log(0, "early", reader, metrics(progress.early_sums, self.task.metric))
            progress.early_sums = list(NOTHING)
        self.log(0, "early", reader, self.liveness())

    def liveness(self) -> dict[str, float]:
        self.network.eval()
        probe = next(iter(self.task.evaluate("valid", self.task.readers[0]))).to(self.device)
        with torch.inference_mode():
            return shares(self.network, probe.inputs)

    def end_epoch(self) -> None:
        progress, reader = self.progress, self.task.readers[0]
        epoch = progress.epoch + 1
        self.log(epoch, "train", reader, metrics(progress.sums, self.task.metric))
        # the test score is logged for the learning curves alone; nothing is selected on it
        for split in SPLITS:
            values = evaluate(self.network, self.task.evaluate(split, reader), self.device, self.task.metric)
            self.log(epoch, split, reader, values)
            if split == "valid":
                loss = values["nll_nats"]
        self.log(epoch, "valid", reader, self.liveness())
        progress.epoch, progress.batch, progress.sums = epoch, 0, list(NOTHING)
        if loss < progress.best_loss:
            progress.best_epoch, progress.best_loss = progress.epoch, loss
            self.best = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
        if self.config.divide_on_plateau and loss >= progress.last_loss:
            for group in self.optimizer.param_groups:
                group["lr"] /= self.config.divide_on_plateau
        progress.last_loss = loss
        self.state = None

    def final_readings(self) -> None:
        """The task's other evaluations, once, with the weights of the best epoch."""
        self.network.load_state_dict(self.best)
        for reader in self.task.readers[1:]:
            for split in SPLITS:
                values = evaluate(self.network, self.task.evaluate(split, reader), self.device, self.task.metric)
                self.log(self.progress.best_epoch, split, reader, values)

    def run(self, save_every: float, show: bool) -> Fit:
        progress = self.progress
        per_epoch = self.config.updates_per_epoch or self.task.updates_per_epoch
        with tqdm(total=self.config.epochs * per_epoch, initial=progress.update, disable=not show) as bar:
            while progress.epoch < self.config.epochs:
                self.epoch(save_every, bar)
        if not any(row[3] in self.task.readers[1:] for row in progress.history):
            self.final_readings()
            self.save()
        return Fit(
            progress.history, progress.best_epoch, self.best, progress.seconds, progress.tokens / progress.seconds
        )

    def epoch(self, save_every: float, bar: "tqdm[Any]") -> None:
        progress, started = self.progress, time.monotonic()
        saved = started
        set_slope(self.network.unit, self.config.slope_at(progress.epoch))
        if progress.update == 0:
            self.log_early()
        for batch in self.batches():
            self.network.train()
            score = self.update(batch)
            progress.batch, progress.update = progress.batch + 1, progress.update + 1
            progress.tokens += batch.inputs.shape[0] * batch.inputs.shape[1]
            progress.sums = [a + b for a, b in zip(progress.sums, score, strict=True)]
            progress.early_sums = [a + b for a, b in zip(progress.early_sums, score, strict=True)]
            if progress.epoch == 0 and progress.update in EARLY:
                self.log_early()
            now = time.monotonic()
            progress.seconds, started = progress.seconds + now - started, now
            bar.update()
            if progress.batch % 10 == 0:
                self.show(bar)
            if self.signalled is not None or now - saved > save_every:
                self.save()
                saved = now
                self.stop_if_signalled()
        self.end_epoch()
        progress.seconds += time.monotonic() - started
        self.save()
        self.stop_if_signalled()

    def show(self, bar: "tqdm[Any]") -> None:
        nats, count = self.progress.sums[:2]
        rate = self.progress.tokens / self.progress.seconds
        loss = nats / count
        bar.set_postfix_str(f"loss {loss:.3f}, {loss / math.log(2):.3f} bits, {rate:,.0f} tokens/s", refresh=False)

    # -- signals

    @contextmanager
    def listening(self) -> Iterator[None]:
        """SIGINT and SIGTERM ask for a save after the update under way."""

        def handler(number: int, frame: Any) -> None:
            self.signalled = number

        try:
            before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
        except ValueError:  # not the main thread: whoever runs this thread handles signals
            yield
            return
        try:
            yield
        finally:
            for number, previous in before.items():
                signal.signal(number, previous)

    def stop_if_signalled(self) -> None:
        if self.signalled is not None:
            name = signal.Signals(self.signalled).name
            raise Interrupted(f"{name}: saved after {self.progress.update} updates; the same command resumes")


def fit(
    network: Network,
    task: Task,
    config: TrainingConfig,
    *,
    seed: int,
    checkpoint: Path | None = None,
    device: torch.device | str = "cpu",
    save_every: float = 60.0,
    progress: bool = True,
) -> Fit:
    """Train `network` on `task`, resuming from `checkpoint` where there is one, exactly where it stopped (on the CPU).

    seed: of the batch order and of everything random in the network. save_every: seconds between checkpoints.
    Raises TrainingFailed for a loss or gradient that is not finite, Interrupted after a signal.
    """
    trainer = _Trainer(network, task, config, seed, checkpoint, torch.device(device))
    with trainer.listening():
        return trainer.run(save_every, progress)
