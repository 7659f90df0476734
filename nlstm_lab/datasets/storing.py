"""Files of a data set, downloaded or imported: verified first, in place at once or not at all."""

import os
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath
from urllib.parse import urldefrag, urlparse

from nlstm_lab import paths
from nlstm_lab.datasets import registry
from nlstm_lab.datasets.registry import Dataset, File
from nlstm_lab.errors import DamagedFile, LabError, UsageError

TRIES = 2  # per mirror; a cut connection starts over
TIMEOUT = 30  # seconds without an answer
LARGEST = 1 << 30  # bytes of a file whose size is not known


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
    if not (path.is_file() or path.is_dir()):
        raise UsageError(f"{path} is no regular file" if path.exists() else f"there is nothing at {path}")
    if not (placed := _take(path, dataset.files, alone=len(dataset.files) == 1)):
        wanted = ", ".join(file.name for file in dataset.files)
        raise UsageError(f"{path} holds none of the files of {dataset.title}: {wanted} (plain, .gz, .xz, .bz2 or .zip)")
    return placed


def _take(path: Path, files: Sequence[File], alone: bool) -> list[Path]:
    """Store the files that are there; alone: a single file is the one that is wanted, whatever it is called."""
    placed: dict[str, Path] = {}
    with _saying_why(paths.data()), ExitStack() as verified:  # all of them take their places when it ends
        for name, origin, data in _candidates(path, files, alone):
            left = [file for file in files if file.path not in placed]
            if (file := _named(name, left)) is None:
                digest = sha256(data).hexdigest()
                whatever = left[:1] if alone and origin == str(path) else []
                file = next(iter([*(one for one in left if one.sha256 == digest), *whatever, None]))
            if file is not None:
                placed[file.path] = paths.data() / file.path
                aside = verified.enter_context(paths.atomic(placed[file.path]))
                aside.write_bytes(data)
                try:
                    registry.verify(file, origin, registry.measure(file, aside))
                except DamagedFile as error:  # of the file that the user knows
                    raise DamagedFile(str(error).replace(str(aside), origin)) from error
    for file in files:
        if target := placed.get(file.path):
            for packing in registry.PACKINGS[1:]:
                (paths.data() / f"{file.path}{packing}").unlink(missing_ok=True)
            if (first := registry.find(file)) is not None and first != target:  # it hides the new one
                registry.verify(file, first, registry.measure(file, first))
    return [placed[file.path] for file in files if file.path in placed]


def _candidates(path: Path, files: Sequence[File], alone: bool) -> Iterator[tuple[str, str, bytes]]:
    """What may be one of the files, by its name or size: its name, what a message calls it, and its content."""

    def wanted(name: str, size: int) -> bool:
        found = size in sizes or _named(PurePosixPath(name).name, files) is not None
        if found and size > largest and not path.is_dir():
            raise DamagedFile(f"{name} in {path} is far larger ({size:,} bytes) than any file that was published")
        return found

    def unreadable(error: OSError) -> None:
        raise LabError(f"{error.filename} cannot be read: {paths.reason(error)}") from error

    sizes = [file.size for file in files if file.sha256]
    largest = 2 * max(file.size or LARGEST for file in files)  # of a member, which is read into memory
    if path.is_dir():
        for folder, folders, names in os.walk(path, onerror=unreadable):
            folders.sort()
            for one in (Path(folder, name) for name in sorted(names)):
                if one.is_file() and wanted(one.name, one.stat().st_size):
                    yield one.name, str(one), registry.read(one)
    elif _named(path.name, files) is None and (tarfile.is_tarfile(path) or zipfile.is_zipfile(path)):
        for name, data in registry.members(path, wanted):
            origin = f"{name} in {path}"
            yield PurePosixPath(name).name, origin, registry.read(data, origin)
    elif alone or _named(path.name, files) or path.stat().st_size in sizes:
        yield path.name, str(path), registry.read(path)


def _named(name: str, files: Sequence[File]) -> File | None:
    """The file of this name, whatever it is packed in, and whether its parts are set off by a dot or a hyphen."""
    for packing in registry.PACKINGS:
        plain = re.sub(r"[^a-z0-9]", "", name.lower().removesuffix(packing))
        for file in files:
            if plain == re.sub(r"[^a-z0-9]", "", file.name.lower()):
                return file
    return None


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
            return [_fetch(dataset, file, Path(aside), progress) for file in dataset.files if not _sound(file)]


def _sound(file: File) -> bool:
    try:
        if (path := registry.find(file)) is not None:
            registry.verify(file, path, registry.measure(file, path))
        return path is not None
    except DamagedFile:
        return False


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
