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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from hashlib import md5, sha256
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple
from urllib.parse import urldefrag, urlparse

from nlstm_lab import paths
from nlstm_lab.datasets.files import CHUNK, PACKINGS, Parsed, cached, members, opened, read
from nlstm_lab.errors import DamagedFile, LabError, MissingData, UsageError, hint

TIMEOUT = 30  # seconds without an answer of a mirror
UNCHANGED = "; nothing there was changed; NLSTM_LAB_ROOT can name another folder"
LARGEST = 1 << 30  # bytes of a file whose size is not known


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
        try:
            if stat.S_ISREG(candidate.stat().st_mode):
                return candidate
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise LabError(f"{candidate.parent} cannot be read: {paths.reason(error)}") from error
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
    """The content of each file of a data set. DamagedFile: one is not what was published."""
    everything = [read(path) for path in locate(name)]
    for file, path, content in zip(get(name).files, locate(name), everything, strict=True):
        verify(file, content, str(path))
    return everything


def _measured(source: Path | bytes, origin: str = "") -> Parsed:
    """Size and checksums of a content."""
    size, digests = 0, (sha256(), md5(usedforsecurity=False))
    with opened(source, origin) as stream:
        while piece := stream.read(CHUNK):
            size += len(piece)
            for digest in digests:
                digest.update(piece)
    return Parsed({}, {"size": size, **{digest.name: digest.hexdigest() for digest in digests}})


def verify(file: File, source: Path | bytes, origin: str = "", known: Mapping[str, Any] | None = None) -> None:
    """DamagedFile: a content (which a message calls `origin`), or what is `known` of it, is not as in the record."""
    measured = known or _measured(source, origin).facts
    for what in ("size", "sha256", "md5"):
        if (expected := getattr(file, what)) is not None and measured[what] != expected:
            raise DamagedFile(
                f"{origin or source!s} is not {file.name} as it was published ({what} {measured[what]}, expected "
                f"{expected}); remove it and get it again"
            )


class Status(NamedTuple):
    """One row of `nlstm-lab data`. `detail` is one sentence."""

    name: str
    state: Literal["present", "absent", "damaged"]
    detail: str


def check(name: str, fresh: bool = True) -> Status:
    """The state of one data set; fresh: every byte is read anew, where checksums are otherwise remembered."""
    files = get(name).files
    try:
        located = locate(name)
        for file, path in zip(files, located, strict=True):
            known = None if fresh else cached("measured", [path], partial(_measured, path)).facts
            verify(file, path, known=known)
    except LabError as error:
        return Status(name, "absent" if isinstance(error, MissingData) else "damaged", str(error))
    summed = all(file.sha256 or file.md5 for file in files)
    how = "checksums agree" if summed else "no checksum is published"
    return Status(name, "present", f"{located[0].parent}: {how}")


def status() -> list[Status]:
    """The state of every data set."""
    return [check(name, fresh=False) for name in DATASETS]


def combined(files: Iterable[bytes]) -> str:
    """One fingerprint of several contents, in their order."""
    digest = sha256()
    for data in files:
        digest.update(data)
    return digest.hexdigest()


def import_(name: str, path: Path) -> list[Path]:
    """Take over a data set's files from a file, an archive (tar, zip) or a folder, all of those found there or none.

    They are known by their names, or by their checksums, and stored unpacked. UsageError: nothing is found.
    DamagedFile: one is not what was published.
    """
    dataset, path = get(name), path.expanduser()
    if not (path.is_file() or path.is_dir()):
        raise UsageError(f"{path} is no regular file" if path.exists() else f"there is nothing at {path}")
    if not (placed := _take(path, dataset.files, alone=len(dataset.files) == 1)):
        wanted = ", ".join(file.name for file in dataset.files)
        raise UsageError(f"{path} holds none of the files of {dataset.title}: {wanted} (plain, .gz, .xz, .bz2 or .zip)")
    return placed


def _take(path: Path, files: Sequence[File], alone: bool) -> list[Path]:
    """Store the files that are there; alone: a single file is the one that is wanted, whatever it is called."""
    placed: dict[str, Path] = {}
    with paths.writing(paths.data(), UNCHANGED), ExitStack() as verified:  # all of them take their places when it ends
        for name, origin, data in _candidates(path, files, alone):
            left = [file for file in files if file.path not in placed]
            alike = [file for file in left if file.sha256 == sha256(data).hexdigest()]
            whatever = left[:1] if alone and origin == str(path) else []
            for file in (*_named(name, left), *alike, *whatever)[:1]:
                verify(file, data, origin)
                placed[file.path] = paths.data() / file.path
                verified.enter_context(paths.atomic(placed[file.path])).write_bytes(data)
    found = [file for file in files if file.path in placed]
    for file in found:
        for packing in PACKINGS[1:]:
            (paths.data() / f"{file.path}{packing}").unlink(missing_ok=True)
        if (first := find(file)) is not None and first != placed[file.path]:  # it hides the new one
            verify(file, first)
    return [placed[file.path] for file in found]


