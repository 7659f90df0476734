"""Parsed data sets as memory-mapped arrays beside a manifest, in folders that appear whole, by a rename."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nlstm_lab import paths
from nlstm_lab.errors import LabError

FORMAT = 1  # raised when what an entry holds changes


@dataclass(frozen=True)
class Parsed:
    """Named arrays (memory-mapped when they come from the cache) and facts about them that JSON can hold."""

    arrays: Mapping[str, np.ndarray]
    facts: Mapping[str, Any]


def cached(entry_name: str, sources: Sequence[Path], build: Callable[[], Parsed], /, **settings: object) -> Parsed:
    """What `build` returns, from the cache where sources (path, size, every time of change) and settings agree."""
    entry = paths.cache() / f"{entry_name}-{_digest(sources, settings)}"
    if (cached := _load(entry)) is not None:
        return cached
    parsed = build()
    try:
        _store(entry, parsed)
    except OSError as error:
        raise LabError(
            f"the cache {entry.parent} cannot be written ({error.strerror}); name another folder in NLSTM_LAB_CACHE"
        ) from error
    return _load(entry) or parsed


def _digest(sources: Sequence[Path], settings: Mapping[str, object]) -> str:
    known = ("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")  # a ctime, unlike an mtime, cannot be set back
    stats = [[str(path.resolve()), *(getattr(path.stat(), name) for name in known)] for path in sources]
    text = json.dumps([FORMAT, stats, settings], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _load(entry: Path) -> Parsed | None:
    """The entry, or None where there is none or a damaged one."""
    try:
        manifest = json.loads((entry / "manifest.json").read_text(encoding="utf-8"))
        arrays = {
            name: np.load(entry / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in manifest["arrays"]
        }
        return Parsed(arrays, manifest["facts"])
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None


def _store(entry: Path, parsed: Parsed) -> None:
    entry.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{entry.name}.", dir=entry.parent))
    try:
        for name, array in parsed.arrays.items():
            np.save(aside / f"{name}.npy", array, allow_pickle=False)
        known = {"arrays": list(parsed.arrays), "facts": dict(parsed.facts)}
        manifest = json.dumps(known, ensure_ascii=False, indent=1)
        (aside / "manifest.json").write_text(manifest, encoding="utf-8")
        aside.chmod(0o755)
        if entry.exists() and _load(entry) is None:
            shutil.rmtree(entry, ignore_errors=True)
        try:
            aside.rename(entry)
        except OSError:  # another process was faster, and its entry is the same
            if _load(entry) is None:
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
