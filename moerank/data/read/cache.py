"""Cache of files that were read: a second load takes the arrays from the disk instead of parsing the text.

An entry is a folder with one NumPy file for each array. It is keyed by the path, the size and the times of the file
that was read, and by the settings, so a file that changed is read anew. Entries lie in the user's cache folder, or in
the folder that the environment variable ``MOERANK_CACHE`` names (``off``: nowhere). A folder in which another user may
write is not used, with a warning. Entries may be removed at any time. An entry that cannot be read is made again, and
an entry that cannot be written is not kept: the cache never makes a load fail, and no code is run by opening an entry.

All entries together take up to 20 GiB, or as many as the environment variable ``MOERANK_CACHE_SIZE`` says. The entries
that were not used for longest are removed first.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple

import numpy as np

from moerank.arrays import Array, Integers, Vector
from moerank.checks import gibibytes
from moerank.data.inputs import LaterIds
from moerank.data.ranking_data import RankingData
from moerank.data.scaling import MissingRule
from moerank.files import is_private

FORMAT = 6
"""Raised whenever the same file would be read as other arrays."""

LIMIT = 20.0
"""GiB that all entries may take, unless the user says otherwise."""

SETTLED = 2.0
"""Seconds after a change until the times of a file tell the next change: file systems round times."""

_NAME = re.compile(r"\.?[0-9a-f]{32}\.arrays(?:\.[0-9a-f]{16}\.tmp)?")
"""Names of entries, and of entries under way."""


@dataclass(frozen=True, eq=False)
class Table:
    """The documents of a file, as `RankingData` takes them; NaN is a missing value."""

    X: Array
    y: Integers
    qid: Array
    feature_names: tuple[str, ...] | None = None
    documents: Array | LaterIds | None = None
    query_weights: Vector | None = None
    document_weights: Vector | None = None

    def as_data(self, name: str, missing: MissingRule | None) -> RankingData:
        """Return the documents as ranking data without a copy of the features."""
        self.X.setflags(write=False)
        return RankingData(**vars(self), name=name, missing=missing)


class CacheEntry(NamedTuple):
    """An entry of the cache, with the time of its last use in seconds since 1970."""

    path: Path
    n_bytes: int
    used: float


def cache_folder() -> Path | None:
    """Return the folder of the entries; None if ``MOERANK_CACHE`` is ``off`` or the user has no home folder."""
    chosen = os.environ.get("MOERANK_CACHE")
    if chosen:
        return None if chosen.lower() == "off" else Path(chosen)
    from platformdirs import user_cache_dir

    folder = Path(user_cache_dir("moerank"))
    return folder if folder.is_absolute() else None  # without a home it is a folder called ~


def cache_limit() -> int:
    """Return how many bytes all entries may take: `LIMIT` GiB, or as many as ``MOERANK_CACHE_SIZE`` says."""
    return gibibytes("MOERANK_CACHE_SIZE", LIMIT)


def cache_entries() -> list[CacheEntry]:
    """Return all entries in the order of their last use."""
    folder = cache_folder()
    return _entries(folder) if folder else []


def clear_cache() -> tuple[int, int]:
    """Remove all entries; return how many there were, and their bytes."""
    removed = [entry for entry in cache_entries() if _remove(entry.path)]
    return len(removed), sum(entry.n_bytes for entry in removed)


def remembered(path: Path, reading: str, read: Callable[[], Table]) -> Table:
    """Return the table that `read` makes of a file from the cache, or call `read` and keep what it returns.

    `reading` tells everything else that the table depends on, such as options of the reader. A pipe, and a file that
    was changed within the last seconds or changes while it is read, is not remembered.
    """
    folder, before = cache_folder(), path.stat()
    limit = cache_limit()
    settled = S_ISREG(before.st_mode) and abs(time.time() - before.st_ctime) >= SETTLED
    if folder is None or not settled or not _is_safe(folder):
        return read()
    key = json.dumps([FORMAT, str(path.resolve()), *_state(before), reading])
    entry = folder / f"{blake2b(key.encode(), digest_size=16).hexdigest()}.arrays"
    with suppress(Exception):  # a damaged entry raises nearly anything, and the remedy is always the same
        table = _loaded(entry, key)
        with suppress(OSError):
            os.utime(entry)
        return table
    table = read()
    names = np.frombuffer(json.dumps(table.feature_names).encode(), np.uint8)
    arrays = {name: array for name, array in vars(table).items() if array is not None} | {"feature_names": names}
    n_bytes = sum(array.nbytes for array in arrays.values())
    if _state(path.stat()) == _state(before) and n_bytes <= limit:
        with suppress(OSError):
            _make_room(folder, limit - n_bytes)
            _store(entry, key, arrays)
            _make_room(folder, limit)  # for the other files of the entry, and entries of other processes
    return table


def _is_safe(folder: Path) -> bool:
    """Whether the folder is there, made if need be, and only this user and root may write in it."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_private(folder.resolve()):
            return True
        warnings.warn(
            f"the cache is not used: another user may write in {folder}. Let it belong to you, and withdraw the "
            f"permission with chmod go-w {shlex.quote(str(folder))}",
            stacklevel=3,
        )
    return False


