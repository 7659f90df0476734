"""A place of its own for whatever trains: a tiny Penn Treebank, a cache, a folder of runs."""

import os
import random
from pathlib import Path

import pytest

from nlstm_lab.datasets import registry
from nlstm_lab.datasets.corpora import TextSource, open_corpus

LINES = {"train": 500, "valid": 30, "test": 20}


@pytest.fixture(scope="session")
def tiny_ptb(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables that name a data folder and a cache with sentences of invented words for ptb.

    The cache is filled here, with the check against the published checksums taken out, so that every other process
    finds it filled and its own check stays as it is.
    """
    home = tmp_path_factory.mktemp("tiny_ptb")
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefgh", k=draw.randint(1, 6))) for _ in range(40)]
    environment = {"NLSTM_LAB_DATA": str(home / "data"), "NLSTM_LAB_CACHE": str(home / "cache")}
    for file in registry.get("ptb").files:
        path = home / "data" / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = LINES[next(split for split in LINES if split in file.path)]
        path.write_text("".join(f" {' '.join(draw.choices(words, k=6))} \n" for _ in range(lines)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "verify", lambda *_: None)
        for name, value in environment.items():
            patch.setenv(name, value)
        open_corpus(TextSource("ptb"))
    return environment


@pytest.fixture
def runs_folder(tiny_ptb: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of runs, used by this process and those that it starts, beside the tiny ptb."""
    folder = tmp_path / "runs"
    for name, value in {**tiny_ptb, "NLSTM_LAB_RUNS": str(folder), "OMP_NUM_THREADS": "1"}.items():
        monkeypatch.setenv(name, value)
    assert os.environ["NLSTM_LAB_RUNS"] == str(folder)
    return folder
