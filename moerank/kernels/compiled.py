"""How the kernels are compiled: once on a machine, and again when any of them has changed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import IndexDataCacheFile

__all__ = ["is_on_disk", "kernel"]

F = TypeVar("F", bound=Callable[..., object])

_SOURCES = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
STAMP = blake2b(_SOURCES, digest_size=6).hexdigest()


def kernel(function: F) -> F:
    """Compile `function` with numba, without the interpreter lock, and keep the machine code on disk.

    numba looks only at the file of a function to see whether its cached code is stale, but the code contains what
    the function calls, too. After a change in one file the kernels of the others would go on computing with the old
    code. So the files of a cached kernel carry a digest of all kernels' sources in their names.
    """
    dispatcher = njit(nogil=True, cache=True)(function)
    cache = dispatcher._cache
    cache._cache_file = _KernelFiles(Path(cache._cache_path), cache._impl.filename_base)
    return dispatcher


def is_on_disk(function: Callable[..., object]) -> bool:
    """Whether machine code of a kernel is on disk and not stale, so that its first call need not compile."""
    return bool(function._cache._cache_file._load_index())  # type: ignore[attr-defined]


class _KernelFiles(IndexDataCacheFile):  # type: ignore[misc]
    """The files of one kernel: machine code for each signature, and an index of them.

    numba numbers the code files and writes the index first. Processes that start together can then read old code by
    a new index, or write the code of two signatures to one file. Here every signature has a name of its own, and
    the index speaks of what is written already; at worst an entry is lost and compiled once more.
    """

    def __init__(self, folder: Path, base: str) -> None:
        self._base = f"{base}-{STAMP}"
        super().__init__(cache_path=str(folder), filename_base=self._base, source_stamp=STAMP)
        name, _, rest = base.rpartition("-")  # the rest is the line of the function and the version of Python
        for path in folder.glob(f"{name}-*.{rest.partition('.')[2]}*.nb[ci]"):
            if not path.name.startswith(self._base):
                with suppress(OSError):  # another process was faster, or the folder is read-only
                    path.unlink()

    def save(self, key: Any, data: Any) -> None:
        """Write the code of a signature, then mention it in the index."""
        name = f"{self._base}.{blake2b(repr(key).encode(), digest_size=8).hexdigest()}.nbc"
        self._save_data(name, data)
        self._save_index(self._load_index() | {key: name})
