"""A cache of parsed files: the second load of a data set takes as long as its arrays take to come from the disk.

An entry is named by a digest of the bytes of the file, of how they were read and of this format, so a changed file is
never served stale and a copied or touched one is still found. Entries live in the user's cache folder, or where
the environment variable ``MOERANK_CACHE`` says (``MOERANK_CACHE=off``: nowhere), never beside the data; they may be
deleted at any time. Check sums in each cover its name and its arrays; an entry with others is damaged or that of
other arrays. What cannot be read is made again, what cannot be written is not kept: a cache never fails a load.

All entries together take up to 20 GiB, or as many as the environment variable ``MOERANK_CACHE_SIZE`` says; those that
were not used for longest go first.

To digest a file of gigabytes takes seconds. That of a large one is kept beside the entries, under the file's device,
number, size and times. Where a system records the time of the last change by itself, as all but Windows do, no change
leaves all of these as they are, unless it falls into the moment of the digest: younger files are digested each time.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from math import prod
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from moerank.checks import gibibytes
from moerank.files import remove_old_remains, replacing
from moerank.kernels.check_sum import LANES, fold_words, start_lanes
from moerank.systems import open_regular

__all__ = [
    "Arrays",
    "DamagedEntryError",
    "read_arrays",
    "write_arrays",
    "LARGE",
    "CacheEntry",
    "Keepable",
    "cache_entries",
    "cache_folder",
    "cache_limit",
    "clear_cache",
    "remembered",
]

Arrays = dict[str, NDArray[Any]]

_MAGIC = b"moerank arrays 1"
_ALIGNED = 8 * LANES
"""Arrays begin at multiples of so many bytes; check sums take as many at a time."""
_PIECE = 2**21
"""Bytes that are read at once, and summed while they are in the processor's cache."""
MAPPED = 2**26
"""Bytes of an array from which on it is mapped, where a file that is mapped can be removed."""
_SUM = 32
_LARGEST_HEADER = 2**20


class DamagedEntryError(ValueError):
    """A file that is not as it was written."""


def write_arrays(file: BinaryIO, name: str, arrays: Arrays) -> None:
    """Write arrays of numbers or texts, C-contiguous, under the name that the file will have."""
    entries = [
        {"name": key, "type": array.dtype.str, "shape": array.shape, "sum": _array_sum(array)}
        for key, array in arrays.items()
    ]
    header = json.dumps(entries).encode()
    file.write(_MAGIC + len(header).to_bytes(8, "little") + _header_sum(name, header) + header)
    n_written = len(_MAGIC) + 8 + _SUM + len(header)
    for array in arrays.values():
        file.write(bytes(-n_written % _ALIGNED))
        file.write(_bytes_of(array))
        n_written += -n_written % _ALIGNED + array.nbytes


def read_arrays(path: Path) -> Arrays:
    """Return the arrays that were written under the name of this file; large ones can only be read.

    Raises
    ------
    DamagedEntryError
        If anything in it has changed, or it was written under another name.
    OSError
        If it cannot be read, or is no regular file.
    """
    with open_regular(path) as buffered:
        file = buffered.raw  # type: ignore[attr-defined]  # a buffer would copy everything once more
        begin = file.read(len(_MAGIC) + 8 + _SUM) or b""
        length = int.from_bytes(begin[len(_MAGIC) : len(_MAGIC) + 8], "little")
        if not begin.startswith(_MAGIC) or length > _LARGEST_HEADER:
            raise DamagedEntryError
        header = file.read(length) or b""
        if begin[-_SUM:] != _header_sum(path.name, header):
            raise DamagedEntryError
        entries = json.loads(header)
        place = file.tell()
        n_bytes = file.seek(0, 2)
        arrays: Arrays = {}
        for entry in entries:
            place += -place % _ALIGNED
            file.seek(place)
            kind, shape = np.dtype(entry["type"]), entry["shape"]
            if kind.kind not in "biufU" or min(shape, default=0) < 0 or place + kind.itemsize * prod(shape) > n_bytes:
                raise DamagedEntryError  # somebody else's: memory filled with what are no numbers would be believed
            if kind.itemsize * prod(shape) >= MAPPED and os.name == "posix":
                array: NDArray[Any] = np.memmap(file, kind, "r", place, tuple(shape))
                found = _array_sum(array)
            else:
                array = np.empty(shape, kind)
                found = _array_sum(array, file)
            if found != entry["sum"]:
                raise DamagedEntryError
            arrays[entry["name"]] = array
            place += array.nbytes
        if place != n_bytes:
            raise DamagedEntryError
    return arrays