def _loaded(entry: Path, key: str) -> Table:
    """Return the table of an entry, the features mapped; refuse another key, and arrays that do not fit together."""
    if (entry / "key.json").read_text(encoding="utf-8") != key:
        raise ValueError
    arrays = {
        path.stem: np.load(path, mmap_mode="r" if path.stem == "X" else None, allow_pickle=False)
        for path in entry.glob("*.npy")
    }
    names = json.loads(arrays.pop("feature_names").tobytes())
    X, qid = arrays["X"], arrays["qid"]
    kinds = X.dtype in (np.float64, np.float32) and arrays["y"].dtype == np.int64 and qid.dtype.kind in "iU"
    sizes = {name: X.shape[:1] for name in arrays if name != "X"}
    if "query_weights" in arrays:
        sizes["query_weights"] = (1 + np.count_nonzero(qid[1:] != qid[:-1]),)
    fits = all(arrays[name].shape == size and arrays[name].dtype.isnative for name, size in sizes.items())
    if not kinds or X.ndim != 2 or not fits or (names is not None and len(names) != X.shape[1]):
        raise ValueError
    return Table(**arrays, feature_names=None if names is None else tuple(names))


def _store(entry: Path, key: str, arrays: dict[str, Array]) -> None:
    """Write an entry that is there as a whole or not at all."""
    under_way = entry.with_name(f".{entry.name}.{secrets.token_hex(8)}.tmp")
    under_way.mkdir(mode=0o700)
    try:
        (under_way / "key.json").write_text(key, encoding="utf-8")
        for name, array in arrays.items():
            with (under_way / f"{name}.npy").open("xb") as file:
                np.save(file, array, allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
        _remove(entry)  # if it is damaged
        under_way.rename(entry)
    finally:
        shutil.rmtree(under_way, ignore_errors=True)


def _state(status: os.stat_result) -> tuple[int, ...]:
    """Return the numbers that differ between two states of a file."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _entries(folder: Path) -> list[CacheEntry]:
    """Return the entries of a folder, which may hold other files, too, in the order of their last use."""
    found = []
    with suppress(OSError):
        for path in folder.iterdir():
            if _NAME.fullmatch(path.name):
                with suppress(OSError):  # another process was faster
                    status = path.lstat()
                    files = path.iterdir() if S_ISDIR(status.st_mode) else [path]
                    found.append(CacheEntry(path, sum(file.lstat().st_size for file in files), status.st_mtime))
    return sorted(found, key=attrgetter("used"))


def _make_room(folder: Path, limit: int) -> None:
    """Remove the entries that were not used for longest until the others take no more than `limit` bytes."""
    entries = _entries(folder)
    total = sum(entry.n_bytes for entry in entries)
    for entry in entries:
        if total > limit and _remove(entry.path):
            total -= entry.n_bytes


def _remove(path: Path) -> bool:
    """Remove an entry; return whether it is gone."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        return True
    return False
