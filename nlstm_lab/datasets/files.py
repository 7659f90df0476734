"""The bytes of files and archives, however they are packed; texts from bytes; a cache of what was parsed."""

import bz2
import codecs
import gzip
import hashlib
import io
import json
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from nlstm_lab import paths
from nlstm_lab.errors import DamagedFile, LabError, UsageError

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
MARKS = {  # UTF-32-LE first: it begins as UTF-16-LE does
    **{codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"},
    **{codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8"},
}
OTHERS = "cp1252 (Western Europe), cp1251 (Russian), gb18030 (Chinese), shift_jis (Japanese) or utf-16-le"
FORMAT = 1  # raised when what an entry of the cache holds changes
DAMAGES = (EOFError, OSError, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, zlib.error, RuntimeError)


@contextmanager
def reading(origin: str) -> Iterator[None]:
    """LabError: a file cannot be read. DamagedFile: it is not what it claims to be."""
    try:
        yield
    except DAMAGES as error:
        if isinstance(error, OSError) and error.errno:
            raise LabError(f"{error.filename or origin} cannot be read: {paths.reason(error)}") from error
        raise DamagedFile(f"{origin} is truncated, damaged or encrypted ({error}); get it again") from error


def read(source: Path | bytes, origin: str = "", length: int | None = None) -> bytes:
    """Unpack a file, or a content that messages call `origin`: its first `length` bytes, or all.

    LabError: it cannot be read. DamagedFile: it is truncated, far larger than it is packed in, or a zip of many files.
    """
    origin, whole = origin or str(source), io.BytesIO()
    with reading(origin), ExitStack() as opened:
        file: Any = opened.enter_context(io.BytesIO(source) if isinstance(source, bytes) else source.open("rb"))
        head, packed = file.read(8), file.seek(0, io.SEEK_END)
        file.seek(0)
        if refused := [what for magic, what in REFUSED.items() if head.startswith(magic)]:
            raise LabError(f"{origin} {refused[0]}")
        if head.startswith(b"PK\x03\x04"):
            archive = opened.enter_context(zipfile.ZipFile(file))
            inside = [one for one in archive.infolist() if not one.is_dir() and not _leftover(one.filename)]
            if len(inside) != 1:
                raise DamagedFile(f"{origin} holds {len(inside)} files where exactly one was expected")
            file = opened.enter_context(archive.open(inside[0]))
        elif unpack := next((PACKED[magic] for magic in PACKED if head.startswith(magic)), None):
            file = opened.enter_context(unpack(file, "rb"))
        if length is not None:
            return bytes(file.read(length))
        while piece := file.read(CHUNK):
            whole.write(piece)
            if whole.tell() > max(SWOLLEN, RATIO * packed):
                raise DamagedFile(f"{origin} unpacks to more than {RATIO} times its size, as no data do")
    return whole.getvalue()


def members(path: Path, wanted: Callable[[str, int], object] = lambda name, size: True) -> Iterator[tuple[str, bytes]]:
    """Name and content of the files in a folder, zip or tar archive that are `wanted(name, size)`.

    No link of an archive is followed, nothing extracted to disk. DamagedFile: it is no archive, or a truncated one.
    """

    def failed(error: OSError) -> None:
        raise error

    def taken(name: str, size: int) -> bool:
        return not _leftover(name) and bool(wanted(name, size))

    with reading(str(path)):
        if path.is_dir():
            for folder, _, names in os.walk(path, onerror=failed):
                for one in (Path(folder, name) for name in sorted(names)):
                    if one.is_file() and taken(one.name, one.stat().st_size):
                        yield str(one.relative_to(path)), one.read_bytes()
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for entry in archive.infolist():
                    if not entry.is_dir() and taken(entry.filename, entry.file_size):
                        yield entry.filename, archive.read(entry)
        else:
            with tarfile.open(fileobj=io.BytesIO(read(path)), mode="r:") as tar:
                for member in tar:
                    if member.isfile() and taken(member.name, member.size):
                        yield member.name, tar.extractfile(member).read()  # type: ignore[union-attr]  # it is a file


def _leftover(name: str) -> bool:
    """Whether macOS put it into an archive beside each file."""
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or not parts or parts[-1].startswith("._") or parts[-1] == ".DS_Store"


def decode(path: Path, encoding: str, length: int | None = None) -> str:
    """The text of a file, or of its first `length` bytes. UsageError: which bytes are no such text."""
    try:
        "".encode(encoding)
        named, decoder = codecs.lookup(encoding).name, codecs.getincrementaldecoder(encoding)()
    except (LookupError, ValueError):  # unknown, or (as base64) no encoding of texts
        raise UsageError(f"there is no text encoding {encoding!r}") from None
    data = read(path, length=length)
    marked = next((MARKS[mark] for mark in MARKS if data.startswith(mark)), None)
    first, second = (data[k:CHUNK:2].count(0) / (len(data[k:CHUNK:2]) or 1) for k in range(2))
    # English has a zero in every second byte
    wide = "utf-16-le" if second > 0.4 and first < 0.1 else "utf-16-be" if first > 0.4 and second < 0.1 else None
    if not marked and (named in ("utf-16", "utf-32") or wide not in (None, named)):
        either = wide or f"{named}-le or {named}-be"
        raise UsageError(f"{path} is UTF-16 or UTF-32 without a byte order mark: name it with --encoding {either}")
    if 0 in data and not marked and not named.startswith(("utf-16", "utf-32")):
        what = f"no text (byte 0x00 at {data.index(0)}), or one in UTF-16 or UTF-32: then name it with --encoding"
        raise UsageError(f"{path} is {'a tar archive: unpack it first' if data[257:262] == b'ustar' else what}")
    try:
        # what ends at `length` may end within a character
        text: str = decoder.decode(data, final=length is None or len(data) < length)
    except UnicodeError as error:
        place, reason = getattr(error, "start", 0), getattr(error, "reason", str(error))
        if place and len(data) - place < 4 and reason in ("unexpected end of data", "truncated data"):
            raise UsageError(
                f"{path} ends within a character (byte {data[place]:#04x} at {place}): it was cut; take away its last "
                f"{len(data) - place} byte(s), or get it whole"
            ) from None
        raise UsageError(
            f"{path} is not {encoding} text (byte {data[place]:#04x} at {place}): name its own encoding, "
            f"{f'--encoding {marked}' if marked else f'such as --encoding {OTHERS}'}"
        ) from None
    return text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")


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
    manifest = json.dumps({"arrays": list(parsed.arrays), "facts": parsed.facts}, ensure_ascii=False, indent=1)
    with paths.writing(entry, "; name another folder in NLSTM_LAB_CACHE"):
        for name, array in parsed.arrays.items():
            with paths.atomic(entry / f"{name}.npy") as partial, partial.open("wb") as file:
                np.save(file, array, allow_pickle=False)
        with paths.atomic(entry / "manifest.json") as partial:
            partial.write_text(manifest, "utf-8")
    return _load(entry) or parsed


def _load(entry: Path) -> Parsed | None:
    """The entry, or None where there is none or a damaged one."""
    try:
        manifest = json.loads((entry / "manifest.json").read_text(encoding="utf-8"))
        arrays = {name: np.load(entry / f"{name}.npy", mmap_mode="r") for name in manifest["arrays"]}
        return Parsed(arrays, manifest["facts"])
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None
