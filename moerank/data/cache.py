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

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG
from typing import Protocol, Self, TypeVar

from moerank.checks import gibibytes
from moerank.data.cache_entry import Arrays, read_arrays, write_arrays
from moerank.files import remove_old_remains, replacing
from moerank.systems import open_regular

__all__ = [
    "LARGE",
    "CacheEntry",
    "Keepable",
    "cache_entries",
    "cache_folder",
    "cache_limit",
    "clear_cache",
    "remembered",
]

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
