"""Every data set: where it comes from, under which terms, how it is recognized, and where it lies."""

from dataclasses import dataclass, field
from pathlib import Path

from nlstm_lab import paths
from nlstm_lab.datasets.content import PACKINGS
from nlstm_lab.errors import MissingData, UsageError


@dataclass(frozen=True)
class File:
    """One file of a data set, named as its content is; on disk it may be packed (.gz, .xz, .zip)."""

    path: str  # relative to a data folder
    sha256: str | None = None  # of the content; None where no published or own checksum exists
    size: int | None = None  # bytes of the content

    def find(self) -> Path | None:
        """The first place among the data folders where the file lies, in any packing."""
        for folder in paths.data_folders():
            for packing in PACKINGS:
                if (candidate := folder / f"{self.path}{packing}").is_file():
                    return candidate
        return None


@dataclass(frozen=True)
class Dataset:
    """What is known about one data set."""

    name: str
    title: str
    files: tuple[File, ...]
    counts: dict[str, int] = field(default_factory=dict)

    def locate(self) -> tuple[Path, ...]:
        """The files in their order; MissingData names the one that lacks and says how to get it."""
        found = [file.find() for file in self.files]
        for file, path in zip(self.files, found, strict=True):
            if path is None:
                raise MissingData(
                    f"{self.title} is not here ({file.path} is missing): get it with `nlstm-lab data fetch {self.name}`, "
                    f"take a copy of yours with `nlstm-lab data import {self.name} PATH`, or let NLSTM_LAB_DATA "
                    f"point at the folder that has it"
                )
        return tuple(path for path in found if path is not None)


_ALL = (
    Dataset(
        "ptb",
        "the Penn Treebank (Mikolov's version)",
        (
            File("ptb/ptb.char.train.txt", "e313d91425e06c4f0a8fb6e881dcce0c291f2a0e9f4dda54833069b122f91da9"),
            File("ptb/ptb.char.valid.txt", "21661f63ec355085879458b6524644d4add5573541b4be14fb52ab2e2e995eb8"),
            File("ptb/ptb.char.test.txt", "1ef5607ac3c463b16e38bfe7900dd3bfc91de5a96e0f21e7eab5188b465b8ebe"),
        ),
        {"train": 5_017_482, "valid": 393_042, "test": 442_423, "symbols": 50},
    ),
)
DATASETS = {dataset.name: dataset for dataset in _ALL}


def get(name: str) -> Dataset:
    """The record of a data set; a UsageError lists the names."""
    try:
        return DATASETS[name]
    except KeyError:
        raise UsageError(f"there is no data set {name!r}; there are {', '.join(DATASETS)}") from None
