"""Files of a data set, downloaded or imported: verified first, in place at once or not at all."""

import io
import os
import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple
from urllib.parse import urldefrag, urlparse

from nlstm_lab import paths
from nlstm_lab.datasets import registry
from nlstm_lab.datasets.registry import Dataset, File
from nlstm_lab.errors import DamagedFile, LabError, UsageError

TRIES = 2  # per mirror; a cut connection starts over
TIMEOUT = 30  # seconds without an answer


class Candidate(NamedTuple):
    """What may be a file of a data set: its bare name, its size as it lies there, what a message calls it."""

    name: str
    size: int
    origin: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]  # unpacked


def import_(name: str, path: Path) -> list[Path]:
    """Take over a data set's files from a file, an archive (tar, zip) or a folder, all of those found there or none.

    They are known by their names, or by their checksums, and stored unpacked.

    Args:
        name: Of the data set.
        path: The file, archive or folder.

    Returns:
        Where they were put.

    Raises:
        UsageError: Nothing is found.
        DamagedFile: One is not what was published.
    """
    dataset, path = registry.get(name), path.expanduser()
    if not path.exists():
        raise UsageError(f"there is nothing at {path}")
    if not (placed := _take(path, dataset.files, alone=len(dataset.files) == 1)):
        wanted = ", ".join(file.name for file in dataset.files)
        raise UsageError(f"{path} holds none of the files of {dataset.title}: {wanted} (plain, .gz, .xz, .bz2 or .zip)")
    return placed


def _take(path: Path, files: Sequence[File], alone: bool) -> list[Path]:
    """Store the files that are there; alone: a single file is the one that is wanted, whatever it is called."""
    placed: dict[Path, File] = {}
    with ExitStack() as verified:  # all of them take their places when it ends
        for candidate in _candidates(path, files):
            wanted = [file for file in files if file not in placed.values()]
            if (file := _which(candidate, wanted, alone and candidate.origin == str(path))) is not None:
                placed[verified.enter_context(_stored(file, candidate))] = file
    for target, file in placed.items():
        for packing in registry.PACKINGS[1:]:
            (paths.data() / f"{file.path}{packing}").unlink(missing_ok=True)
        if (first := registry.find(file)) is not None and first != target:  # it hides the new one
            registry.verify(file, first, registry.measure(file, first))
    return sorted(placed, key=lambda target: files.index(placed[target]))


def _candidates(path: Path, files: Sequence[File]) -> Iterator[Candidate]:
    def unreadable(error: OSError) -> None:
        raise LabError(f"{error.filename} cannot be read: {paths.reason(error)}") from error

    if path.is_dir():
        for folder, folders, names in os.walk(path, onerror=unreadable):
            folders.sort()
            for one in (Path(folder, name) for name in sorted(names)):
                if one.is_file():
                    yield Candidate(one.name, one.stat().st_size, str(one), partial(registry.opened, one))
    elif _named(path.name, files) is None and (tarfile.is_tarfile(path) or zipfile.is_zipfile(path)):
        sizes = [file.size for file in files]
        for name, data in registry.members(
            path, lambda name, size: size in sizes or _named(PurePosixPath(name).name, files)
        ):
            origin = f"{name} in {path}"
            read = partial(registry.opened, path, io.BytesIO(data), origin)
            yield Candidate(PurePosixPath(name).name, len(data), origin, read)
    else:
        yield Candidate(path.name, path.stat().st_size, str(path), partial(registry.opened, path))


def _named(name: str, files: Sequence[File]) -> File | None:
    """The file of this name, whatever it is packed in, and whether its parts are set off by a dot or a hyphen."""
    for packing in registry.PACKINGS:
        plain = re.sub(r"[^a-z0-9]", "", name.lower().removesuffix(packing))
        for file in files:
            if plain == re.sub(r"[^a-z0-9]", "", file.name.lower()):
                return file
    return None


def _which(candidate: Candidate, wanted: Sequence[File], alone: bool) -> File | None:
    """Which of the wanted files this is, by its name or else by its content."""
    if (named := _named(candidate.name, wanted)) is not None:
        return named
    if alone and wanted:
        return wanted[0]
    if candidate.size in [file.size for file in wanted if file.sha256]:
        with candidate.open() as stream:
            sha256 = registry.digests(stream)["sha256"]
        return next((file for file in wanted if file.sha256 == sha256), None)
    return None


@contextmanager
def _stored(file: File, candidate: Candidate) -> Iterator[Path]:
    """Where the file belongs; the verified content takes that place when the block ends well."""
    target = paths.data() / file.path
    with _saying_why(target), paths.atomic(target) as aside:
        with candidate.open() as stream, aside.open("wb") as out:
            shutil.copyfileobj(stream, out, registry.CHUNK)
        try:
            registry.verify(file, candidate.origin, registry.measure(file, aside))
        except DamagedFile as error:  # of the file that the user knows
            raise DamagedFile(str(error).replace(str(aside), candidate.origin)) from error
        yield target


@contextmanager
def _saying_why(target: Path) -> Iterator[None]:
    """Turn a failed write to `target` into one sentence."""
    try:
        yield
    except OSError as error:
        if isinstance(error, LabError) or error.errno is None:
            raise
        raise LabError(
            f"{target} cannot be written ({paths.reason(error)}); nothing there was changed; NLSTM_LAB_ROOT can name "
            "another folder"
        ) from error


def fetch(name: str, progress: bool = True) -> list[Path]:
    """Download what a data set lacks on this machine.

    What was there before stays until a verified file replaces it.

    Args:
        name: Of the data set.
        progress: Show a progress bar.

    Returns:
        The files that were put in place.

    Raises:
        UsageError: The set may not be downloaded; the message says how it is had.
        LabError: No mirror has it, and the message says what each answered; or the disk is full.
    """
    dataset, folder = registry.get(name), paths.data()
    if not all(file.urls for file in dataset.files):
        raise UsageError(
            f"{dataset.title} cannot be fetched: it is {dataset.how}, with `nlstm-lab data import {name} PATH`"
        )
    with _saying_why(folder):
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
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")  # it would announce each file
    downloader = pooch.HTTPDownloader(progressbar=progress, timeout=TIMEOUT, chunk_size=1 << 16)
    failures = []
    for url in file.urls:
        address, _ = urldefrag(url)
        download = folder / Path(urlparse(address).path).name
        for _ in range(TRIES):
            try:
                pooch.retrieve(address, known_hash=None, fname=download.name, path=folder, downloader=downloader)
                if placed := _take(download, [file], alone=True):
                    return placed[0]
                raise DamagedFile(f"what came holds no {file.name}")
            except requests.HTTPError as error:
                failures.append(str(error))  # status, reason and address
                break
            except requests.RequestException as error:
                failures.append(f"{address}: {type(error).__name__}")
            except DamagedFile as error:
                download.unlink()
                failures.append(f"{address}: {str(error).replace(str(download), 'what came')}")
                break
    raise LabError(
        f"no mirror had {file.name} of {dataset.title} ({'; '.join(dict.fromkeys(failures))}); behind a firewall "
        f"download it elsewhere and take it over with `nlstm-lab data import {dataset.name} PATH`"
    )
