"""The training loop: blocks or carried streams, evaluation, checkpoints, and a history in long format."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import islice, product
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only
from tqdm.auto import tqdm

from nlstm_lab.cells.fast import Precision
from nlstm_lab.datasets.base import Batch, Evaluation, Mixture, Split, Task
from nlstm_lab.errors import Interrupted, LabError, TrainingFailed, UsageError
from nlstm_lab.models import Network, metrics
from nlstm_lab.settings import check_seed, counted
from nlstm_lab.training.liveness import shares
from nlstm_lab.training.state import FORMAT, NOTHING, Progress, kept, listening, load, machine, save
from nlstm_lab.training.updating import TrainingConfig, Updater, device_faults, find_device, make_capturable

# Updates of the first epoch after which the loss so far and the share of dead memory cells are logged: the inner
# memory of a Nested LSTM can die within ten updates (notebook 93), so they lie close together at the start.
EARLY = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)

# Updates between two times that what they left is read from the device, which makes a GPU wait for the processor.
SYNC_EVERY = {"cpu": 1, "cuda": 50}
SAVE_EVERY = 60.0  # seconds between checkpoints; the end of every epoch writes two more

logger = logging.getLogger(__name__)
SPLITS: tuple[Split, ...] = ("valid", "test")  # train is read while it trains


@torch.inference_mode()
def evaluate(network: Network, batches: Iterable[Batch], device: torch.device, metric: str) -> dict[str, float]:
    """Compute metrics over all predictions of batches, with the state carried where a batch says so.

    Args:
        batches: With one prediction that counts at least, or it is a LabError.
        metric: Its name, such as "bpc".
    """
    network.eval()
    state, sums = None, None
    for batch in batches:
        score, state = network.score(batch.to(device), None if batch.fresh else state)
        scored = torch.stack([value.double() for value in score])
        sums = scored if sums is None else sums + scored
    if sums is None or not sums[1]:
        raise LabError("no prediction of the split counts: take a shorter length, a longer text or more words")
    return metrics(sums.tolist(), metric)


class _Trainer:
    """A network in training, in memory and in `file` (None keeps nothing), whose `setup` must agree to go on."""

    def __init__(self, network: Network, task: Task, config: TrainingConfig, file: Path | None, setup: Any) -> None:
        self.network, self.task, self.config, self.file, self.setup = network, task, config, file, setup
        self.evaluation, self.device = task.evaluations[0], next(network.parameters()).device
        self.optimizer = config.make_optimizer(network)
        make_capturable(self.optimizer.param_groups, self.device)
        self.progress = Progress()
        self.carried: Any = None  # the recurrent layers' state between batches, where streams carry it
        self.best: dict[str, Tensor] = {}  # the weights of the best epoch
        # scores and gradient norms of the updates since they were last read, summed on the device, and their number
        self.unread, self.waiting = torch.zeros(len(NOTHING) + 1, dtype=torch.float64, device=self.device), 0
        self.asked: list[str] = []  # the signal that has asked to stop
        self.began = self.saved = self.read_at = time.monotonic()
        if file is not None and (saved := load(file)) is not None:
            self.restore(saved, file)
        if (here := machine()) not in self.progress.machines:
            self.progress.machines.append(here)
        self.progress.updates = config.epochs * min(filter(None, (config.updates_per_epoch, task.updates_per_epoch)))
        self.updater = Updater(network, config, self.optimizer, self.device, setup["precision"], self.progress.updates)

    def restore(self, saved: dict[str, Any], file: Path) -> None:
        """Go on from what `file` holds; UsageError: it is of another training, network or version."""
        for name, then in saved.get("setup", {}).items():
            if name != "epochs" and then != (now := self.setup.get(name)):  # more epochs may be added
                raise UsageError(
                    f"{file} was begun with {name}={then!r} and would go on with {now!r}: start it as begun, or move "
                    "the file away to begin anew"
                )
        try:
            if saved["format"] != FORMAT:
                raise ValueError("another format")
            self.progress = Progress(**saved["progress"])
            self.network.load_state_dict(saved["network"])
            make_capturable(saved["optimizer"]["param_groups"], self.device)
            self.optimizer.load_state_dict(saved["optimizer"])
            self.best = saved["best"]
            self.carried = tree_map_only(Tensor, lambda part: part.to(self.device), saved["carried"])
            torch.set_rng_state(saved["random"]["cpu"])
            if self.device.type == "cuda" and "cuda" in saved["random"]:
                torch.cuda.set_rng_state(saved["random"]["cuda"], self.device)
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise UsageError(
                f"the checkpoint {file} is of another network, or of another version of this package, and nothing was "
                "trained: go on with that one, or move the file away to begin anew"
            ) from error
        if self.progress.epoch > self.config.epochs:
            raise UsageError(f"{file} has {self.progress.epoch} epochs, more than the {self.config.epochs} asked for")
        self.began -= self.progress.seconds

    def save(self) -> None:
        self.saved = time.monotonic()
        self.progress.seconds = self.saved - self.began  # over all attempts
        if self.file is not None:
            random = {"cpu": torch.get_rng_state()}
            if self.device.type == "cuda":
                random["cuda"] = torch.cuda.get_rng_state(self.device)
            everything = {
                **{"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict(), "best": self.best},
                **{"progress": vars(self.progress), "setup": self.setup, "random": random},
                "carried": tree_map_only(Tensor, Tensor.cpu, self.carried),
            }
            save(self.file, everything)

    def sync_and_log(self) -> None:
        """Read from the device what the updates left; log, save and stop where it is time to."""
        progress = self.progress
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
        asked = bool(self.asked)  # looked up once: a signal may come at any moment
        if asked or time.monotonic() - self.saved > SAVE_EVERY:
            self.save()
        if asked:
            self.stop()
        self.read_at = time.monotonic()

    def is_early(self) -> bool:
        return self.progress.epoch == 0 and self.progress.update in EARLY

    def fail(self, what: str) -> NoReturn:
        progress = self.progress
        raise TrainingFailed(
            f"the {what} is not finite by update {progress.update} (epoch {progress.epoch + 1}); {kept(self.file)}. A "
            "smaller learning rate or clipping threshold may help; it makes a variation with runs of its own",
            what,
            progress.update,
        )

    def stop(self) -> NoReturn:
        saved = f"saved after {self.progress.update} updates" if self.file else "nothing was saved"
        raise Interrupted(f"{self.asked[0]}: {saved}; the same command goes on")

    def epoch(self, bar: "tqdm[Any]") -> None:
        progress = self.progress
        if (slope := self.config.slope_at(progress.epoch)) is not None:
            self.network.recurrent.slope = slope  # type: ignore[assignment]
        if progress.update == 0:
            self.log_early()
        # the order of the batches depends on the seed and the epoch alone
        generator = torch.Generator().manual_seed((self.setup["seed"] * 1_000_003 + progress.epoch) % 2**63)
        self.read_at = time.monotonic()
        for batch in islice(self.task.train(generator), progress.batch, self.config.updates_per_epoch):
            scores, self.carried = self.updater(batch, self.carried, progress.update, progress.epoch)
            self.unread += scores  # which stay on the device
            self.waiting += 1
            progress.batch, progress.update = progress.batch + 1, progress.update + 1
            progress.tokens += batch.inputs.shape[0] * batch.inputs.shape[1]
            if progress.update % SYNC_EVERY[self.device.type] == 0 or self.is_early():
                self.sync_and_log()
                loss = progress.sums[0] / max(progress.sums[1], 1)
                text = f"loss {loss:.3f}, {loss / math.log(2):.3f} bits, {progress.rate():,.0f} tokens/s"
                bar.set_postfix_str(text, refresh=False)
                bar.update(progress.update - bar.n)
            self.after_update(progress.update)
        if self.waiting:
            self.sync_and_log()
        self.save()  # what is read now may draw random numbers, and is read anew after a stop
        self.end_epoch()
        self.save()

    def end_epoch(self) -> None:
        """Read the epoch's result and choose on validation."""
        progress = self.progress
        epoch = progress.epoch + 1
        # the test score is logged for the learning curves alone; nothing is selected on it
        values = {split: self.evaluate(split, self.evaluation) for split in SPLITS}
        self.log(epoch, "train", metrics(progress.sums, self.task.metric))
        for split in SPLITS:
            self.log(epoch, split, values[split])
        self.log(epoch, "valid", self.liveness())
        progress.epoch, progress.batch, progress.sums = epoch, 0, list(NOTHING)
        loss = values["valid"]["nll_nats"]
        lowest = loss if self.config.select_by == "loss" else 100 - values["valid"]["top1_accuracy_pct"]
        if lowest < progress.best_loss:
            progress.best_epoch, progress.best_loss = epoch, lowest
            self.best = {name: value.detach().clone() for name, value in self.network.state_dict().items()}
        if self.config.divide_on_plateau and loss >= progress.last_loss:
            for group in self.optimizer.param_groups:
                group["lr"] /= self.config.divide_on_plateau
        progress.last_loss = loss
        self.carried = None
        of, best = self.config.epochs, progress.best_epoch
        logger.info("epoch %d of %d: validation loss %.4f nats, best epoch %d", epoch, of, loss, best)

    def log(self, epoch: int, split: str, values: dict[str, float], evaluation: Evaluation | None = None) -> None:
        """Add rows to the history; none of a NaN, which a record may not hold."""
        at = (epoch, self.progress.update, split, evaluation or self.evaluation)
        self.progress.history += [(*at, name, value) for name, value in values.items() if not math.isnan(value)]

    def evaluate(self, split: Split, evaluation: Evaluation) -> dict[str, float]:
        def batches() -> Iterator[Batch]:
            for batch in islice(self.task.evaluate(split, evaluation), self.config.batches_per_reading):
                if self.asked:
                    self.stop()
                yield batch

        values = evaluate(self.network, batches(), self.device, self.task.metric)
        if not all(map(math.isfinite, values.values())):
            self.fail(f"{split} loss")
        return values

    def liveness(self) -> dict[str, float]:
        self.network.eval()
        batch = next(iter(self.task.evaluate("valid", self.evaluation))).to(self.device)
        return shares(self.network, batch.inputs)

    def log_early(self) -> None:
        """The training loss since the last early row, and the share of dead cells in every memory."""
        progress = self.progress
        if progress.early_sums[1]:
            self.log(0, "early", metrics(progress.early_sums, self.task.metric))
            progress.early_sums = list(NOTHING)
        self.log(0, "early", self.liveness())

    def finish(self) -> None:
        """The task's other evaluations, with the weights of the best epoch; the checkpoint stays the last epoch's."""
        self.network.load_state_dict(self.best)
        for evaluation, split in product(self.task.evaluations[1:], SPLITS):
            self.log(self.progress.best_epoch, split, self.evaluate(split, evaluation), evaluation)

    def run(self, patience: int | None, show: bool, after_update: Callable[[int], None]) -> Progress:
        progress, self.after_update = self.progress, after_update
        logger.info("%d updates, from update %d", progress.updates, progress.update)
        with (
            listening() as self.asked,
            device_faults(self.device, self.file, getattr(self.task, "batch_size", None)),
            tqdm(total=progress.updates, initial=progress.update, disable=not show) as bar,
        ):
            while progress.epoch < self.config.epochs and progress.epoch - progress.best_epoch < (patience or math.inf):
                self.epoch(bar)
            self.finish()
        progress.seconds = time.monotonic() - self.began
        return progress


