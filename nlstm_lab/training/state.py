"""Everything that a stopped training must know to go on exactly, and its checkpoint.

A checkpoint is written whole or not at all, and the one before it is kept beside it.
"""

import contextlib
import hashlib
import io
import math
import platform
import time
import warnings
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nlstm_lab import paths
from nlstm_lab.errors import LabError, UsageError
from nlstm_lab.models import Score
from nlstm_lab.training.updating import TrainingConfig, make_capturable, mapped

FORMAT = 3  # raised when what a checkpoint holds changes
MARK = b"sha256:"  # stands at the end, before the digest of the rest
GOES_ON = "the same command goes on"
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
        """Read what `vars` of one holds; ValueError or TypeError: it has other fields, counts or rows."""
        counts = ("epoch", "batch", "update", "updates", "best_epoch", "tokens")
        right = isinstance(saved, dict) and saved.keys() == {one.name for one in fields(cls)}
        right = right and all(type(saved[name]) is int and saved[name] >= 0 for name in counts)
        right = right and all([*map(type, row)] == [int, int, str, str, str, float] for row in saved["history"])
        right = right and all(len(saved[name]) == len(NOTHING) for name in ("sums", "early_sums"))
        if not right or saved["best_epoch"] > saved["epoch"]:
            raise ValueError("its progress has other fields, counts or rows")
        return cls(**saved)

    def rate(self) -> float:
        """Tokens a second of the updates alone, whatever was read besides."""
        return self.tokens / max(self.update_seconds, 1e-9)


