"""What is known about each data set (`records.toml` beside this file)."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources


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


ALL = _read()
