"""The content of a file, whatever it is packed in: plain, .gz, .xz or .zip."""

import gzip
import hashlib
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from nlstm_lab.errors import DamagedFile, LabError

PACKINGS = ("", ".gz", ".xz", ".zip")
CHUNK = 1 << 22


@contextmanager
def opened(path: Path, packing: str | None = None) -> Iterator[IO[bytes]]:
    """The unpacked bytes of a file as a stream; the packing is told by the suffix unless it is given.

    A zip archive must hold exactly one file. Truncated or damaged packings become a DamagedFile while they are read,
    unreadable files a LabError.
    """
    packing = path.suffix if packing is None else packing
    try:
        if packing == ".gz":
            with gzip.open(path) as unpacked:
                yield cast(IO[bytes], unpacked)
        elif packing == ".xz":
            with lzma.open(path) as unxzed:
                yield unxzed
        elif packing == ".zip":
            with zipfile.ZipFile(path) as archive, archive.open(_only_member(archive)) as member:
                yield member
        else:
            with path.open("rb") as plain:
                yield plain
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedFile(f"{path} is truncated or damaged ({error}); get it again") from error
    except (PermissionError, IsADirectoryError) as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from error


def _only_member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    files = [member for member in archive.infolist() if not member.is_dir()]
    if len(files) != 1:
        raise DamagedFile(f"{archive.filename} holds {len(files)} files where exactly one was expected")
    return files[0]


def read(path: Path) -> bytes:
    """All of a file's content."""
    with opened(path) as stream:
        return stream.read()


def digests(stream: IO[bytes]) -> dict[str, str | int]:
    """`size` in bytes, `sha256` and `md5` of a stream, in pieces: no 100 MB in memory."""
    size, sha256, md5 = 0, hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    while piece := stream.read(CHUNK):
        size += len(piece)
        sha256.update(piece)
        md5.update(piece)
    return {"size": size, "sha256": sha256.hexdigest(), "md5": md5.hexdigest()}


def tar_members(path: Path, packing: str | None = None) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and content of each regular file in a tar archive, in its order; nothing is extracted, no link followed."""
    with opened(path, packing) as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    if member.isfile() and (file := archive.extractfile(member)):
                        yield member.name, file
        except tarfile.TarError as error:
            raise DamagedFile(f"{path} is no tar archive, or a truncated one ({error}); get it again") from error
