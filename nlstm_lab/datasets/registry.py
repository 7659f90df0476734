"""What is known about each data set (`records.toml`), where it lies here, and whether it is what it claims to be."""

import hashlib
import io
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Literal

from nlstm_lab import paths
from nlstm_lab.datasets import content
from nlstm_lab.datasets.cache import Parsed, cached
from nlstm_lab.errors import DamagedFile, LabError, MissingData, UsageError, hint


@dataclass(frozen=True)
class File:
    """One file, named as its content is; on disk it may be packed (.gz, .xz, .zip)."""

    path: str  # inside a data folder
    size: int | None = None  # bytes of the content
    sha256: str | None = None
    md5: str | None = None  # only where no sha256 is known
    urls: tuple[str, ...] = ()
    members: int | None = None  # of a tar archive without a published checksum: how many files it holds

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Dataset:
    """One data set. `how` says in a sentence how it is had, `note` what must be known about it."""

    name: str
    title: str
    origin: str
    licence: str
    citation: str
    how: str
    files: tuple[File, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    note: str = ""


def _read() -> tuple[Dataset, ...]:
    text = resources.files(__package__).joinpath("records.toml").read_text(encoding="utf-8")
    datasets = []
    for known in tomllib.loads(text)["datasets"]:
        files = tuple(File(**{**one, "urls": tuple(one.get("urls", ()))}) for one in known.pop("files"))
        datasets.append(Dataset(files=files, **known))
    return tuple(datasets)


DATASETS = {dataset.name: dataset for dataset in _read()}


@dataclass(frozen=True)
class Status:
    """One row of `nlstm-lab data`. `detail` is one sentence."""

    name: str
    state: Literal["present", "absent", "damaged"]
    detail: str


def get(name: str) -> Dataset:
    """Return the record of a data set.

    Raises:
        UsageError: There is none of that name; the message says which may be meant, or lists the names.
    """
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
    """Find the files of a data set, in their order.

    Raises:
        MissingData: One lacks; the message names the first that does, and the ways out.
    """
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
    """Read the content of each file of a data set, verified.

    Raises:
        DamagedFile: One is not what was published.
    """
    everything = []
    for file, path in zip(get(name).files, locate(name), strict=True):
        data = content.read(path)
        verify(file, path, content.digests(io.BytesIO(data)))
        everything.append(data)
    return everything


def verify(file: File, path: Path | str, measured: Mapping[str, str | int]) -> None:
    """Compare what was measured of a content with the record.

    Raises:
        DamagedFile: They differ; the message says in what.
    """
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
