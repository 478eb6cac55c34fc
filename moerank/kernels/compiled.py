"""How the kernels are compiled: once on a machine, and again when any of them has changed."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from numba import njit

__all__ = ["kernel"]

F = TypeVar("F", bound=Callable[..., object])

_SOURCES = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
STAMP = blake2b(_SOURCES, digest_size=16).hexdigest()


def kernel(function: F) -> F:
    """Compile `function` with numba, without the interpreter lock, and keep the machine code on disk.

    numba looks only at the file of a function to see whether its cached code is stale, but the code contains what
    the function calls, too. After a change in one file the kernels of the others would go on computing with the old
    code. So the stamp of a cached kernel is a digest of all kernels' sources.
    """
    dispatcher = njit(nogil=True, cache=True)(function)
    dispatcher._cache._cache_file._source_stamp = STAMP
    return dispatcher
