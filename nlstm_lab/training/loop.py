"""The training loop: blocks or carried streams, evaluation, checkpoints, and a history in long format."""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor
from tqdm.auto import tqdm

from nlstm_lab.cells.fast.computing import Precision
from nlstm_lab.datasets.base import Batch, Evaluation, Mixture, Split, Task
from nlstm_lab.errors import Interrupted, LabError, TrainingFailed, UsageError
from nlstm_lab.models import Network, metrics
from nlstm_lab.training.liveness import shares
from nlstm_lab.training.state import NOTHING, Random, Row, State, kept
from nlstm_lab.training.updating import TrainingConfig, Updater, device_faults, find_device

# Updates of the first epoch after which the loss so far and the share of dead memory cells are logged: the inner
# memory of a Nested LSTM can die within ten updates (notebook 93), so they lie close together at the start.
EARLY = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)

# Updates between two times that what they left is read from the device, which makes a GPU wait for the processor.
SYNC_EVERY = {"cpu": 1, "cuda": 50}
# Launchers, such as `timeout`, may send a signal to their process twice: the second one at once is not a wish.
ECHO = 1.0  # seconds
SAVE_EVERY = 60.0  # seconds between checkpoints, of which there is one after every epoch besides

SPLITS: tuple[Split, ...] = ("valid", "test")  # train is read while it trains


@dataclass(frozen=True)
class TrainingResult:
    """What training leaves: the history, the best epoch and its weights, chosen on validation alone.

    Args:
        history: Rows of epoch, update, split, evaluation, metric and value.
        epochs, best_epoch, weights: How many were trained, the best one (`TrainingConfig.select_by`), its weights.
        seconds, tokens_per_second: Of everything, over all attempts; of the updates alone.
        machines: That took part; an empty one is of an attempt that did not record its own.
    """

    history: list[Row]
    epochs: int
    best_epoch: int
    weights: dict[str, Tensor]
    seconds: float
    tokens_per_second: float
    machines: list[dict[str, Any]]


@torch.inference_mode()
def evaluate(network: Network, batches: Iterable[Batch], device: torch.device, metric: str) -> dict[str, float]:
    """Compute metrics over all predictions of batches, with the state carried where a batch says so.

    Args:
        batches: At least one, or it is a LabError.
        metric: Its name, such as "bpc".
    """
    network.eval()
    state, sums = None, None
    for batch in batches:
        score, state = network.score(batch.to(device), None if batch.fresh else state)
        scored = torch.stack([value.double() for value in score])
        sums = scored if sums is None else sums + scored
    if sums is None:
        raise LabError(
            "there is nothing to evaluate: the split is shorter than one block; choose a shorter length or longer text"
        )
    return metrics(sums.tolist(), metric)


@dataclass
class Request:
    """The name of the signal that has asked to stop, or None, and when it did."""

    name: str | None = None
    at: float = 0.0


