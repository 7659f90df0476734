"""Taking files of a data set into the project's data folder: verified first, in place at once or not at all."""

import io
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from nlstm_lab import paths
from nlstm_lab.datasets import content, registry
from nlstm_lab.datasets.records import File
from nlstm_lab.errors import LabError, UsageError


def import_(name: str, path: Path) -> list[Path]:
    """Take over a data set's files from a file, an archive (tar, zip) or a folder, however they lie in it.

    Returns where they were put. A UsageError says what was looked for where nothing is found, a DamagedFile what
    differs where a file is not what was published; then nothing has been changed.
    """
    dataset = registry.get(name)
    path = path.expanduser()
    if not path.exists():
        raise UsageError(f"there is nothing at {path}")
    placed = []
    for file in dataset.files:
        if (folder := _unpacked(path, file)) is not None:
            placed.append(_pack(file, folder))
        elif (target := _take(file, path, alone=len(dataset.files) == 1)) is not None:
            placed.append(target)
    if not placed:
        wanted = ", ".join(file.name for file in dataset.files)
        raise UsageError(f"{path} holds none of the files of {dataset.title}: {wanted} (plain, .gz, .xz or .zip)")
    return placed


def place(file: File, source: IO[bytes], packing: str) -> Path:
    """Copy a stream to where the file belongs, packed as it comes, once its content is verified.

    It takes the place of the same file in other packings; a DamagedFile names a copy in NLSTM_LAB_DATA that hides it.
    """
    target = paths.data() / f"{file.path}{packing}"
    with _writing(target) as partial:
        with partial.open("wb") as out:
            shutil.copyfileobj(source, out, content.CHUNK)
        registry.verify(file, target, registry.measure(file, partial, packing))
    for other in content.PACKINGS:
        if other != packing:
            (paths.data() / f"{file.path}{other}").unlink(missing_ok=True)
    if (found := registry.find(file)) is not None and found != target:
        registry.verify(file, found, registry.measure(file, found))
    return target


def from_archive(file: File, path: Path) -> Path | None:
    """Place the member of an archive that is the file, wherever it lies there; None where there is no such member.

    Members are copied by their bare name, never extracted: a path that leads outside or a link cannot do harm.
    """
    for name, data in content.members(path):
        if (packing := _packing(file, PurePosixPath(name).name)) is not None:
            return place(file, io.BytesIO(data), packing)
    return None


def _take(file: File, path: Path, alone: bool) -> Path | None:
    candidates = sorted(path.rglob("*")) if path.is_dir() else [path]
    for candidate in candidates:
        packing = _packing(file, candidate.name)
        if packing is None and alone and candidate == path and not _is_archive(path):
            packing = path.suffix if path.suffix in content.PACKINGS else ""  # under whatever name it was saved
        if packing is not None and candidate.is_file():
            with candidate.open("rb") as source:
                return place(file, source, packing)
    return from_archive(file, path) if path.is_file() and _is_archive(path) else None


def _packing(file: File, name: str) -> str | None:
    return next((packing for packing in content.PACKINGS if name == f"{file.name}{packing}"), None)


def _is_archive(path: Path) -> bool:
    return tarfile.is_tarfile(path) or zipfile.is_zipfile(path)


def _unpacked(path: Path, file: File) -> Path | None:
    """The folder that the file's archive unpacks to, at the path or below it."""
    if file.folder is None or not path.is_dir():
        return None
    folders = [path, *sorted(path.rglob(file.folder))]
    return next((folder for folder in folders if folder.name == file.folder and folder.is_dir()), None)


def _pack(file: File, folder: Path) -> Path:
    """Pack a folder anew as the distributor has it."""
    target = paths.data() / f"{file.path}.gz"
    with _writing(target) as partial:
        with tarfile.open(partial, "w:gz", compresslevel=6) as archive:
            for member in sorted(folder.rglob("*")):
                if member.is_file() and not member.is_symlink():
                    archive.add(member, f"{folder.name}/{member.relative_to(folder)}")
        registry.verify(file, folder, registry.measure(file, partial, ".gz"))
    return target


@contextmanager
def _writing(target: Path) -> Iterator[Path]:
    try:
        with paths.atomic(target) as partial:
            yield partial
    except OSError as error:
        if isinstance(error, LabError) or error.errno is None:
            raise
        raise LabError(f"{target} cannot be written ({error.strerror}); nothing there was changed") from error
