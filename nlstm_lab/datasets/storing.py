"""Files of a data set, downloaded or imported: verified first, in place at once or not at all."""

import io
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple
from urllib.parse import urldefrag, urlparse

from nlstm_lab import paths
from nlstm_lab.datasets import content, registry
from nlstm_lab.datasets.registry import Dataset, File
from nlstm_lab.errors import DamagedFile, LabError, UsageError

TRIES = 2  # per mirror; a cut connection starts over
TIMEOUT = 30  # seconds without an answer


class Source(NamedTuple):
    """Where a file's content comes from: a stream, packed so; origin: what a message calls it."""

    stream: IO[bytes]
    packing: str
    origin: str


def import_(name: str, path: Path) -> list[Path]:
    """Take over a data set's files from a file, an archive (tar, zip) or a folder, all of those found there or none.

    Args:
        name: Of the data set.
        path: The file, archive or folder.

    Returns:
        Where they were put.

    Raises:
        UsageError: Nothing is found.
        DamagedFile: One is not what was published.
    """
    dataset = registry.get(name)
    path = path.expanduser()
    if not path.exists():
        raise UsageError(f"there is nothing at {path}")
    placed: dict[Path, File] = {}
    with ExitStack() as verified:  # all of them take their places when it ends
        for file in dataset.files:
            if (source := _source(file, path, alone=len(dataset.files) == 1)) is not None:
                placed[verified.enter_context(_copied(file, source))] = file
    if not placed:
        wanted = ", ".join(file.name for file in dataset.files)
        raise UsageError(f"{path} holds none of the files of {dataset.title}: {wanted} (plain, .gz, .xz or .zip)")
    for target, file in placed.items():
        _uncover(file, target)
    return list(placed)


def in_archive(file: File, path: Path) -> Source | None:
    """The member of an archive that is the file, by its bare name and never extracted; None where there is none."""
    for name, data in content.members(path, lambda name: _packing(file, PurePosixPath(name).name) is not None):
        return Source(io.BytesIO(data), _packing(file, PurePosixPath(name).name) or "", f"{name} in {path}")
    return None


def _source(file: File, path: Path, alone: bool) -> Source | None:
    candidates = sorted(path.rglob("*")) if path.is_dir() else [path]
    for candidate in candidates:
        packing = _packing(file, candidate.name)
        if packing is None and alone and candidate == path and not _is_archive(path):
            packing = path.suffix if path.suffix in content.PACKINGS else ""  # under whatever name it was saved
        if packing is not None and candidate.is_file():
            return Source(candidate.open("rb"), packing, str(candidate))
    return in_archive(file, path) if path.is_file() and _is_archive(path) else None


@contextmanager
def _copied(file: File, source: Source) -> Iterator[Path]:
    """Where the file belongs; the verified content takes that place when the block ends well."""
    target = paths.data() / f"{file.path}{source.packing}"
    with source.stream, saying_why(target), paths.atomic(target) as partial:
        with partial.open("wb") as out:
            shutil.copyfileobj(source.stream, out, content.CHUNK)
        registry.verify(file, source.origin, registry.measure(file, partial, source.packing))
        yield target


def _uncover(file: File, target: Path) -> None:
    """Remove the file in other packings; DamagedFile where a copy that is looked at first is not what it should be."""
    for packing in content.PACKINGS:
        if (other := paths.data() / f"{file.path}{packing}") != target:
            other.unlink(missing_ok=True)
    if (existing := registry.find(file)) is not None and existing != target:
        registry.verify(file, existing, registry.measure(file, existing))


def _packing(file: File, name: str) -> str | None:
    return next((packing for packing in content.PACKINGS if name == f"{file.name}{packing}"), None)


def _is_archive(path: Path) -> bool:
    return tarfile.is_tarfile(path) or zipfile.is_zipfile(path)


@contextmanager
def saying_why(target: Path) -> Iterator[None]:
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
    with saying_why(folder):
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
    if member:
        source = in_archive(file, download)
    else:
        packing = download.suffix if download.suffix in content.PACKINGS else ""
        source = Source(download.open("rb"), packing, "what came")
    if source is None:
        raise DamagedFile(f"{download.name} holds no {file.name}")
    with _copied(file, source) as target:
        pass
    _uncover(file, target)
    return target
