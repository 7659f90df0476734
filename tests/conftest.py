"""A place of its own for whatever trains."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables for training at smoke scale, whose texts are in every Python: a cache, one thread."""
    return {"NLSTM_LAB_CACHE": str(tmp_path_factory.mktemp("cache")), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def runs_folder(folders: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of runs, for this process and those that it starts."""
    folder = tmp_path / "runs"
    for name, value in {**folders, "NLSTM_LAB_RUNS": str(folder)}.items():
        monkeypatch.setenv(name, value)
    return folder
