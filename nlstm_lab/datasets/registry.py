"""What is known about each data set (`records.toml`), where it lies here, what it holds, and parsed copies of it."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import stat
import tarfile
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from nlstm_lab import paths
from nlstm_lab.errors import DamagedFile, LabError, MissingData, UsageError, hint

PACKINGS = ("", ".gz", ".xz", ".zip", ".bz2")
PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open, b"BZh": bz2.open}  # by the first bytes
REFUSED = {
    b"\x28\xb5\x2f\xfd": "is packed by zstd: unpack it first (unzstd)",
    b"7z\xbc\xaf\x27\x1c": "is packed by 7-Zip: unpack it first",
    b"Rar!\x1a\x07": "is packed by RAR: unpack it first",
    b"%PDF-": "is a PDF: save its text first (pdftotext)",
}
CHUNK = 1 << 22
SWOLLEN, RATIO = 1 << 26, 100  # bytes, and times its packed size, up to which a file may unpack to
FORMAT = 1  # raised when what an entry of the cache holds changes


@dataclass(frozen=True)
class File:
    """One file, named as its content is; on disk it may be packed."""

    path: str  # inside a data folder
    size: int | None = None  # bytes of the content
    sha256: str | None = None
    md5: str | None = None  # only where no sha256 is known
    urls: Sequence[str] = ()
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
    dataset = get(name)
    found = []
    for file in dataset.files:
        if (path := find(file)) is None:
            fetch = f"get it with `nlstm-lab data fetch {name}`, " if file.urls else ""
            raise MissingData(
                f"{dataset.title} is not on this machine ({file.path} is missing): {fetch}take a copy of yours "
                f"with `nlstm-lab data import {name} PATH`, or let NLSTM_LAB_DATA name the folder that has it"
            )
        found.append(path)
    return tuple(found)


def contents(name: str) -> list[bytes]:
    """The content of each file of a data set. DamagedFile: one is not what was published."""
    everything = []
    for file, path in zip(get(name).files, locate(name), strict=True):
        everything.append(read(path))
        verify(file, path, digests(io.BytesIO(everything[-1])))
    return everything


def verify(file: File, origin: Path | str, measured: Mapping[str, str | int]) -> None:
    """Compare what was measured of a content with the record. DamagedFile: they differ; the message says in what."""
    for what in ("size", "sha256", "md5", "members"):
        if (expected := getattr(file, what)) is not None and measured[what] != expected:
            raise DamagedFile(
                f"{origin} is not {file.name} as it was published ({what} {measured[what]}, expected {expected}); "
                "remove it and get it again"
            )


def measure(file: File, path: Path) -> dict[str, str | int]:
    """Size and checksums of a content, or its number of members where that is all that is known."""
    if file.members is not None:
        return {"members": sum(1 for _ in members(path))}
    with opened(path) as stream:
        return digests(stream)


class Status(NamedTuple):
    """One row of `nlstm-lab data`. `detail` is one sentence."""

    name: str
    state: Literal["present", "absent", "damaged"]
    detail: str


def check(name: str, fresh: bool = True) -> Status:
    """The state of one data set; fresh: every byte is read anew, where checksums are otherwise remembered."""
    dataset = get(name)
    try:
        located = locate(name)
        for file, path in zip(dataset.files, located, strict=True):
            known = measure(file, path) if fresh else cached("measured", [path], partial(_measured, file, path)).facts
            verify(file, path, known)
    except MissingData as missing:
        return Status(name, "absent", str(missing))
    except LabError as error:
        return Status(name, "damaged", str(error))
    summed = all(file.sha256 or file.md5 for file in dataset.files)
    how = "checksums agree" if summed else "complete by count, no checksum is published"
    return Status(name, "present", f"{located[0].parent}: {how}")


def status() -> list[Status]:
    """The state of every data set; contents are hashed once and remembered until a file changes."""
    return [check(name, fresh=False) for name in DATASETS]


def _measured(file: File, path: Path) -> "Parsed":
    return Parsed({}, measure(file, path))


def combined(files: Iterable[bytes]) -> str:
    """One fingerprint of several contents, in their order."""
    digest = hashlib.sha256()
    for data in files:
        digest.update(data)
    return digest.hexdigest()


def digests(stream: IO[bytes]) -> dict[str, str | int]:
    """`size` in bytes, `sha256` and `md5` of a stream, in pieces."""
    size, sha256, md5 = 0, hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    while piece := stream.read(CHUNK):
        size += len(piece)
        sha256.update(piece)
        md5.update(piece)
    return {"size": size, "sha256": sha256.hexdigest(), "md5": md5.hexdigest()}


@contextmanager
def opened(source: Path | bytes, origin: str = "") -> Iterator[IO[bytes]]:
    """The unpacked bytes of a file, or of a content that a message calls `origin`; packed as its first bytes say.

    LabError: it cannot be read. DamagedFile: it is truncated, or a zip of more than one file.
    """
    origin = origin or str(source)
    try:
        file = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
    except OSError as error:
        raise LabError(f"{origin} cannot be read: {paths.reason(error)}") from error
    try:
        with file:
            head = file.read(8)
            file.seek(0)
            if refused := [what for magic, what in REFUSED.items() if head.startswith(magic)]:
                raise LabError(f"{origin} {refused[0]}")
            if head.startswith(b"PK\x03\x04"):
                with zipfile.ZipFile(file) as archive:
                    inside = [one for one in archive.infolist() if not one.is_dir() and not _leftover(one.filename)]
                    if len(inside) != 1:
                        raise DamagedFile(f"{origin} holds {len(inside)} files where exactly one was expected")
                    with archive.open(inside[0]) as stream:
                        yield stream
            else:
                unpack = next((PACKED[magic] for magic in PACKED if head.startswith(magic)), None)
                with unpack(file, "rb") if unpack else file as stream:
                    yield stream
    except (EOFError, OSError, lzma.LZMAError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        if isinstance(error, LabError) or (isinstance(error, OSError) and error.errno):  # of who reads, or writes
            raise
        raise DamagedFile(f"{origin} is truncated, damaged or encrypted ({error}); get it again") from error


def read(source: Path | bytes, origin: str = "", length: int | None = None) -> bytes:
    """The first `length` bytes of what `opened` gives, or all. DamagedFile: far more than it is packed in."""
    origin = origin or str(source)
    packed = len(source) if isinstance(source, bytes) else source.stat().st_size
    whole = io.BytesIO()
    with opened(source, origin) as stream:
        if length is not None:
            return stream.read(length)
        while piece := stream.read(CHUNK):
            whole.write(piece)
            if whole.tell() > max(SWOLLEN, RATIO * packed):
                raise DamagedFile(f"{origin} unpacks to more than {RATIO} times its size, as no data do")
    return whole.getvalue()


def members(path: Path, wanted: Callable[[str, int], object] = lambda name, size: True) -> Iterator[tuple[str, bytes]]:
    """Name and content of the files in a zip or tar archive that are `wanted(name, size)`.

    Links are left out, and nothing is extracted to disk. DamagedFile: it is no archive, or a truncated one.
    """
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for entry in archive.infolist():
                    plain = not entry.is_dir() and not stat.S_ISLNK(entry.external_attr >> 16)
                    if plain and not _leftover(entry.filename) and wanted(entry.filename, entry.file_size):
                        yield entry.filename, archive.read(entry)
        else:
            with opened(path) as file, tarfile.open(fileobj=file, mode="r|") as tar:
                for member in tar:
                    if member.isfile() and not _leftover(member.name) and wanted(member.name, member.size):
                        yield member.name, tar.extractfile(member).read()  # type: ignore[union-attr]  # it is a file
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        raise DamagedFile(f"{path} is no archive, or a truncated or encrypted one ({error}); get it again") from error


def _leftover(name: str) -> bool:
    """Whether macOS put it into an archive beside each file."""
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or not parts or parts[-1].startswith("._") or parts[-1] == ".DS_Store"


class Parsed(NamedTuple):
    """Named arrays (memory-mapped when they come from the cache) and facts about them that JSON can hold."""

    arrays: Mapping[str, np.ndarray]
    facts: Mapping[str, Any]


def cached(entry_name: str, sources: Sequence[Path], build: Callable[[], Parsed], /, **settings: object) -> Parsed:
    """What `build` returns, from the cache where sources (path, size, every time of change) and settings agree.

    An entry is a folder of arrays and a manifest, which is written last.
    """
    known = ("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")  # a ctime, unlike an mtime, cannot be set back
    stats = [[str(path.resolve()), *(getattr(path.stat(), name) for name in known)] for path in sources]
    text = json.dumps([FORMAT, stats, settings], sort_keys=True)
    entry = paths.cache() / f"{entry_name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if (found := _load(entry)) is not None:
        return found
    parsed = build()
    manifest = {"arrays": list(parsed.arrays), "facts": dict(parsed.facts)}
    try:
        for name, array in parsed.arrays.items():
            with paths.atomic(entry / f"{name}.npy") as partial, partial.open("wb") as file:
                np.save(file, array, allow_pickle=False)
        with paths.atomic(entry / "manifest.json") as partial:
            partial.write_text(json.dumps(manifest, ensure_ascii=False, indent=1), "utf-8")
    except OSError as error:
        raise LabError(
            f"the cache {entry.parent} cannot be written ({error.strerror}); name another folder in NLSTM_LAB_CACHE"
        ) from error
    return _load(entry) or parsed


def _load(entry: Path) -> Parsed | None:
    """The entry, or None where there is none or a damaged one."""
    try:
        manifest = json.loads((entry / "manifest.json").read_text(encoding="utf-8"))
        arrays = {name: np.load(entry / f"{name}.npy", mmap_mode="r") for name in manifest["arrays"]}
        return Parsed(arrays, manifest["facts"])
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None
