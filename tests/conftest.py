"""A place of its own for whatever trains, and for notebooks that a test writes."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nlstm_lab import paths

if TYPE_CHECKING:
    from nlstm_lab.notebooks import Job

PARAMETERS = (
    'seeds: list[int] = [0, 1]\nscale: str = "small"\nrate: float = 0.5\nquick: bool = False\nlimit: int | None = None'
)


@pytest.fixture(scope="session")
def own_units() -> set[str]:
    """The project's names in `UNITS`; those that other tests registered stay out."""
    from nlstm_lab.models import UNITS

    return {name for name, unit in UNITS.items() if unit.__module__.startswith("nlstm_lab.")}


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables for training at smoke scale, whose texts are in every Python: a cache, one thread."""
    return {"NLSTM_LAB_CACHE": str(tmp_path_factory.mktemp("cache")), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def runs_folder(folders: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of runs, for this process and those that it starts; here `auto` trains on the CPU, update by
    update."""
    folder = tmp_path / "runs"
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for name, value in {**folders, "NLSTM_LAB_RUNS": str(folder)}.items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Callable[..., Job]":
    """Write notebooks into a root of their own, for every process: write("10_name", "cell", "cell", ...)."""
    import nbformat  # here, so that tests of units and training run on machines without notebooks
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    from nlstm_lab import notebooks

    shutil.copytree(paths.targets(), tmp_path / "data" / "targets")
    monkeypatch.setenv("NLSTM_LAB_ROOT", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name in ("RUNS", "FIGURES", "PROBES"):
        monkeypatch.delenv(f"NLSTM_LAB_{name}", raising=False)
    paths.notebooks().mkdir()

    def written(name: str, *cells: str, parameters: str = PARAMETERS) -> "Job":
        code = [new_code_cell(parameters, metadata={"tags": ["parameters"]}), *map(new_code_cell, cells)]
        notebook = new_notebook(cells=[new_markdown_cell("# A title"), *code])
        notebook.metadata.kernelspec = {
            "name": "of-another-machine",
            "language": "python",
            "display_name": "gone",
        }
        nbformat.write(notebook, paths.notebooks() / f"{name}.ipynb")
        return notebooks.Job(name)

    return written
