"""The content of a file, whatever it is packed in: plain, .gz, .xz or .zip."""

import gzip
import hashlib
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from nlstm_lab.errors import DamagedFile, LabError

PACKINGS = ("", ".gz", ".xz", ".zip")
CHUNK = 1 << 22


@contextmanager
def opened(path: Path, packing: str | None = None) -> Iterator[IO[bytes]]:
    """The unpacked bytes of a file as a stream, packed as its suffix or `packing` says; a zip holds one file."""
    packing = path.suffix if packing is None else packing
    try:
        if packing == ".zip":
            with zipfile.ZipFile(path) as archive, archive.open(_only_member(archive)) as member:
                yield member
        else:
            unpacking: Any = {".gz": gzip.open, ".xz": lzma.open}.get(packing, open)
            with unpacking(path, "rb") as stream:
                yield stream
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedFile(f"{path} is truncated or damaged ({error}); get it again") from error
    except (PermissionError, IsADirectoryError) as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from error


def _only_member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    files = [member for member in archive.infolist() if not member.is_dir()]
    if len(files) != 1:
        raise DamagedFile(f"{archive.filename} holds {len(files)} files where exactly one was expected; get it again")
    return files[0]


def read(path: Path, length: int = -1) -> bytes:
    """The first `length` bytes of a file's content, all of it where none is given."""
    with opened(path) as stream:
        return stream.read(length)


def digests(stream: IO[bytes]) -> dict[str, str | int]:
    """`size` in bytes, `sha256` and `md5` of a stream, in pieces."""
    size, sha256, md5 = 0, hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    while piece := stream.read(CHUNK):
        size += len(piece)
        sha256.update(piece)
        md5.update(piece)
    return {"size": size, "sha256": sha256.hexdigest(), "md5": md5.hexdigest()}


def members(path: Path, wanted: Callable[[str], bool] = lambda name: True) -> Iterator[tuple[str, bytes]]:
    """Name and content of each regular file that is wanted of a zip or tar archive; nothing is extracted to disk."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for entry in archive.infolist():
                    link = stat.S_ISLNK(entry.external_attr >> 16)
                    if not entry.is_dir() and not link and wanted(entry.filename):
                        yield entry.filename, archive.read(entry)
        else:
            with opened(path, "") as stream, tarfile.open(fileobj=stream, mode="r|*") as tar:
                for member in tar:
                    if member.isfile() and wanted(member.name) and (file := tar.extractfile(member)):
                        yield member.name, file.read()
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:  # RuntimeError: encrypted
        raise DamagedFile(f"{path} is no archive, or a truncated one ({error}); get it again") from error
