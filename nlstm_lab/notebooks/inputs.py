"""What an executed notebook was made from (a new record asks for all) and what it left."""

import ast
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from nlstm_lab import paths
from nlstm_lab.notebooks.jobs import Job

CLAIMS = "claims.csv"  # of the probe records the one that notebooks write, for those that read all claims
LIBRARIES = ("matplotlib", "numpy", "pandas", "papermill", "scipy", "seaborn", "torch", "xarray")
ONLY_RUN = ("cli", "cluster.py", "notebooks", "sweep.py", "__main__.py")  # parts of the package that draw nothing
KEY = "nlstm_lab"  # of our entry in an executed copy's metadata


@dataclass(frozen=True)
class Inputs:
    """Digests of what all notebooks share, as it is now."""

    shared: str
    claims: str

    @classmethod
    def now(cls) -> "Inputs":
        stamp = hashlib.sha256(" ".join(f"{name} {version(name)}" for name in LIBRARIES).encode())
        mine = (path for path in _files(paths.PACKAGE) if path.relative_to(paths.PACKAGE).parts[0] not in ONLY_RUN)
        _add(stamp, paths.PACKAGE, mine)
        for folder in (paths.targets(), paths.runs(), paths.probes(), paths.bench()):
            _add(stamp, folder, (path for path in _files(folder) if path.name != CLAIMS))
        return cls(stamp.hexdigest(), _digest(paths.probes() / CLAIMS))

    def of(self, job: Job) -> str:
        """The digest of everything that the executed copy of `job` follows from."""
        sha = [_digest(job.source), json.dumps([dict(job.parameters), job.replace], sort_keys=True), self.shared]
        return hashlib.sha256("\n".join([*sha, self.claims if reads_claims(job) else ""]).encode()).hexdigest()


def reads_claims(job: Job) -> bool:
    """Whether a notebook reads what the others note, and so comes after them."""
    return any("probes.measured_claims(" in cell.source for cell in job.read().cells if cell.cell_type == "code")


def stamp(executed: NotebookNode, job: Job, inputs: str, seconds: float) -> None:
    """Write into the executed copy's metadata what it was made from, what it left and how long it took."""
    executed.metadata[KEY] = {"inputs": inputs, "left": left(job), "seconds": round(seconds, 1)}


def stamped(job: Job) -> dict[str, Any]:
    """What `stamp` wrote into the executed copy, or nothing where there is no whole one."""
    try:
        stamp = json.loads(job.output.read_text(encoding="utf-8"))["metadata"][KEY]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def unchanged(job: Job, inputs: str) -> bool:
    """Whether the executed copy was made from these inputs, and all that it left is still as it left it."""
    stamp = stamped(job)
    return stamp.get("inputs") == inputs and stamp.get("left") == left(job)


def left(job: Job) -> dict[str, str]:
    """The digests of all figures and tables that a notebook names literally; of trials where it has parameters."""
    plain = TransformerManager().transform_cell  # type: ignore[no-untyped-call]  # what IPython makes of %magics and !commands
    cells = [ast.parse(plain(cell.source)) for cell in job.read().cells if cell.cell_type == "code"]
    literals = {node.value for cell in cells for node in ast.walk(cell) if isinstance(node, ast.Constant)}
    stems = {name.replace(".", "_") for name in literals if isinstance(name, str)}
    folders = {"": paths.figures()} | ({"trial ": paths.trials()} if job.parameters else {})
    return {
        f"{kind}{path.name}": _digest(path)
        for kind, folder in folders.items()
        for path in sorted(folder.glob("*"))
        if path.is_file() and path.stem in stems
    }


def _files(folder: Path) -> list[Path]:
    """Every file below, without caches and without hidden ones: those are unfinished."""
    aside = (".", "__pycache__")
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in files if not any(p.startswith(aside) for p in path.relative_to(folder).parts))


def _add(sha: Any, folder: Path, files: Iterable[Path]) -> None:
    for path in files:
        sha.update(f"{path.relative_to(folder)} {_digest(path)}\n".encode())


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