def _candidates(path: Path, files: Sequence[File], alone: bool) -> Iterator[tuple[str, str, bytes]]:
    """What may be one of the files, by its name or size: its name, what a message calls it, and its content."""
    sizes = [file.size for file in files if file.sha256]
    largest = 2 * max(file.size or LARGEST for file in files)  # of a member, which is read into memory

    def wanted(name: str, size: int) -> bool:
        found = size in sizes or bool(_named(PurePosixPath(name).name, files))
        if found and size > largest and not path.is_dir():
            raise DamagedFile(f"{name} in {path} is far larger ({size:,} bytes) than any file that was published")
        return found

    def unreadable(error: OSError) -> None:
        raise LabError(f"{error.filename} cannot be read: {paths.reason(error)}") from error

    if path.is_dir():
        inside = (Path(folder, name) for folder, _, names in os.walk(path, onerror=unreadable) for name in names)
        for one in sorted(inside):
            if one.is_file() and wanted(one.name, one.stat().st_size):
                yield one.name, str(one), read(one)
    elif not _named(path.name, files) and (tarfile.is_tarfile(path) or zipfile.is_zipfile(path)):
        for name, data in members(path, wanted):
            origin = f"{name} in {path}"
            yield PurePosixPath(name).name, origin, read(data, origin)
    elif alone or _named(path.name, files) or path.stat().st_size in sizes:
        yield path.name, str(path), read(path)


def _named(name: str, files: Sequence[File]) -> list[File]:
    """The files of this name, whatever they are packed in, and whether its parts are set off by a dot or a hyphen."""

    def plain(name: str) -> str:
        return re.sub(r"[^a-z0-9]", "", name.lower())

    packed = {plain(name.lower().removesuffix(packing)) for packing in PACKINGS}
    return [file for file in files if plain(file.name) in packed]


def fetch(name: str, progress: bool = True) -> list[Path]:
    """Download what a data set lacks on this machine; what was there stays until a verified file replaces it.

    Raises:
        UsageError: The set may not be downloaded; the message says how it is had.
        LabError: No mirror has it, and the message says what each answered; or the disk is full.
    """
    dataset, folder = get(name), paths.data()
    if not all(file.urls for file in dataset.files):
        raise UsageError(
            f"{dataset.title} cannot be fetched: it is {dataset.how}, with `nlstm-lab data import {name} PATH`"
        )
    with paths.writing(folder, UNCHANGED):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as aside:
            return [_fetch(dataset, file, Path(aside), progress) for file in dataset.files if not _sound(file)]


def _sound(file: File) -> bool:
    try:
        if (path := find(file)) is not None:
            verify(file, path)
        return path is not None
    except DamagedFile:
        return False


def _fetch(dataset: Dataset, file: File, folder: Path, progress: bool) -> Path:
    """The file from the first mirror that has it as it was published; an archive is downloaded once."""
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")  # it would announce each file
    downloader = pooch.HTTPDownloader(progressbar=progress, timeout=TIMEOUT, chunk_size=1 << 16)
    failures = {}
    for url in (*file.urls, *file.urls):  # each once more when all have failed: a connection may have been cut
        address, _ = urldefrag(url)
        download = folder / Path(urlparse(address).path).name
        try:
            pooch.retrieve(address, known_hash=None, fname=download.name, path=folder, downloader=downloader)
            if placed := _take(download, [file], alone=True):
                return placed[0]
            raise DamagedFile(f"what came holds no {file.name}")
        except (requests.RequestException, DamagedFile) as error:
            download.unlink(missing_ok=True)
            named = isinstance(error, requests.HTTPError | DamagedFile)
            failures[address] = str(error).replace(str(download), "what came") if named else type(error).__name__
    raise LabError(
        f"no mirror had {file.name} of {dataset.title} ({'; '.join(f'{one}: {why}' for one, why in failures.items())});"
        f" behind a firewall download it elsewhere and take it over with `nlstm-lab data import {dataset.name} PATH`"
    )