@contextmanager
def listening() -> Iterator[Request]:
    """Take SIGINT, SIGTERM and SIGHUP as a request to save and stop while the block runs; a later one acts as always.

    In another than the main thread nothing is taken.
    """
    request, before = Request(), dict[int, Any]()

    def handle(number: int, frame: Any) -> None:
        if request.name is None:
            request.name, request.at = signal.Signals(number).name, time.monotonic()
        elif time.monotonic() - request.at > ECHO:
            signal.signal(number, before[number])
            signal.raise_signal(number)

    if threading.current_thread() is threading.main_thread():
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if one != signal.SIGHUP or signal.getsignal(one) != signal.SIG_IGN:  # as nohup has it
                before[one] = signal.signal(one, handle)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Trainer:
    def __init__(self, state: State, task: Task, updater: Updater, after_update: Callable[[int], None]) -> None:
        self.state, self.task, self.updater, self.after_update = state, task, updater, after_update
        self.network, self.config, self.evaluation = updater.network, updater.config, task.evaluations[0]
        # scores and gradient norms of the updates since they were last read, summed on the device, and their number
        self.unread, self.waiting = torch.zeros(len(NOTHING) + 1, dtype=torch.float64, device=state.device), 0
        self.read_at, self.request = time.monotonic(), Request()

    def update(self, batch: Batch) -> None:
        """One step; what it scored stays on the device, unread."""
        state, progress = self.state, self.state.progress
        scores, state.carried = self.updater(batch, state.carried, progress.update, progress.epoch)
        self.unread += scores
        self.waiting += 1
        progress.batch, progress.update = progress.batch + 1, progress.update + 1
        progress.tokens += batch.inputs.shape[0] * batch.inputs.shape[1]

    def sync_and_log(self) -> None:
        """Read from the device what the updates left; log, save and stop where it is time to."""
        state, progress = self.state, self.state.progress
        *scores, norm = self.unread.tolist()
        if not math.isfinite(scores[0]) or not math.isfinite(norm):
            self.fail("loss" if not math.isfinite(scores[0]) else "gradient")
        progress.sums = [a + b for a, b in zip(progress.sums, scores, strict=True)]
        progress.early_sums = [a + b for a, b in zip(progress.early_sums, scores, strict=True)]
        self.unread.zero_()
        self.waiting = 0
        progress.update_seconds += time.monotonic() - self.read_at
        if self.is_early():
            self.log_early()
        asked = self.request.name is not None  # looked up once: a signal may come at any moment
        if asked or time.monotonic() - state.saved > SAVE_EVERY:
            state.save()
        if asked:
            self.stop()
        self.read_at = time.monotonic()

    def is_early(self) -> bool:
        return self.state.progress.epoch == 0 and self.state.progress.update in EARLY

    def fail(self, what: str) -> NoReturn:
        progress = self.state.progress
        raise TrainingFailed(
            f"the {what} is not finite by update {progress.update} (epoch {progress.epoch + 1}); {self.kept()}. A "
            "smaller learning rate or clipping threshold may help; it makes a variation with runs of its own",
            what,
            progress.update,
        )

    def stop(self) -> NoReturn:
        saved = f"saved after {self.state.progress.update} updates" if self.state.file else "nothing was saved"
        raise Interrupted(f"{self.request.name}: {saved}; the same command goes on")

    def kept(self) -> str:
        return kept(self.state.file) if self.state.file else "nothing was saved"

    def epoch(self, bar: "tqdm[Any]") -> None:
        progress = self.state.progress
        if (slope := self.config.slope_at(progress.epoch)) is not None:
            self.network.recurrent.slope = slope  # type: ignore[assignment]
        if progress.update == 0:
            self.log_early()
        # the order of the batches depends on the seed and the epoch alone
        generator = torch.Generator().manual_seed((self.state.setup["seed"] * 1_000_003 + progress.epoch) % 2**63)
        self.read_at = time.monotonic()
        for batch in islice(self.task.train(generator), progress.batch, self.config.updates_per_epoch):
            self.update(batch)
            if progress.update % SYNC_EVERY[self.state.device.type] == 0 or self.is_early():
                self.sync_and_log()
                loss = progress.sums[0] / progress.sums[1]
                text = f"loss {loss:.3f}, {loss / math.log(2):.3f} bits, {progress.rate():,.0f} tokens/s"
                bar.set_postfix_str(text, refresh=False)
                bar.update(progress.update - bar.n)
            self.after_update(progress.update)
        if self.waiting:
            self.sync_and_log()
        self.end_epoch()
        self.state.save()

    def end_epoch(self) -> None:
        """Read the epoch's result and choose on validation; the state is as before until all is read."""
        state, progress = self.state, self.state.progress
        epoch, random = progress.epoch + 1, state.random()
        # the test score is logged for the learning curves alone; nothing is selected on it
        values = {split: self.evaluate(split, self.evaluation, random) for split in SPLITS}
        self.log(epoch, "train", metrics(progress.sums, self.task.metric))
        for split in SPLITS:
            self.log(epoch, split, values[split])
        self.log(epoch, "valid", self.liveness())
        progress.epoch, progress.batch, progress.sums = epoch, 0, list(NOTHING)
        loss = values["valid"]["nll_nats"]
        lowest = loss if self.config.select_by == "loss" else 100 - values["valid"]["top1_accuracy_pct"]
        if lowest < progress.best_loss:
            progress.best_epoch, progress.best_loss = epoch, lowest
            state.best = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
        if self.config.divide_on_plateau and loss >= progress.last_loss:
            for group in state.optimizer.param_groups:
                group["lr"] /= self.config.divide_on_plateau
        progress.last_loss = loss
        state.carried = None

    def log(self, epoch: int, split: str, values: dict[str, float], evaluation: Evaluation | None = None) -> None:
        """Add rows to the history; none of a NaN, which a record may not hold."""
        at = (epoch, self.state.progress.update, split, evaluation or self.evaluation)
        self.state.progress.history += [(*at, name, value) for name, value in values.items() if not math.isnan(value)]

    def evaluate(self, split: Split, evaluation: Evaluation, random: Random | None = None) -> dict[str, float]:
        """Metrics of a split; a signal on the way saves the state with `random` as the random states, where given."""

        def batches() -> Iterator[Batch]:
            for batch in islice(self.task.evaluate(split, evaluation), self.config.batches_per_reading):
                if self.request.name is not None:
                    if random is not None:
                        self.state.save(random)
                    self.stop()
                yield batch

        values = evaluate(self.network, batches(), self.state.device, self.task.metric)
        if not all(map(math.isfinite, values.values())):
            self.fail(f"{split} loss")
        return values

    def liveness(self) -> dict[str, float]:
        self.network.eval()
        batch = next(iter(self.task.evaluate("valid", self.evaluation))).to(self.state.device)
        with torch.inference_mode():
            return shares(self.network, batch.inputs)

    def log_early(self) -> None:
        """The training loss since the last early row, and the share of dead cells in every memory."""
        progress = self.state.progress
        if progress.early_sums[1]:
            self.log(0, "early", metrics(progress.early_sums, self.task.metric))
            progress.early_sums = list(NOTHING)
        self.log(0, "early", self.liveness())

    def finish(self) -> None:
        """The task's other evaluations, with the weights of the best epoch; the checkpoint stays the last epoch's."""
        self.network.load_state_dict(self.state.best)
        for evaluation, split in product(self.task.evaluations[1:], SPLITS):
            self.log(self.state.progress.best_epoch, split, self.evaluate(split, evaluation), evaluation)

    def run(self, patience: int | None, show: bool) -> TrainingResult:
        state, progress = self.state, self.state.progress
        most = self.config.epochs
        with (
            listening() as self.request,
            device_faults(state.device, self.kept, getattr(self.task, "batch_size", None)),
            tqdm(total=progress.updates, initial=progress.update, disable=not show) as bar,
        ):
            while progress.epoch < most and (patience is None or progress.epoch - progress.best_epoch < patience):
                self.epoch(bar)
            self.finish()
        took = state.seconds(), progress.rate(), state.machines
        return TrainingResult(progress.history, progress.epoch, progress.best_epoch, state.best, *took)


