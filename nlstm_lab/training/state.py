"""How a training is stopped: the signals that ask for it, and the checkpoint from which it goes on exactly."""

import contextlib
import hashlib
import io
import math
import platform
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

import torch
from pydantic import ConfigDict, NonNegativeInt
from pydantic.dataclasses import dataclass

from nlstm_lab import paths
from nlstm_lab.errors import DamagedFile, LabError
from nlstm_lab.models import Score

FORMAT = 4  # raised when what a checkpoint holds changes
MARK = b"sha256:"  # stands at the end, before the digest of the rest
GOES_ON = "the same command goes on"
NOTHING = (0.0,) * len(Score._fields)
# Launchers, such as `timeout`, may send a signal twice: one that follows within this time is no second wish.
ECHO = 1.0  # seconds
HistoryRow = tuple[int, int, str, str, str, float]
COLUMNS = ("epoch", "update", "split", "evaluation", "metric", "value")


@dataclass(config=ConfigDict(strict=True, extra="forbid"))
class Progress:
    """How far a training is, as plain values; ValueError: they are others."""

    epoch: NonNegativeInt = 0
    batch: NonNegativeInt = 0  # batches of this epoch that are done
    update: NonNegativeInt = 0
    sums: list[float] = field(default_factory=lambda: list(NOTHING))  # of this epoch's training scores
    early_sums: list[float] = field(default_factory=lambda: list(NOTHING))  # since the last early row
    updates: NonNegativeInt = 0  # of all epochs together, done or not
    history: list[HistoryRow] = field(default_factory=list)
    best_epoch: NonNegativeInt = 0
    best_loss: float = math.inf
    last_loss: float = math.inf
    seconds: float = 0.0  # of everything, over all attempts
    update_seconds: float = 0.0
    tokens: NonNegativeInt = 0
    machines: list[dict[str, Any]] = field(default_factory=list)  # that took part, in their order

    def rate(self) -> float:
        """Tokens a second of the updates alone, padding counted."""
        return self.tokens / max(self.update_seconds, 1e-9)


@contextlib.contextmanager
def listening() -> Iterator[list[str]]:
    """Take the first signal in the block as a wish to save and stop, its name; a later one acts as always."""
    asked, times, before = list[str](), list[float](), dict[int, Any]()

    def handle(number: int, frame: Any) -> None:
        if not asked:
            asked.append(signal.Signals(number).name)
            times.append(time.monotonic())
        elif time.monotonic() - times[0] > ECHO:
            signal.signal(number, before[number])
            signal.raise_signal(number)

    if threading.current_thread() is threading.main_thread():
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(one) != signal.SIG_IGN:  # as under nohup, or of a job in the background
                before[one] = signal.signal(one, handle)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def save(path: Path, state: dict[str, Any]) -> None:
    """Write plain values and tensors to `path`; LabError: the system refuses."""
    packed = io.BytesIO()  # torch hides the system's reason when it writes to a file itself
    torch.save({**state, "format": FORMAT}, packed)
    packed.write(MARK + hashlib.sha256(packed.getvalue()).digest())
    with paths.writing(path, f"; {kept(path)}; {GOES_ON}"), paths.atomic(path) as partial:
        partial.write_bytes(packed.getvalue())  # shared, not copied; a view held by a failed write crashes Python 3.12


def load(path: Path) -> dict[str, Any] | None:
    """What `save` wrote, its tensors on the CPU, or None. Only the process that alone trains the run may call this."""
    for partial in path.parent.glob(f".{path.name}.*"):
        partial.unlink(missing_ok=True)  # what a killed process left half written
    try:
        content, _, digest = path.read_bytes().rpartition(MARK)
        if hashlib.sha256(content).digest() != digest:  # torch checks nothing
            raise ValueError("its sha256 is another")
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)  # type: ignore[no-any-return]
    except FileNotFoundError:
        return None
    except Exception as error:  # torch raises whatever its reader meets
        reason = str(error).partition("\n")[0]
        raise LabError(f"the checkpoint {path} cannot be read ({reason}): move it away to begin anew") from error


def peek(path: Path) -> Progress | None:
    """How far a checkpoint is, or None; for others than the process that trains: nothing there is touched."""
    try:
        return Progress(**torch.load(path, map_location="cpu", weights_only=True, mmap=True)["progress"])
    except FileNotFoundError:
        return None
    except Exception as error:  # torch raises whatever its reader meets
        raise DamagedFile(f"the checkpoint {path} is damaged or of another version: move it away") from error


def kept(path: Path | None) -> str:
    """What a failure at this moment leaves, in words."""
    return "the last good state is kept" if path and path.exists() else "no state was saved before it"


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
