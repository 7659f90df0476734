"""The content of a file, whatever it is packed in: plain, .gz, .xz or .zip."""

import gzip
import hashlib
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from nlstm_lab.errors import DamagedFile, LabError

PACKINGS = ("", ".gz", ".xz", ".zip")
CHUNK = 1 << 22


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The unpacked bytes of a file as a stream; a zip archive must hold exactly one file.

    Truncated or damaged packings become a DamagedFile while they are read, unreadable files a LabError.
    """
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as stream:
                yield stream
        elif path.suffix == ".xz":
            with lzma.open(path) as stream:
                yield stream
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                files = [member for member in archive.infolist() if not member.is_dir()]
                if len(files) != 1:
                    raise DamagedFile(f"{path} holds {len(files)} files where exactly one was expected")
                with archive.open(files[0]) as stream:
                    yield stream
        else:
            with path.open("rb") as stream:
                yield stream
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedFile(f"{path} is truncated or damaged ({error}); get it again") from error
    except (PermissionError, IsADirectoryError) as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from error


def read(path: Path) -> bytes:
    """All of a file's content."""
    with opened(path) as stream:
        return stream.read()


def sha256(path: Path) -> str:
    """The checksum of a file's content, in pieces: no 100 MB in memory."""
    digest = hashlib.sha256()
    with opened(path) as stream:
        while piece := stream.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()
