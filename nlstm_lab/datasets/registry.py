"""What is known about each data set (`records.toml`), where it lies here, what it holds, and how it comes here.

What is downloaded or imported is verified first, and takes its place at once or not at all.
"""

import os
import re
import stat
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from hashlib import md5, sha256
from importlib import resources
from pathlib import Path, PurePosixPath
from urllib.parse import urldefrag, urlparse

from nlstm_lab import paths
from nlstm_lab.datasets.files import PACKINGS, members, read, reading
from nlstm_lab.errors import DamagedFile, LabError, MissingData, UsageError, hint

TIMEOUT = 30  # seconds without an answer of a mirror
UNCHANGED = "; nothing there was changed; NLSTM_LAB_ROOT can name another folder"
LARGEST, MARGIN = 1 << 30, 1 << 20  # bytes of a file whose size is not known, and which a packing may add


@dataclass(frozen=True)
class File:
    """One file, named as its content is; on disk it may be packed."""

    path: str  # inside a data folder
    size: int | None = None  # bytes of the content
    sha256: str | None = None
    md5: str | None = None  # only where no sha256 is known
    urls: Sequence[str] = ()

    @property
    def name(self) -> str:
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
    files: Sequence[File]
    counts: Mapping[str, int] = field(default_factory=dict)
    note: str = ""


DATASETS = {
    one["name"]: Dataset(**{**one, "files": [File(**file) for file in one["files"]]})
    for one in tomllib.loads(resources.files(__package__).joinpath("records.toml").read_text("utf-8"))["datasets"]
}


def get(name: str) -> Dataset:
    """The record of a data set. UsageError: there is none of that name."""
    if name not in DATASETS:
        raise UsageError(f"there is no data set {name!r}; {hint(name, DATASETS)}")
    return DATASETS[name]


def find(file: File) -> Path | None:
    """The first place among the data folders where the file lies, in any packing. LabError: one cannot be read."""
    for candidate in (folder / f"{file.path}{packing}" for folder in paths.data_folders() for packing in PACKINGS):
        with reading(str(candidate)), suppress(FileNotFoundError, NotADirectoryError):
            if stat.S_ISREG(candidate.stat().st_mode):
                return candidate
    return None


def locate(name: str) -> tuple[Path, ...]:
    """Where the files of a data set lie, in their order. MissingData: one lacks; the message names the ways out."""
    found = []
    for file in get(name).files:
        if (path := find(file)) is None:
            fetch = f"get it with `nlstm-lab data fetch {name}`, " if file.urls else ""
            raise MissingData(
                f"{get(name).title} is not on this machine ({file.path} is missing): {fetch}take a copy of yours "
                f"with `nlstm-lab data import {name} PATH`, or let NLSTM_LAB_DATA name the folder that has it"
            )
        found.append(path)
    return tuple(found)


def contents(name: str) -> list[bytes]:
    """The content of each file of a data set. MissingData: one lacks. DamagedFile: one is not what was published."""
    placed = zip(get(name).files, locate(name), strict=True)
    return [_verified(file, read(path), str(path)) for file, path in placed]


def _verified(file: File, content: bytes, origin: str) -> bytes:
    """The content, which a message calls `origin`. DamagedFile: it is not as in the record."""
    digests = {"sha256": sha256(content).hexdigest(), "md5": md5(content, usedforsecurity=False).hexdigest()}
    for what, measured in {"size": len(content), **digests}.items():
        if (expected := getattr(file, what)) not in (None, measured):
            said = f"{what} {measured}, expected {expected}"
            raise DamagedFile(f"{origin} is not {file.name} as published ({said}): remove it and get it again")
    return content


def status(name: str, whole: bool = False) -> tuple[str, str]:
    """Whether a data set is present, absent or damaged, and a sentence; whole: every byte is read and compared."""
    files = get(name).files
    try:
        here = str(locate(name)[0].parent)
        if whole:
            contents(name)
            summed = all(file.sha256 or file.md5 for file in files)
            here += ": checksums agree" if summed else ": no checksum is published"
    except LabError as error:
        return "absent" if isinstance(error, MissingData) else "damaged", str(error)
    return "present", here


def import_(name: str, path: Path) -> list[Path]:
    """Take over a data set's files from a file, an archive (tar, zip) or a folder, all of those found there or none.

    They are known by names or checksums, and stored unpacked. UsageError: there is none. DamagedFile: one is another.
    """
    return _take(path.expanduser(), get(name).files)


