"""A cache of parsed files: a second load maps the arrays of the first one.

An entry is a folder of ``.npy`` files. Its name is a digest of the file's path, size and times, of the options of the
reader, and of this format. Entries live in the user's cache folder, or in ``MOERANK_CACHE`` (``off`` for none), and may
be deleted at any time. An entry that cannot be read is made again, one that cannot be written is not kept: the cache
never fails a load. Reading an entry runs no code.

All entries together take up to 20 GiB, or the number of GiB in ``MOERANK_CACHE_SIZE``; those unused for longest go
first.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG
from typing import Protocol, Self, TypeVar

import numpy as np

from moerank.arrays import Array
from moerank.checks import gibibytes
from moerank.files import is_own

__all__ = [
    "LARGE",
    "Arrays",
    "CacheEntry",
    "Keepable",
    "cache_entries",
    "cache_folder",
    "cache_limit",
    "clear_cache",
    "remembered",
]

Arrays = dict[str, Array]

FORMAT = "moerank cache 5"
"""Changes whenever the same file would be read as other arrays."""

LIMIT = 20.0
"""GiB that all entries may take, unless the user says otherwise."""

LARGE = 2**26
"""Bytes from which on tables are kept, and arrays are mapped."""

ENTRY = re.compile(r"[0-9a-f]{32}(?:\.(?:arrays|digest|npz))?")
"""Names of entries, and of those of earlier versions."""


@dataclass(frozen=True)
class CacheEntry:
    """An entry of the cache.

    Attributes
    ----------
    path : Path
    n_bytes : int
    used : float
        Time of the last use, in seconds since 1970.
    """

    path: Path
    n_bytes: int
    used: float


class Keepable(Protocol):
    """An object that can be kept as arrays."""

    def as_arrays(self) -> Arrays:
        """Return everything as arrays by name."""

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the object of these arrays; raise any exception if they do not fit together."""


K = TypeVar("K", bound=Keepable)


def cache_folder() -> Path | None:
    """Return ``MOERANK_CACHE``, else the user's cache folder; None if it is off, or the user has no home."""
    chosen = os.environ.get("MOERANK_CACHE")
    if chosen:
        return None if chosen.lower() == "off" else Path(chosen)
    from platformdirs import user_cache_dir

    folder = Path(user_cache_dir("moerank"))
    return folder if folder.is_absolute() else None


def cache_limit() -> int:
    """Return how many bytes all entries may take.

    Raises
    ------
    ValueError
        If ``MOERANK_CACHE_SIZE`` holds no number.
    """
    return gibibytes("MOERANK_CACHE_SIZE", LIMIT)


def cache_entries() -> list[CacheEntry]:
    """Return all entries, the most recently used one last."""
    folder, found = cache_folder(), []
    with suppress(OSError):
        for path in folder.iterdir() if folder else ():
            if ENTRY.fullmatch(path.name) and not path.is_symlink():
                with suppress(OSError):  # another process may remove it
                    parts = [path, *path.iterdir()] if path.is_dir() else [path]
                    n_bytes = sum(part.lstat().st_size for part in parts if part.is_file())
                    found.append(CacheEntry(path, n_bytes, path.stat().st_mtime))
    return sorted(found, key=lambda entry: entry.used)


def clear_cache() -> tuple[int, int]:
    """Remove all entries; return their number and their bytes."""
    entries = cache_entries()
    for entry in entries:
        _remove(entry.path)
    return len(entries), sum(entry.n_bytes for entry in entries)


def remembered(path: Path, reading: str, kind: type[K], make: Callable[[], K]) -> K:
    """Return the result that `make` had when the file was last read this way, or call it and keep the result.

    Parameters
    ----------
    path : Path
        The file that the result depends on. Pipes and devices are not remembered.
    reading : str
        Everything else that it depends on, such as options of the parser.
    kind : type
        The class of the result.
    make : callable
        Makes the result. Its exceptions pass through, and nothing is kept then.

    Raises
    ------
    OSError
        If the file cannot be read.

    Notes
    -----
    A file is known by its path, size and times (of the last change of its content and of its entry in the file
    system). A file that changes while it is read is not remembered.
    """
    folder, state = cache_folder(), _state(path)
    if folder is None or state is None or (folder.exists() and not is_own(folder.stat())):
        return make()
    limit = cache_limit()
    key = blake2b(repr((FORMAT, reading, str(path.resolve()), state)).encode(), digest_size=16).hexdigest()
    entry = folder / key
    with suppress(Exception):  # a damaged entry raises nearly anything, and the remedy is always the same
        result = kind.from_arrays(_load(entry))
        os.utime(entry)
        return result
    result = make()
    arrays = result.as_arrays()
    n_bytes = sum(array.nbytes for array in arrays.values())
    if n_bytes <= limit and _state(path) == state:
        with suppress(OSError):
            _save(entry, arrays)
            _make_room(limit)
    return result


def _state(path: Path) -> tuple[int, ...] | None:
    """Return the numbers that tell two states of a regular file apart; None for a pipe or a device."""
    status = path.stat()
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns) if S_ISREG(status.st_mode) else None


def _save(entry: Path, arrays: Arrays) -> None:
    """Write an entry under another name, and rename it when it is complete."""
    temporary = entry.with_name(f"{entry.name}-{secrets.token_hex(4)}")
    temporary.mkdir(parents=True)
    try:
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        _remove(entry)
        temporary.rename(entry)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _load(entry: Path) -> Arrays:
    """Return the arrays of an entry; large ones are mapped, and nobody can write to them."""
    arrays = {}
    for path in entry.iterdir():
        if path.stat().st_size >= LARGE:
            arrays[path.stem] = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            arrays[path.stem] = np.array(np.load(path, allow_pickle=False))  # that owns its memory
    return arrays


def _make_room(limit: int) -> None:
    """Remove the entries that were unused for longest until the others take no more than `limit` bytes."""
    entries = cache_entries()
    total = sum(entry.n_bytes for entry in entries)
    for entry in entries:
        if total <= limit:
            return
        _remove(entry.path)
        total -= entry.n_bytes


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
