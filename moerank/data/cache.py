"""A cache of parsed files: the second load of a data set takes milliseconds.

An entry is named by a digest of the bytes of the file, of how they were read and of this format, so a changed file is
never served stale and a copied or touched one is still found. Entries live in the user's cache folder, or where
the environment variable ``MOERANK_CACHE`` says (``MOERANK_CACHE=off``: nowhere), never beside the data; they may be
deleted at any time. A check sum in each covers its name and its arrays; an entry with another is damaged or that of
other arrays. What cannot be read is made again, what cannot be written is not kept: a cache never fails a load.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from moerank.files import replacing
from moerank.systems import open_regular

__all__ = ["Arrays", "cache_folder", "remembered"]

Arrays = dict[str, NDArray[np.generic]]

_FORMAT = "moerank cache 2"
"""To be changed whenever the same bytes would be read as other arrays."""

_SUM = "check sum"
"""The name of the check sum among the arrays."""


def cache_folder() -> Path | None:
    """Return where entries are kept: ``MOERANK_CACHE``, else the user's cache folder; None if ``off`` or homeless."""
    chosen = os.environ.get("MOERANK_CACHE")
    if chosen:
        return None if chosen.lower() == "off" else Path(chosen)
    from platformdirs import user_cache_dir

    folder = Path(user_cache_dir("moerank"))
    return folder if folder.is_absolute() else None  # of a user without a home it is a folder called ~


def remembered(content: bytes, reading: str, make: Callable[[], Arrays]) -> Arrays:
    """Return what `make` returned when `content` was last read this way, or else call it and keep the arrays.

    Parameters
    ----------
    content : bytes
        The bytes the arrays depend on.
    reading : str
        Everything else they depend on, such as options of the parser.
    make : callable
        Makes the arrays, by name; what it raises passes through, and nothing is kept.
    """
    folder = cache_folder()
    if folder is None:
        return make()
    digest = blake2b(f"{_FORMAT} {reading}\n".encode(), digest_size=16)
    digest.update(content)
    entry = folder / f"{digest.hexdigest()}.npz"
    arrays = _read(entry)
    if arrays is None:
        arrays = make()
        with suppress(OSError):
            entry.parent.mkdir(parents=True, exist_ok=True)
            with replacing(entry) as file:
                np.savez(file, **arrays, **{_SUM: _check_sum(entry.name, arrays)})  # type: ignore[arg-type]  # the stubs mistake an array for an option
    return arrays


def _read(entry: Path) -> Arrays | None:
    try:
        with open_regular(entry) as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
            expected = arrays.pop(_SUM)
            return arrays if np.array_equal(expected, _check_sum(entry.name, arrays)) else None
    except Exception:  # a damaged archive raises nearly anything, and the remedy is always the same
        return None


def _check_sum(entry: str, arrays: Arrays) -> NDArray[np.uint8]:
    """Return a digest of the name of an entry and of the names, types, shapes and bytes of its arrays."""
    digest = blake2b(entry.encode(), digest_size=32)
    for name, array in arrays.items():
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)