def _take(path: Path, files: Sequence[File]) -> list[Path]:
    if not os.access(path, os.R_OK):
        raise UsageError(f"there is nothing at {path}, or it cannot be read")
    if not (path.is_file() or path.is_dir()):
        raise UsageError(f"{path} is no regular file")
    placed: dict[str, Path] = {}
    with paths.writing(paths.data(), UNCHANGED), ExitStack() as verified:  # all of them take their places when it ends
        for name, origin, content in _candidates(path, files):
            left, digest = [file for file in files if file.path not in placed], sha256(content).hexdigest()
            alike = [file for file in left if _named(name, file) or file.sha256 == digest]
            whatever = left if len(files) == 1 and origin == str(path) else []  # a single one has any name
            for file in (alike or whatever)[:1]:
                placed[file.path] = paths.data() / file.path
                partial = verified.enter_context(paths.atomic(placed[file.path]))
                partial.write_bytes(_verified(file, content, origin))
    if not placed:
        wanted = ", ".join(file.name for file in files)
        raise UsageError(f"{path} holds none of the files {wanted} (plain, .gz, .xz, .bz2 or .zip)")
    return [placed[file.path] for file in files if file.path in placed]


def _candidates(path: Path, files: Sequence[File]) -> Iterator[tuple[str, str, bytes]]:
    """What may be one of the files, by its name or size: its name, what a message calls it, and its content."""
    sizes = [file.size for file in files if file.sha256]
    largest = max(MARGIN + 2 * (file.size or LARGEST) for file in files)  # of what is read into memory

    def wanted(name: str, size: int) -> bool:
        found = size in sizes or any(_named(PurePosixPath(name).name, file) for file in files)
        if found and size > largest:
            raise DamagedFile(f"{name} in {path} is far larger ({size:,} bytes) than any file that was published")
        return found

    named = any(_named(path.name, file) for file in files)
    if path.is_dir() or (not named and (tarfile.is_tarfile(path) or zipfile.is_zipfile(path))):
        for name, data in members(path, wanted):
            origin = f"{name} in {path}"
            yield PurePosixPath(name).name, origin, read(data, origin)
    elif len(files) == 1 or wanted(path.name, path.stat().st_size):
        yield path.name, str(path), read(path)


def _named(name: str, file: File) -> bool:
    """Whether it is the file's name, however it is packed, and whether dots, hyphens or nothing join its parts."""
    bare = [re.sub(r"[^a-z0-9]", "", name.lower().removesuffix(packing)) for packing in PACKINGS]
    return re.sub(r"[^a-z0-9]", "", file.name.lower()) in bare


def fetch(name: str) -> list[Path]:
    """Download what a data set lacks on this machine; what was there stays until a verified file replaces it.

    UsageError: it may not be downloaded. DamagedFile: it is, in another folder. LabError: no mirror has it, or no room.
    """
    dataset, folder, fetched = get(name), paths.data(), []
    if not all(file.urls for file in dataset.files):
        raise UsageError(f"{dataset.title} cannot be fetched: {dataset.how} (`nlstm-lab data import {name} PATH`)")
    with paths.writing(folder, UNCHANGED):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as aside:
            for file in dataset.files:
                try:
                    if path := find(file):
                        _verified(file, read(path), str(path))
                        continue
                except DamagedFile:
                    if path and not path.is_relative_to(folder):  # it would be found first again
                        raise
                fetched += _fetch(dataset, file, Path(aside))
    return fetched


def _fetch(dataset: Dataset, file: File, folder: Path) -> list[Path]:
    """The file from the first mirror that has it as it was published; an archive is downloaded once."""
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")  # it would announce each file
    downloader = pooch.HTTPDownloader(progressbar=True, timeout=TIMEOUT, chunk_size=1 << 16)
    failures = {}
    for url in (*file.urls, *file.urls):  # each once more when all have failed: a connection may have been cut
        address, _ = urldefrag(url)
        download = folder / Path(urlparse(address).path).name
        try:
            pooch.retrieve(address, known_hash=None, fname=download.name, path=folder, downloader=downloader)
            return _take(download, [file])
        except (requests.RequestException, DamagedFile, UsageError) as error:
            download.unlink(missing_ok=True)
            said = not isinstance(error, requests.RequestException) or isinstance(error, requests.HTTPError)
            failures[address] = str(error).replace(str(download), "what came") if said else type(error).__name__
    raise LabError(
        f"no mirror had {file.name} of {dataset.title} ({'; '.join(f'{one}: {why}' for one, why in failures.items())});"
        f" behind a firewall download it elsewhere and take it over with `nlstm-lab data import {dataset.name} PATH`"
    )
