"""A training's state on disk: written whole or not at all, the one before it kept."""

import contextlib
import hashlib
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from nlstm_lab import paths
from nlstm_lab.errors import LabError, UsageError

FORMAT = 3  # raised when what a state holds changes
MARK = b"sha256:"  # stands at the end, before the digest of the rest


def save(path: Path, state: dict[str, Any]) -> None:
    """Write `state` (plain values and tensors) to `path`, keeping what stood there as `<name>.previous`.

    Raises:
        LabError: The disk is full, or the folder cannot be written; what was there stays.
    """
    packed = io.BytesIO()  # torch hides the system's reason when it writes to a file itself
    torch.save({**state, "format": FORMAT}, packed)
    packed.write(MARK + hashlib.sha256(packed.getvalue()).digest())
    with writing(path, kept(path)), paths.atomic(path) as partial:
        partial.write_bytes(packed.getvalue())  # shared, not copied; a view held by a failed write crashes Python 3.12
        if path.exists():
            path.replace(previous(path))


def load(path: Path) -> dict[str, Any] | None:
    """The last whole state, its tensors on the CPU, or None. Nothing is unpickled but tensors and plain values.

    A damaged state is put aside with a warning, and the one before it taken.
    Only the process that alone trains the run may call this: it clears what a killed one left half written.

    Raises:
        UsageError: It is of another version of this package.
        LabError: It cannot be read.
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
        if hashlib.sha256(content).digest() != digest:
            _put_aside(candidate, "damaged (its sha256 is another)")
            continue
        try:
            state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        except Exception as error:  # torch raises whatever its reader meets in a cut or foreign file
            _put_aside(candidate, f"damaged ({type(error).__name__})")
            continue
        if state.pop("format", None) != FORMAT:
            raise of_another_version(candidate, "another format")
        return state  # type: ignore[no-any-return]
    return None


def of_another_version(file: Path, why: object) -> UsageError:
    """The error for a whole state that this version cannot go on from; it stays where it is."""
    return UsageError(
        f"the checkpoint {file} is of another version of this package ({why}), and nothing was trained: go on with "
        "that version, or move the file away to begin anew"
    )


def peek(path: Path) -> dict[str, Any] | None:
    """The state at `path`, or None, for others than the process that trains: nothing there is touched."""
    for candidate in (path, previous(path)):
        with contextlib.suppress(Exception):  # torch raises whatever its reader meets
            state: dict[str, Any] = torch.load(candidate, map_location="cpu", weights_only=True, mmap=True)
            if state.get("format") == FORMAT:
                return state
    return None


def previous(path: Path) -> Path:
    """Where the state before the one at `path` stands."""
    return path.with_name(f"{path.name}.previous")


def kept(path: Path) -> str:
    """What a failure at this moment leaves, in words."""
    whole = path.exists() or previous(path).exists()
    return "the last good state is kept" if whole else "no state was saved before it"


@contextmanager
def writing(target: Path, left: str) -> Iterator[None]:
    """Turn a failed write to `target` into one sentence that says why, what is `left`, and what to do."""
    try:
        yield
    except OSError as error:
        raise LabError(f"cannot write {target} ({paths.reason(error)}); {left}; the same command goes on") from error


def _put_aside(candidate: Path, why: str) -> None:
    warnings.warn(f"the checkpoint {candidate} is {why} and was passed over", stacklevel=3)
    with contextlib.suppress(OSError):
        candidate.replace(candidate.with_name(f"{candidate.name}.damaged"))
