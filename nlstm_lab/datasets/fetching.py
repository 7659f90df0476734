"""Downloading data sets: several mirrors, one more try each, every content verified before it is in place."""

import tempfile
from pathlib import Path
from urllib.parse import urldefrag, urlparse

from nlstm_lab import paths
from nlstm_lab.datasets import content, registry, storing
from nlstm_lab.datasets.registry import Dataset, File
from nlstm_lab.errors import DamagedFile, LabError, UsageError

TRIES = 2  # per mirror; a cut connection starts over
TIMEOUT = 30  # seconds without an answer


def fetch(name: str, progress: bool = True) -> list[Path]:
    """Download what a data set lacks on this machine; returns the files that were put in place.

    A UsageError says how a set is had that may not be downloaded, a LabError what every mirror answered, or that the
    disk is full. What was there before stays until a verified file replaces it.
    """
    dataset, folder = registry.get(name), paths.data()
    if not all(file.urls for file in dataset.files):
        raise UsageError(
            f"{dataset.title} cannot be fetched: it is {dataset.how}, with `nlstm-lab data import {name} PATH`"
        )
    with storing.saying_why(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as aside:
            wanted = [file for file in dataset.files if not _sound(file)]
            return [_fetch(dataset, file, Path(aside), progress) for file in wanted]


def _sound(file: File) -> bool:
    if (path := registry.find(file)) is None:
        return False
    try:
        registry.verify(file, path, registry.measure(file, path))
    except DamagedFile:
        return False
    return True


def _fetch(dataset: Dataset, file: File, folder: Path, progress: bool) -> Path:
    """The file from the first mirror that has it as it was published; an archive is downloaded once."""
    import requests

    failures = []
    for url in file.urls:
        address, member = urldefrag(url)
        download = folder / Path(urlparse(address).path).name
        for _ in range(TRIES):
            try:
                _download(address, download, progress)
                return _place(file, download, member)
            except requests.HTTPError as error:
                failures.append(str(error))  # status, reason and address
                break
            except requests.RequestException as error:
                failures.append(f"{address}: {type(error).__name__}")
            except DamagedFile as error:
                download.unlink()
                failures.append(f"{address}: {error}")
                break
    raise LabError(
        f"no mirror had {file.name} of {dataset.title} ({'; '.join(dict.fromkeys(failures))}); behind a firewall "
        f"download it elsewhere and take it over with `nlstm-lab data import {dataset.name} PATH`"
    )


def _download(address: str, download: Path, progress: bool) -> None:
    """Into `download`, unless it is there."""
    import pooch

    pooch.get_logger().setLevel("WARNING")  # it would announce each file
    downloader = pooch.HTTPDownloader(progressbar=progress, timeout=TIMEOUT, chunk_size=1 << 16)
    pooch.retrieve(address, known_hash=None, fname=download.name, path=download.parent, downloader=downloader)


def _place(file: File, download: Path, member: str) -> Path:
    if not member:
        packing = download.suffix if download.suffix in content.PACKINGS else ""
        return storing.place(file, storing.Source(download.open("rb"), packing, "what came"))
    if (source := storing.in_archive(file, download)) is None:
        raise DamagedFile(f"{download.name} holds no {file.name}")
    return storing.place(file, source)
