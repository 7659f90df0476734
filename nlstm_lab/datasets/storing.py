"""Taking files of a data set into the project's data folder: verified first, in place at once or not at all."""

import io
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from nlstm_lab import paths
from nlstm_lab.datasets import content, registry
from nlstm_lab.datasets.registry import File
from nlstm_lab.errors import LabError, UsageError


class Source(NamedTuple):
    """Where a file's content comes from: a stream, packed so; origin: what a message calls it."""

    stream: IO[bytes]
    packing: str
    origin: str


def import_(name: str, path: Path) -> list[Path]:
    """Take over a data set's files from a file, an archive (tar, zip) or a folder, all of those found there or none.

    Returns where they were put. UsageError: nothing is found; DamagedFile: one is not what was published.
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


def place(file: File, source: Source) -> Path:
    """Copy a verified content to where the file belongs; DamagedFile: a copy in NLSTM_LAB_DATA hides it."""
    with _copied(file, source) as target:
        pass
    _uncover(file, target)
    return target


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