def _array_sum(array: NDArray[Any], file: BinaryIO | None = None) -> str:
    """Return the check sum of an array, which is filled from a file first if there is one, piece by piece."""
    content = _bytes_of(array)
    lanes = start_lanes()
    for begin in range(0, len(content), _PIECE):
        piece = np.frombuffer(content[begin : begin + _PIECE], np.uint8)
        if file is not None and not _fill(content[begin : begin + _PIECE], file):
            raise DamagedEntryError
        whole = len(piece) - len(piece) % _ALIGNED
        fold_words(lanes, piece[:whole].view(np.uint64))
        if whole < len(piece):
            last = np.zeros(_ALIGNED, np.uint8)
            last[: len(piece) - whole] = piece[whole:]
            fold_words(lanes, last.view(np.uint64))
    return blake2b(lanes.tobytes(), digest_size=16).hexdigest()


def _fill(buffer: memoryview, file: BinaryIO) -> bool:
    """Fill a buffer from a file; False if there is not enough."""
    filled = 0
    while filled < len(buffer):
        n_read = file.readinto(buffer[filled:])  # type: ignore[attr-defined]
        if not n_read:
            return False
        filled += n_read
    return True


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _header_sum(name: str, header: bytes) -> bytes:
    digest = blake2b(name.encode() + b"\n", digest_size=_SUM)
    digest.update(header)
    return digest.digest()


_FORMAT = "moerank cache 4"
"""To be changed whenever the same bytes would be read as other arrays."""

LIMIT = 20.0
"""GiB that all entries may take, unless the user says otherwise."""

LARGE = 2**26
"""Bytes of a file from which on its digest is kept."""

AGE = 5.0
"""Seconds without a change after which a file's times are believed: no clock of a file system is coarser."""

_NAME = re.compile(r"[0-9a-f]{32}\.(?:arrays|digest|npz)")
"""Entries, digests of large files, and entries of earlier versions."""


@dataclass(frozen=True)
class CacheEntry:
    """A file of the cache.

    Attributes
    ----------
    path : Path
    n_bytes : int
    used : float
        When it was last used, in seconds since 1970.
    """

    path: Path
    n_bytes: int
    used: float


def cache_folder() -> Path | None:
    """Return where entries are kept: ``MOERANK_CACHE``, else the user's cache folder; None if ``off`` or homeless."""
    chosen = os.environ.get("MOERANK_CACHE")
    if chosen:
        return None if chosen.lower() == "off" else Path(chosen)
    from platformdirs import user_cache_dir

    folder = Path(user_cache_dir("moerank"))
    return folder if folder.is_absolute() else None  # of a user without a home it is a folder called ~


def cache_limit() -> int:
    """Return how many bytes all entries may take: `LIMIT` GiB, or as many as ``MOERANK_CACHE_SIZE`` says.

    Raises
    ------
    ValueError
        If that variable holds no number.
    """
    return gibibytes("MOERANK_CACHE_SIZE", LIMIT)


def cache_entries() -> list[CacheEntry]:
    """Return all entries, those last that were used last."""
    folder = cache_folder()
    return sorted(_entries(folder), key=lambda entry: entry.used) if folder else []


def clear_cache() -> tuple[int, int]:
    """Remove all entries; return how many there were, and their bytes."""
    removed = [entry for entry in cache_entries() if _remove(entry.path)]
    return len(removed), sum(entry.n_bytes for entry in removed)


