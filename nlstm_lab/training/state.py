"""Everything that a stopped training must know to go on exactly: parameters, optimizer, progress, random states."""

import math
import platform
import time
import warnings
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nlstm_lab.errors import UsageError
from nlstm_lab.models import Score
from nlstm_lab.training import checkpoint
from nlstm_lab.training.config import TrainingConfig

NOTHING = (0.0,) * len(Score._fields)
Row = tuple[int, int, str, str, str, float]
COLUMNS = ("epoch", "update", "split", "evaluation", "metric", "value")
Random = dict[str, Tensor]  # generator states by device type


@dataclass
class Progress:
    """How far a training is, as plain values."""

    epoch: int = 0
    batch: int = 0  # batches of this epoch that are done
    update: int = 0
    sums: list[float] = field(default_factory=lambda: list(NOTHING))  # of this epoch's training scores
    early_sums: list[float] = field(default_factory=lambda: list(NOTHING))  # since the last early row
    updates: int = 0  # of all epochs together, done or not
    history: list[Row] = field(default_factory=list)
    best_epoch: int = 0
    best_loss: float = math.inf
    last_loss: float = math.inf
    seconds: float = 0.0  # of everything, over all attempts
    update_seconds: float = 0.0
    tokens: int = 0

    @classmethod
    def read(cls, saved: Any) -> "Progress":
        """Read what `vars` of one holds.

        Raises:
            ValueError: It has other fields, or a count that is none.
        """
        counts = ("epoch", "batch", "update", "updates", "best_epoch", "tokens")
        known = [one.name for one in fields(cls)]
        if not isinstance(saved, dict) or sorted(saved) != sorted(known):
            raise ValueError("its progress has other fields")
        if any(type(saved[name]) is not int or saved[name] < 0 for name in counts):
            raise ValueError("its progress has a count that is none")
        if saved["best_epoch"] > saved["epoch"]:
            raise ValueError("its best epoch is not among those that were trained")
        return cls(**saved)

    def rate(self) -> float:
        """Tokens a second of the updates alone, whatever was read besides."""
        return self.tokens / max(self.update_seconds, 1e-9)


class State:
    """A network in training, in memory and in `file` (None keeps nothing)."""

    def __init__(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        file: Path | None,
        device: torch.device,
        setup: dict[str, Any],
    ) -> None:
        self.network, self.optimizer, self.file, self.device = network, optimizer, file, device
        make_capturable(optimizer.param_groups, device)
        # what a training that goes on must agree in; more epochs may be added
        self.setup = {name: value for name, value in setup.items() if name != "epochs"}
        self.progress = Progress()
        self.carried: Any = None  # the recurrent layers' state between batches, where streams carry it
        self.best: dict[str, Tensor] = {}  # the weights of the best epoch
        self.machines: list[dict[str, Any]] = []  # that took part, in their order; {} is one that was not recorded
        self.began = self.saved = time.monotonic()

    def restore(self) -> None:
        """Go on from the file, where there is one.

        Raises:
            UsageError: It is of another training, network or version.
        """
        saved = checkpoint.load(self.file) if self.file else None
        if self.file is None or saved is None:
            self.take_part([])
            return
        try:
            then = saved["setup"]
            for name, now in self.setup.items():
                before = then.get(name, getattr(TrainingConfig, name, None))
                if before != now:
                    raise UsageError(
                        f"{self.file} was begun with {name}={before!r} and would go on with {now!r}: start it as "
                        "begun, or name another file"
                    )
            self.progress = Progress.read(saved["progress"])
            try:
                self.network.load_state_dict(saved["network"])
            except RuntimeError as error:
                raise UsageError(f"{self.file} holds the weights of another network: name another file") from error
            make_capturable(saved["optimizer"]["param_groups"], self.device)
            self.optimizer.load_state_dict(saved["optimizer"])
            self.best = {name: value.to(self.device) for name, value in saved["best"].items()}
            self.carried = mapped(saved["carried"], lambda tensor: tensor.to(self.device))
            machines, random = saved["machines"], saved["random"]
        except UsageError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise checkpoint.of_another_version(self.file, error) from error
        self.take_part(machines)
        self.began -= self.progress.seconds
        torch.set_rng_state(random["cpu"])
        if self.device.type == "cuda" and "cuda" in random:
            torch.cuda.set_rng_state(random["cuda"], self.device)

    def take_part(self, before: list[dict[str, Any]]) -> None:
        """Add the machine of this attempt to those of the attempts before."""
        here = machine()
        self.machines = before if here in before else [*before, here]
        if here not in before and any(before):
            named = "{processor} ({instructions}, {threads} threads, torch {torch})".format
            warnings.warn(
                f"this training was on {named(**before[-1])} and goes on on {named(**here)}: its last digits are"
                " no longer those of one machine",
                stacklevel=4,
            )

    def save(self, random: Random | None = None) -> None:
        """Write everything, with `random` in the place of today's random states."""
        self.saved, self.progress.seconds = time.monotonic(), self.seconds()
        if self.file is None:
            return
        everything = {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "progress": vars(self.progress),
            "best": self.best,
            "setup": self.setup,
            "carried": mapped(self.carried, Tensor.cpu),
            "random": random or self.random(),
            "machines": self.machines,
        }
        checkpoint.save(self.file, everything)

    def seconds(self) -> float:
        """Since the training began, over all attempts."""
        return time.monotonic() - self.began

    def random(self) -> Random:
        """Today's random states."""
        states = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            states["cuda"] = torch.cuda.get_rng_state(self.device)
        return states

    def log(self, epoch: int, split: str, evaluation: str, values: dict[str, float]) -> list[Row]:
        """Rows of the history, not yet in it; none of a NaN, which a record may not hold."""
        known = {name: value for name, value in values.items() if not math.isnan(value)}
        return [(epoch, self.progress.update, split, evaluation, name, value) for name, value in known.items()]


def make_capturable(groups: list[dict[str, Any]], device: torch.device) -> None:
    """Have an optimizer's step count lie where a graph can reach it on a GPU, and where it always did on a CPU."""
    for group in groups:
        if "capturable" in group:
            group["capturable"] = device.type == "cuda"


def mapped(state: Any, change: Any) -> Any:
    """A recurrent state (a tensor, tuples of them, or None) with every tensor changed."""
    if isinstance(state, tuple):
        return tuple(mapped(item, change) for item in state)
    return None if state is None else change(state)


def machine() -> dict[str, Any]:
    """The processor, the instructions and threads that torch uses, the GPUs, and torch's version."""
    cards = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
    return {
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cuda": cards,
        "torch": str(torch.__version__),  # a plain string, as checkpoints hold
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
