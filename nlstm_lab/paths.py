"""Where things lie. No other module knows a directory.

In a checkout everything lies in the checkout. An installed package (a wheel) reads and writes in the working folder
instead, so that its users' runs and figures are theirs. `NLSTM_LAB_DATA` names one more place to look for data sets.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def root() -> Path:
    """The checkout that this package was imported from, or the working folder for an installed one."""
    checkout = PACKAGE.parent
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def data() -> Path:
    """Data sets that were fetched or imported (ignored by git), beside the committed records."""
    return root() / "data"


def data_folders() -> list[Path]:
    """Every folder in which data sets are looked for, first match wins."""
    elsewhere = os.environ.get("NLSTM_LAB_DATA")
    return [*([Path(elsewhere).expanduser()] if elsewhere else []), data()]


def cache() -> Path:
    """Parsed data sets: `$NLSTM_LAB_CACHE`, or `nlstm_lab` in the user's cache folder."""
    if given := os.environ.get("NLSTM_LAB_CACHE"):
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nlstm_lab"


def runs() -> Path:
    """Committed records of training: `data/runs/<experiment>/<scale>-seed<k>/`; `$NLSTM_LAB_RUNS` overrides it."""
    return Path(os.environ.get("NLSTM_LAB_RUNS") or data() / "runs")


def probes() -> Path:
    """Committed records of expensive probes."""
    return data() / "probes"


def targets() -> Path:
    """What the papers print, as TOML."""
    return data() / "targets"


def figures() -> Path:
    """Where figures are written; `$NLSTM_LAB_FIGURES` overrides it."""
    return Path(os.environ.get("NLSTM_LAB_FIGURES") or root() / "figures")


def notebooks() -> Path:
    """The stripped sources of the notebooks."""
    return root() / "notebooks"


def executed() -> Path:
    """Executed copies of the notebooks, kept for reading (ignored by git)."""
    return root() / "executed"


@contextmanager
def atomic(target: Path) -> Iterator[Path]:
    """A temporary path beside `target` that takes its name when the block ends well, and is removed when it does not.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic(folder / "result.json") as partial:
    ...     _ = partial.write_text("{}")
    >>> [path.name for path in folder.iterdir()]
    ['result.json']
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o644)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