def fit(
    network: Network,
    task: Task,
    config: TrainingConfig,
    *,
    seed: int,
    checkpoint: Path | None = None,
    device: torch.device | str = "cpu",
    precision: Precision = "fp32",
    patience: int | None = None,
    progress: bool = True,
    after_update: Callable[[int], None] = lambda update: None,
) -> TrainingResult:
    """Train a network, going on from its checkpoint where there is one.

    On the CPU the same seed gives the same history and weights, digit for digit, on one machine with one number of
    threads, stopped on the way or not; resumed on another machine, it warns. A GPU sums in an order of its own choice.

    Args:
        task: What is learned.
        config: How it is trained.
        seed: Of the batch order and of everything random in the network.
        checkpoint: The file to save to and resume from; None saves nothing.
        device: "auto", "cpu" or "cuda"; auto is the GPU where there is one.
        precision: Of the updates; every reading is taken in fp32.
        patience: The training ends when what chooses the best epoch has not improved for so many; None for all of them.
        progress: Show a progress bar.
        after_update: Called with the number of updates made, after each; it may set the network to eval mode.

    Raises:
        TrainingFailed: A loss or gradient is not finite; the last good checkpoint stays.
        Interrupted: A signal asked to stop.
        UsageError: The checkpoint is of another training; `select_by` is "error" where nothing is right or wrong.
        LabError: The checkpoint cannot be written.
    """
    if config.select_by == "error" and isinstance(task.output, Mixture):
        raise UsageError("select_by=error needs predictions that are right or wrong, not a density: leave it at loss")
    where = find_device(device)
    network.to(where)
    setup = {"precision": precision, "seed": seed, "data": task.fingerprint, **asdict(config)}
    state = State(network, config.make_optimizer(network), checkpoint, where, setup)
    torch.manual_seed(seed)
    state.restore()
    state.progress.updates = config.epochs * (config.updates_per_epoch or task.updates_per_epoch)
    updater = Updater(network, config, state.optimizer, where, precision, state.progress.updates)
    return _Trainer(state, task, updater, after_update).run(patience, progress)
