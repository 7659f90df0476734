"""A data folder, a cache and a registry of their own for each test, so that nothing real is touched."""

import dataclasses
import hashlib
import os

import pytest

from nlstm_lab import paths
from nlstm_lab.datasets import registry


def pytest_collection_modifyitems(items):
    if not os.environ.get("NLSTM_LAB_DATA"):
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(pytest.mark.skip(reason="NLSTM_LAB_DATA names no folder with the real data sets"))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty place to work in: data in `data`, the cache in `cache`."""
    monkeypatch.delenv("NLSTM_LAB_DATA", raising=False)
    monkeypatch.setenv("NLSTM_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(paths, "data", lambda: tmp_path / "data")
    return tmp_path


@pytest.fixture
def publish(home, monkeypatch):
    """Give a data set other contents, with checksums that agree; `urls` maps a file's name to its mirrors."""

    def publish_as(name, contents, urls=None, store=True):
        dataset = registry.DATASETS[name]
        files = tuple(
            dataclasses.replace(
                file,
                size=len(content),
                sha256=hashlib.sha256(content).hexdigest(),
                md5=None,
                urls=(urls or {}).get(file.name, file.urls),
            )
            for file, content in zip(dataset.files, contents, strict=True)
        )
        monkeypatch.setitem(registry.DATASETS, name, dataclasses.replace(dataset, files=files))
        if store:
            for file, content in zip(files, contents, strict=True):
                target = home / "data" / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        return {file.name: content for file, content in zip(files, contents, strict=True)}

    return publish_as
