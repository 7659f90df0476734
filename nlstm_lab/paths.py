"""Where things lie. No other module knows a directory.

In a checkout everything lies there; an installed package (a wheel) reads and writes in the working folder instead.
`NLSTM_LAB_ROOT` names another folder for all of it, `NLSTM_LAB_DATA` one more place to look for data sets, and
`NLSTM_LAB_RUNS`, `_PROBES` and `_FIGURES` another one for these.
"""

import contextlib
import csv
import errno
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from nlstm_lab.errors import LabError, UsageError

PACKAGE = Path(__file__).resolve().parent


def root() -> Path:
    """`$NLSTM_LAB_ROOT`, or the checkout that this package was imported from, or else the working folder."""
    checkout = PACKAGE.parent
    return _given("ROOT") or (checkout if (checkout / "pyproject.toml").is_file() else Path.cwd())


def _given(name: str) -> Path | None:
    given = os.environ.get(f"NLSTM_LAB_{name}")
    return Path(given).expanduser() if given else None


def _folder(place: str, name: str = "") -> Callable[[], Path]:
    return lambda: (_given(name) if name else None) or root() / place


runs = _folder("data/runs", "RUNS")  # committed records of training: <experiment>/<scale>-seed<k>/
probes = _folder("data/probes", "PROBES")  # committed records of expensive probes
figures = _folder("figures", "FIGURES")
data = _folder("data")  # data sets that were fetched or imported (ignored by git), beside the committed records
targets = _folder("data/targets")  # what the papers print, as TOML
bench = _folder("data/bench")  # committed records of `benchmarks/`, one for each machine
notebooks = _folder("notebooks")  # their stripped sources
executed = _folder("executed")  # executed copies of the notebooks, kept for reading (ignored by git)
workspaces = _folder("workspaces")  # where trials keep what they make (ignored by git)
trials = _folder("workspaces/figures")  # figures and tables with other parameters than the committed ones


def data_folders() -> list[Path]:
    """Every folder in which data sets are looked for, first match wins."""
    return [folder for folder in (_given("DATA"), data()) if folder]


def cache() -> Path:
    """Parsed data sets: `$NLSTM_LAB_CACHE`, or `nlstm_lab` in the user's cache folder."""
    return _given("CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nlstm_lab"


def workspace(name: str = "own") -> Path:
    """From now on keep runs, probe records and figures in `workspaces/<name>/`, which git ignores: return this folder.

    For trials: no committed record is read or changed. UsageError: a name that is no plain word.
    """
    if not isinstance(name, str) or not re.fullmatch(r"\w+", name):
        raise UsageError(f"a workspace is called by a word of letters, digits and underscores, not {name!r}")
    for kind in ("runs", "probes", "figures"):
        os.environ[f"NLSTM_LAB_{kind.upper()}"] = str(workspaces() / name / kind)
    return workspaces() / name


@contextlib.contextmanager
def atomic(target: Path) -> Iterator[Path]:
    """A temporary path beside `target` that takes its name, and is on the disk, when the block has ended well."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o644)
        flush(partial)
        partial.replace(target)
        flush(target.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(target: Path, waiting: str) -> Iterator[None]:
    """Hold the lock of `target`, which ends with this process; a second one says that it is `waiting`, and waits."""
    writable(target.parent)
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    try:
        held = lock.acquire(blocking=False)
    except Timeout:
        print(f"{waiting}: waiting", file=sys.stderr)
        held = lock.acquire()
    with held:
        yield


def write(target: Path, text: str | bytes) -> bool:
    """Write a text to `target`, whole or not at all (LabError); False where it is there already: nothing is touched."""
    content = text.encode() if isinstance(text, str) else text
    with writing(target):
        if target.is_file() and target.read_bytes() == content:
            return False
        with atomic(target) as partial:
            partial.write_bytes(content)
    return True


def as_csv(frame: Any, **options: Any) -> str:
    """A frame of pandas as CSV. A carriage return in a text, which would end its line, puts all texts into quotes."""
    text: str = frame.to_csv(index=False, lineterminator="\n", **options)
    if "\r" in text:
        text = frame.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC, **options)
    return text


def writable(folder: Path) -> None:
    """Make a folder and try whether files can be written there; LabError: the system refuses."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()


@contextlib.contextmanager
def writing(target: Path, after: str = "") -> Iterator[None]:
    """Turn a failed write to `target` into one sentence: why it failed, and what comes `after` that."""
    try:
        yield
    except OSError as error:
        raise LabError(f"cannot write {target} ({reason(error)}){after}") from error


WAYS_OUT = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), ": free some space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), ": make its folder writable"),
    **dict.fromkeys((errno.ENOTDIR, errno.EEXIST), ": a file stands where a folder belongs, move it away"),
}


def reason(error: OSError) -> str:
    """The operating system's words for why a file was not written, with the way out where there is one."""
    return (error.strerror or str(error)).lower() + WAYS_OUT.get(error.errno or 0, "")


def flush(path: Path) -> None:
    """Bring a file's content, or the names in a folder, from the system's memory to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        # some file systems do this for files alone
        with contextlib.suppress(OSError) if path.is_dir() else contextlib.nullcontext():
            os.fsync(handle)
    finally:
        os.close(handle)
