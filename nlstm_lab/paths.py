"""Where things lie. No other module knows a directory.

In a checkout everything lies there; an installed package (a wheel) reads and writes in the working folder instead.
`NLSTM_LAB_ROOT` names another folder for all of it, `NLSTM_LAB_DATA` one more place to look for data sets.
"""

import contextlib
import errno
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from nlstm_lab.errors import LabError, UsageError

PACKAGE = Path(__file__).resolve().parent
OWN = {"RUNS": "data/runs", "PROBES": "data/probes", "FIGURES": "figures"}  # in `root`, where no variable names another


def root() -> Path:
    """`$NLSTM_LAB_ROOT`, or the checkout that this package was imported from, or else the working folder."""
    checkout = PACKAGE.parent
    return _given("ROOT") or (checkout if (checkout / "pyproject.toml").is_file() else Path.cwd())


def data() -> Path:
    """Data sets that were fetched or imported (ignored by git), beside the committed records."""
    return root() / "data"


def data_folders() -> list[Path]:
    """Every folder in which data sets are looked for, first match wins."""
    elsewhere = _given("DATA")
    return [*([elsewhere] if elsewhere else []), data()]


def cache() -> Path:
    """Parsed data sets: `$NLSTM_LAB_CACHE`, or `nlstm_lab` in the user's cache folder."""
    return _given("CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nlstm_lab"


def runs() -> Path:
    """Committed records of training: `data/runs/<experiment>/<scale>-seed<k>/`; `$NLSTM_LAB_RUNS` overrides it."""
    return _given("RUNS") or root() / OWN["RUNS"]


def probes() -> Path:
    """Committed records of expensive probes; `$NLSTM_LAB_PROBES` overrides it."""
    return _given("PROBES") or root() / OWN["PROBES"]


def figures() -> Path:
    """Where figures are written; `$NLSTM_LAB_FIGURES` overrides it."""
    return _given("FIGURES") or root() / OWN["FIGURES"]


def targets() -> Path:
    """What the papers print, as TOML."""
    return data() / "targets"


def notebooks() -> Path:
    """The stripped sources of the notebooks."""
    return root() / "notebooks"


def executed() -> Path:
    """Executed copies of the notebooks, kept for reading (ignored by git)."""
    return root() / "executed"


def bench() -> Path:
    """Committed records of `benchmarks/`, one for each machine."""
    return data() / "bench"


def workspaces() -> Path:
    """Where trials keep what they make (ignored by git)."""
    return root() / "workspaces"


def trials() -> Path:
    """Figures and tables that were made with other parameters than the committed ones."""
    return workspaces() / "figures"


def workspace(name: str = "own") -> Path:
    """From now on this process keeps its runs, probe records and figures in `workspaces/<name>/`, which git ignores.

    For trials: no committed record is read or changed. Returns the folder. UsageError: a name that is no plain word.
    """
    if not re.fullmatch(r"\w+", name):
        raise UsageError(f"a workspace is called by a word of letters, digits and underscores, not {name!r}")
    for kind in OWN:
        os.environ[f"NLSTM_LAB_{kind}"] = str(workspaces() / name / kind.lower())
    return workspaces() / name


def redirected() -> list[str]:
    """Which of $NLSTM_LAB_RUNS, _PROBES and _FIGURES name a folder that is not the one of `root`."""
    given = {kind: _given(kind) for kind in OWN}
    return [f"NLSTM_LAB_{kind}" for kind, at in given.items() if at and at.resolve() != (root() / OWN[kind]).resolve()]


@contextmanager
def atomic(target: Path) -> Iterator[Path]:
    """A temporary path beside `target` that takes its name when the block ends well, and is removed when it does not.

    The content is on the disk before it takes the name, and the name when this returns: a power cut takes neither.
    """
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


@contextmanager
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
    """Write a text to `target`, whole or not at all; False where that text is there already, and nothing is touched.

    LabError: the system refuses; the sentence says why, and what to do.
    """
    content = text.encode() if isinstance(text, str) else text
    try:
        if target.is_file() and target.read_bytes() == content:
            return False
        with atomic(target) as partial:
            partial.write_bytes(content)
    except OSError as error:
        raise LabError(f"cannot write {target} ({reason(error)})") from error
    return True


def writable(folder: Path) -> None:
    """Make a folder and try whether files can be written there; LabError: the system refuses."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise LabError(f"cannot write to {folder} ({reason(error)})") from error


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


def _given(name: str) -> Path | None:
    """The folder that an environment variable of this project names, where there is one."""
    given = os.environ.get(f"NLSTM_LAB_{name}")
    return Path(given).expanduser() if given else None