class State:
    """A network in training, in memory and in `file` (None keeps nothing); `setup` must agree where it goes on."""

    def __init__(self, network: nn.Module, optimizer: Any, file: Path | None, device: torch.device, setup: Any) -> None:
        self.network, self.optimizer, self.file, self.device = network, optimizer, file, device
        make_capturable(optimizer.param_groups, device)
        self.setup = {name: value for name, value in setup.items() if name != "epochs"}  # more of them may be added
        self.progress = Progress()
        self.carried: Any = None  # the recurrent layers' state between batches, where streams carry it
        self.best: dict[str, Tensor] = {}  # the weights of the best epoch
        self.machines: list[dict[str, Any]] = []  # that took part, in their order; {} is one that was not recorded
        self.began = self.saved = time.monotonic()

    def restore(self) -> None:
        """Go on from the file, where there is one; UsageError: it is of another training, network or version."""
        saved = load(self.file) if self.file else None
        before = []
        if self.file is not None and saved is not None:
            try:
                before = self._take(saved, self.file)
            except UsageError:
                raise
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise UsageError(
                    f"the checkpoint {self.file} is of another version of this package ({error}), and nothing was "
                    "trained: go on with that version, or move the file away to begin anew"
                ) from error
        here = machine()
        self.machines = before if here in before else [*before, here]
        if here not in before and any(before):
            named = "{processor} ({instructions}, {threads} threads, torch {torch})".format
            warnings.warn(
                f"this training was on {named(**before[-1])} and goes on on {named(**here)}: its last digits are"
                " no longer those of one machine",
                stacklevel=3,
            )

    def _take(self, saved: dict[str, Any], file: Path) -> list[dict[str, Any]]:
        """Go on from what `file` holds; returns the machines that took part."""
        if saved["format"] != FORMAT:
            raise ValueError("another format")
        for name, now in self.setup.items():
            then = saved["setup"].get(name, getattr(TrainingConfig, name, None))
            if then != now:
                raise UsageError(
                    f"{file} was begun with {name}={then!r} and would go on with {now!r}: start it as begun, or name "
                    "another file"
                )
        self.progress = Progress.read(saved["progress"])
        try:
            self.network.load_state_dict(saved["network"])
        except RuntimeError as error:
            raise UsageError(f"{file} holds the weights of another network: name another file") from error
        make_capturable(saved["optimizer"]["param_groups"], self.device)
        self.optimizer.load_state_dict(saved["optimizer"])
        self.best = {name: value.to(self.device) for name, value in saved["best"].items()}
        self.carried = mapped(saved["carried"], lambda tensor: tensor.to(self.device))
        machines: list[dict[str, Any]] = saved["machines"]
        self.began -= self.progress.seconds
        torch.set_rng_state(saved["random"]["cpu"])
        if self.device.type == "cuda" and "cuda" in saved["random"]:
            torch.cuda.set_rng_state(saved["random"]["cuda"], self.device)
        return machines

    def save(self, random: Random | None = None) -> None:
        """Write everything, with `random` in the place of today's random states."""
        self.saved, self.progress.seconds = time.monotonic(), self.seconds()
        if self.file is not None:
            everything = {
                **{"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()},
                **{"progress": vars(self.progress), "best": self.best, "setup": self.setup, "machines": self.machines},
                **{"carried": mapped(self.carried, Tensor.cpu), "random": random or self.random()},
            }
            save(self.file, everything)

    def seconds(self) -> float:
        return time.monotonic() - self.began  # over all attempts

    def random(self) -> Random:
        states = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            states["cuda"] = torch.cuda.get_rng_state(self.device)
        return states


def save(path: Path, state: dict[str, Any]) -> None:
    """Write plain values and tensors to `path`, keeping what stood there; LabError: the system refuses."""
    packed = io.BytesIO()  # torch hides the system's reason when it writes to a file itself
    torch.save({**state, "format": FORMAT}, packed)
    packed.write(MARK + hashlib.sha256(packed.getvalue()).digest())
    with paths.writing(path, f"; {kept(path)}; {GOES_ON}"), paths.atomic(path) as partial:
        partial.write_bytes(packed.getvalue())  # shared, not copied; a view held by a failed write crashes Python 3.12
        if path.exists():
            path.replace(previous(path))


def load(path: Path) -> dict[str, Any] | None:
    """The last whole checkpoint, its tensors on the CPU, or None. Only tensors and plain values are unpickled.

    A damaged one is put aside with a warning, and the one before it taken. Only the process that alone trains the run
    may call this: it clears what a killed one left half written. LabError: it cannot be read.
    """
    for partial in path.parent.glob(f".{path.name}.*"):
        partial.unlink(missing_ok=True)
    for candidate in (path, previous(path)):
        try:
            content, _, digest = candidate.read_bytes().rpartition(MARK)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise LabError(f"cannot read the checkpoint {candidate} ({paths.reason(error)})") from error
        try:
            if hashlib.sha256(content).digest() != digest:
                raise ValueError("its sha256 is another")
            return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)  # type: ignore[no-any-return]
        except Exception as error:  # torch raises whatever its reader meets in a cut or foreign file
            reason = str(error).partition("\n")[0]
            warnings.warn(f"the checkpoint {candidate} is damaged ({reason}) and was passed over", stacklevel=2)
            with contextlib.suppress(OSError):
                candidate.replace(candidate.with_name(f"{candidate.name}.damaged"))
    return None


def peek(path: Path) -> dict[str, Any] | None:
    """The checkpoint at `path`, or None, for others than the process that trains: nothing there is touched."""
    for candidate in (path, previous(path)):
        with contextlib.suppress(Exception):  # torch raises whatever its reader meets
            state: dict[str, Any] = torch.load(candidate, map_location="cpu", weights_only=True, mmap=True)
            if state["format"] == FORMAT:
                return state
    return None


def previous(path: Path) -> Path:
    return path.with_name(f"{path.name}.previous")


def kept(path: Path) -> str:
    """What a failure at this moment leaves, in words."""
    return "the last good state is kept" if path.exists() or previous(path).exists() else "no state was saved before it"


def machine() -> dict[str, Any]:
    """The processor, the instructions and threads that torch uses, the GPUs, and torch's version."""
    processor = platform.processor()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return {
        "processor": processor,
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cuda": [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())],
        "torch": str(torch.__version__),  # a plain string, as checkpoints hold
    }