class Keepable(Protocol):
    """What can be kept as arrays."""

    def as_arrays(self) -> Arrays:
        """Return everything as arrays by name."""

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return what `as_arrays` returned arrays of; raise anything for arrays that cannot be."""


K = TypeVar("K", bound=Keepable)


def remembered(path: Path, reading: str, kind: type[K], make: Callable[[], K]) -> K:
    """Return what `make` returned when a file with these bytes was last read this way, or call it and keep the result.

    Parameters
    ----------
    path : Path
        The file the result depends on. What is no regular file, such as a pipe, is not remembered.
    reading : str
        Everything else it depends on, such as options of the parser.
    kind : type
        The class of the result.
    make : callable
        Makes the result; what it raises passes through, and nothing is kept.

    Raises
    ------
    OSError
        If the file cannot be read.

    Notes
    -----
    O(bytes of the file) for the digest, at 1 GB/s or so, unless the file is large and was seen before. A file that
    changes while it is read is not remembered.
    """
    folder = cache_folder()
    before = path.stat()
    if folder is None or not S_ISREG(before.st_mode):
        return make()
    limit = cache_limit()
    digest = blake2b(f"{_FORMAT} {reading}\n".encode(), digest_size=16)
    digest.update(_content_digest(path, before, folder))
    entry = folder / f"{digest.hexdigest()}.arrays"
    with suppress(Exception):  # a damaged entry raises nearly anything, and the remedy is always the same
        result = kind.from_arrays(read_arrays(entry))
        with suppress(OSError):
            os.utime(entry)
        return result
    result = make()
    arrays = result.as_arrays()
    n_bytes = sum(array.nbytes for array in arrays.values())
    if _state(path.stat()) == _state(before) and n_bytes <= limit:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            _make_room(folder, limit - n_bytes)
            with replacing(entry) as file:
                write_arrays(file, entry.name, arrays)
            _make_room(folder, limit)  # for what is no array in it, and the entries of others
    return result


def _content_digest(path: Path, status: os.stat_result, folder: Path) -> bytes:
    """Return a digest of the bytes of a file, of a large one from where it is kept."""
    kept = None
    if status.st_size >= LARGE and os.name == "posix" and abs(time.time() - status.st_ctime) > AGE:
        kept = folder / f"{blake2b(repr(_state(status)).encode(), digest_size=16).hexdigest()}.digest"
        with suppress(OSError), open_regular(kept) as file:
            content = file.read(100)
            if content[32:] == _digest_of_digest(kept, content[:32]):
                with suppress(OSError):
                    os.utime(kept)
                return content[:32]
    digest = _digest(path)
    if kept is not None and _state(path.stat()) == _state(status):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(kept) as target:
                target.write(digest + _digest_of_digest(kept, digest))
    return digest


def _digest(path: Path) -> bytes:
    digest = blake2b(digest_size=32)
    with path.open("rb", buffering=0) as source:
        buffer = memoryview(bytearray(2**20))
        while n_read := source.readinto(buffer):
            digest.update(buffer[:n_read])
    return digest.digest()


def _digest_of_digest(path: Path, content: bytes) -> bytes:
    return blake2b(path.name.encode() + content, digest_size=16).digest()


def _state(status: os.stat_result) -> tuple[int, ...]:
    """Return what tells two states of files apart."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _entries(folder: Path) -> Iterator[CacheEntry]:
    """Yield the entries of a folder, which may hold other files, too."""
    with suppress(OSError):
        for path in folder.iterdir():
            if _NAME.fullmatch(path.name):
                with suppress(OSError):  # another process was faster
                    status = path.lstat()
                    if S_ISREG(status.st_mode):
                        yield CacheEntry(path, status.st_size, status.st_mtime)


def _make_room(folder: Path, limit: int) -> None:
    """Remove the entries that were not used for longest until the others take no more than `limit` bytes."""
    entries = sorted(_entries(folder), key=lambda entry: entry.used)
    total = sum(entry.n_bytes for entry in entries)
    for entry in entries:
        if total <= limit:
            return
        if _remove(entry.path):
            total -= entry.n_bytes


def _remove(path: Path) -> bool:
    """Remove an entry, with what killed processes left of it; whether it is gone."""
    with suppress(OSError):
        remove_old_remains(path)
        path.unlink(missing_ok=True)
        return True
    return False
