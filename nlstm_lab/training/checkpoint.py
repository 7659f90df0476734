"""A training's state on disk: written whole or not at all, the one before it kept."""

import contextlib
import errno
import warnings
from pathlib import Path
from typing import Any

import torch

from nlstm_lab import paths
from nlstm_lab.errors import LabError


def save(path: Path, state: dict[str, Any]) -> None:
    """Write `state` to `path`, keeping what stood there as `<name>.previous`; raises LabError on a full disk."""
    try:
        with paths.atomic(path) as partial:
            torch.save(state, partial)
            if path.exists():
                path.replace(path.with_name(path.name + ".previous"))
    except (OSError, RuntimeError) as error:  # torch reports a failed write as RuntimeError
        raise LabError(f"cannot write the checkpoint {path} ({reason(error)}); {_kept(path)}") from error


def load(path: Path) -> dict[str, Any] | None:
    """The last whole state, or None; a damaged one is passed over with a warning. Nothing is unpickled but tensors."""
    for candidate in (path, path.with_name(path.name + ".previous")):
        if candidate.exists():
            try:
                return torch.load(candidate, weights_only=True)  # type: ignore[no-any-return]
            except Exception as error:  # torch raises whatever its reader meets in a cut or foreign file
                warnings.warn(f"{candidate} is damaged ({type(error).__name__}) and was passed over", stacklevel=2)
    return None


def remove(path: Path) -> None:
    """Remove a checkpoint and the one before it."""
    for candidate in (path, path.with_name(path.name + ".previous")):
        with contextlib.suppress(FileNotFoundError):
            candidate.unlink()


def reason(error: BaseException) -> str:
    """A short cause: the operating system's words where there are any."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "no space left on the disk: free some, then run the same command again"
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error).splitlines()[0]).lower()


def _kept(path: Path) -> str:
    kept = path.exists() or path.with_name(path.name + ".previous").exists()
    return "the last good state is kept" if kept else "nothing was kept"
