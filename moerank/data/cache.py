"""A cache of parsed files: the second load of a data set takes milliseconds.

An entry is named by a digest of the bytes of the file, of how they were read and of this format, so a changed file is
never served stale and a copied or touched one is still found. Entries live in the user's cache folder, or where
the environment variable ``MOERANK_CACHE`` says (``MOERANK_CACHE=off``: nowhere), never beside the data; they may be
deleted at any time. What cannot be read is made again, what cannot be written is not kept: a cache never fails a load.
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

__all__ = ["Arrays", "cache_folder", "remembered"]

Arrays = dict[str, NDArray[np.generic]]

_FORMAT = "moerank cache 1"
"""To be changed whenever the same bytes would be read as other arrays."""


def cache_folder() -> Path | None:
    """Return where entries are kept: ``MOERANK_CACHE``, else the user's cache folder; None if it is ``off``."""
    chosen = os.environ.get("MOERANK_CACHE")
    if chosen:
        return None if chosen.lower() == "off" else Path(chosen)
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("moerank"))


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
                np.savez(file, **arrays)  # type: ignore[arg-type]  # the stubs mistake an array for an option
    return arrays


def _read(entry: Path) -> Arrays | None:
    try:
        with np.load(entry, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except Exception:  # a damaged archive raises nearly anything, and the remedy is always the same
        return None
