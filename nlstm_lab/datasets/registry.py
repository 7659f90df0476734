"""Where each data set lies on this machine, and whether it is what it claims to be."""

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nlstm_lab import paths
from nlstm_lab.datasets import content, records
from nlstm_lab.datasets.cache import Parsed, cached
from nlstm_lab.datasets.records import Dataset, File
from nlstm_lab.errors import DamagedFile, LabError, MissingData, UsageError, hint

DATASETS = {dataset.name: dataset for dataset in records.ALL}


@dataclass(frozen=True)
class Status:
    """One row of `nlstm-lab data`. `detail` is one sentence."""

    name: str
    state: Literal["present", "absent", "damaged"]
    detail: str


def get(name: str) -> Dataset:
    """The record of a data set; a UsageError lists the names."""
    try:
        return DATASETS[name]
    except KeyError:
        raise UsageError(f"there is no data set {name!r}; {hint(name, DATASETS)}") from None


def find(file: File) -> Path | None:
    """The first place among the data folders where the file lies, in any packing."""
    for folder in paths.data_folders():
        for packing in content.PACKINGS:
            if (candidate := folder / f"{file.path}{packing}").is_file():
                return candidate
    return None


def locate(name: str) -> tuple[Path, ...]:
    """The files of a data set in their order; MissingData names the first that lacks and the ways out."""
    dataset = get(name)
    paths = []
    for file in dataset.files:
        if (path := find(file)) is None:
            fetch = f"get it with `nlstm-lab data fetch {name}`, " if file.urls else ""
            raise MissingData(
                f"{dataset.title} is not on this machine ({file.path} is missing): {fetch}take a copy of yours "
                f"with `nlstm-lab data import {name} PATH`, or let NLSTM_LAB_DATA name the folder that has it"
            )
        paths.append(path)
    return tuple(paths)


def contents(name: str) -> list[bytes]:
    """The content of each file of a data set, verified; DamagedFile where it is not what was published."""
    everything = []
    for file, path in zip(get(name).files, locate(name), strict=True):
        data = content.read(path)
        verify(file, path, content.digests(io.BytesIO(data)))
        everything.append(data)
    return everything


def verify(file: File, path: Path | str, measured: Mapping[str, str | int]) -> None:
    """Compare what was measured of a content with the record; DamagedFile says what differs."""
    for what in ("size", "sha256", "md5", "members"):
        if (expected := getattr(file, what)) is not None and measured[what] != expected:
            raise DamagedFile(
                f"{path} is not {file.name} as it was published ({what} {measured[what]}, expected {expected}); "
                f"remove it and get it again"
            )


def measure(file: File, path: Path, packing: str | None = None) -> dict[str, str | int]:
    """Size and checksums of a content, or its number of members where that is all that is known."""
    if file.members is not None:
        return {"members": sum(1 for _ in content.members(path))}
    with content.opened(path, packing) as stream:
        return content.digests(stream)


def status() -> list[Status]:
    """The state of every data set; contents are hashed once and remembered until a file changes."""
    return [_status(dataset, fresh=False) for dataset in DATASETS.values()]


def check(name: str) -> Status:
    """The state of one data set, with every byte read anew."""
    return _status(get(name), fresh=True)


def _status(dataset: Dataset, fresh: bool) -> Status:
    try:
        located = locate(dataset.name)
    except MissingData as missing:
        return Status(dataset.name, "absent", str(missing))
    try:
        for file, path in zip(dataset.files, located, strict=True):
            verify(file, path, measure(file, path) if fresh else _remembered(file, path))
    except LabError as error:
        return Status(dataset.name, "damaged", str(error))
    known = all(file.sha256 or file.md5 for file in dataset.files)
    how = "checksums agree" if known else "complete by count, no checksum is published"
    return Status(dataset.name, "present", f"{located[0].parent}: {how}")


def _remembered(file: File, path: Path) -> Mapping[str, str | int]:
    return cached("measured", [path], lambda: Parsed({}, measure(file, path))).facts


def combined(files: list[bytes]) -> str:
    """One fingerprint of several contents, in their order."""
    digest = hashlib.sha256()
    for data in files:
        digest.update(data)
    return digest.hexdigest()