def fit(
    network: Network,
    task: Task,
    config: TrainingConfig,
    *,
    seed: int,
    checkpoint: Path | str | None = None,
    device: torch.device | str = "cpu",
    precision: Precision = "fp32",
    patience: int | None = None,
    progress: bool = True,
    after_update: Callable[[int], None] = lambda update: None,
) -> Progress:
    """Train a network, going on from its checkpoint where there is one; it has the weights of its best epoch then.

    On the CPU the same seed gives the same history and weights, digit for digit, on one machine with one number of
    threads, stopped on the way or not. A GPU sums in an order of its own choice.

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

    Returns:
        How far it went: `epoch` of them, the `best_epoch` on validation, and its `history` in rows of epoch, update,
        split, evaluation, metric and value.

    Raises:
        TrainingFailed: A loss or gradient is not finite; the last good checkpoint stays.
        Interrupted: A signal asked to stop.
        UsageError: The checkpoint is of another training; `select_by` is "error" where nothing is right or wrong;
            there is a slope, and no boundary detector; `patience` is no whole number from 1 on.
        LabError: The checkpoint is damaged, or cannot be written.
    """
    if config.select_by == "error" and isinstance(task.output, Mixture):
        raise UsageError("select_by=error needs predictions that are right or wrong, not a density: leave it at loss")
    if config.slope is not None and not hasattr(network.recurrent, "slope"):
        raise UsageError(f"a {type(network.recurrent).__name__} has no boundary detectors: leave slope out")
    patience = None if patience is None else counted(patience, "patience")
    network.to(find_device(device))
    seed = check_seed(seed)
    setup = {"precision": precision, "seed": seed, "data": task.fingerprint, **asdict(config)}
    torch.manual_seed(seed)
    file = Path(checkpoint).expanduser() if checkpoint else None
    return _Trainer(network, task, config, file, setup).run(patience, progress, after_update)
