"""Compiler of the kernels: once on a machine, and again when any kernel has changed."""

from __future__ import annotations

import itertools
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from multiprocessing import current_process
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
from numba import njit
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from moerank.files import is_own, is_private, open_regular, replacing

__all__ = ["is_on_disk", "kernel"]

F = TypeVar("F", bound=Callable[..., object])

HERE = Path(__file__).resolve().parent
_SOURCES = b"".join(path.read_bytes() for path in sorted(HERE.glob("*.py")))
STAMP = blake2b(f"{numba.__version__} {llvmlite.__version__} ".encode() + _SOURCES, digest_size=6).hexdigest()
PYTHON = sys.implementation.cache_tag

LONGEST = 120
"""Characters in the name of a file here, at most; a folder is used only if names of this length fit."""


def _number_functions_anew() -> None:
    """Let numba number the functions that it compiles from a random number on.

    Machine code is linked by names with these numbers. Each process would count from 1, so that code of two processes,
    from the disk, could have one name for different functions. The linker would take the first for both, and results
    would be wrong.
    """
    start = int.from_bytes(os.urandom(6), "little")
    FunctionIdentity._unique_ids = itertools.count(10**15 + start)  # all numbers have as many digits


_number_functions_anew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_number_functions_anew)


def kernel(function: F) -> F:
    """Compile `function` with numba, without the interpreter lock, and keep the machine code on disk.

    numba's own cache looks only at the file of a function to see whether the code is stale, but the code contains the
    functions that it calls, too. So the files here carry a digest of all kernels' sources in their names.

    Raises
    ------
    ImportError
        If numba's compiler is switched off.
    """
    if numba.config.DISABLE_JIT:
        raise ImportError(
            "the kernels of moerank need numba's compiler, which NUMBA_DISABLE_JIT switches off: unset that variable"
        )
    dispatcher = njit(nogil=True, no_cfunc_wrapper=True)(function)  # wrappers for C would take a tenth longer
    dispatcher._cache = _KernelCache(function)
    return dispatcher


def is_on_disk(function: Callable[..., object]) -> bool:
    """Whether machine code of a kernel is on disk and not stale, so that its first call need not compile."""
    return function._cache.is_on_disk()  # type: ignore[attr-defined]


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """The machine code of one kernel on disk: a file for each signature, whose name and check sum cover its key.

    With numba's own index and numbered files, processes that start together can read old code by a new index, and a
    damaged file ends the process inside LLVM. Here a file is read only if its check sum is right; any other is compiled
    and written again. The files are pickles, so only the user may write where they are; see `_folder`.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._py_func = function
        self._kept_in = _folder()
        self._cache_path = str(self._kept_in or "")
        module = function.__module__.rpartition(".")[2]
        self._name = f"{module}.{function.__qualname__}"
        self._base = f"{self._name[:40]}-{STAMP}.{PYTHON}"
        self.enable()

    def is_on_disk(self) -> bool:
        """Whether there is a file of any signature."""
        return self._kept_in is not None and any(self._kept_in.glob(f"{self._base}.*.nbc"))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code of a signature; None if it is not on disk."""
        target_context.refresh()
        key = self._key(sig, target_context.codegen())
        if not self._enabled or self._kept_in is None:
            return None
        with suppress(OSError), open_regular(self._path(key)) as file:
            content = file.read() if is_own(os.fstat(file.fileno())) else b""
            stored = content[_SUM:]
            if content[:_SUM] == _check_sum(key, stored):
                return CompileResult._rebuild(target_context, *pickle.loads(stored))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled code of a signature, if possible."""
        if not self._enabled or self._kept_in is None or data.library.has_dynamic_globals:
            return
        key = self._key(sig, data.codegen)
        stored = dumps(data._reduce())
        with suppress(OSError), replacing(self._path(key)) as file:  # without the file the code works, too
            file.write(_check_sum(key, stored) + stored)

    def _key(self, sig: object, codegen: object) -> bytes:
        return f"{self._name} {self._index_key(sig, codegen)!r}".encode()

    def _path(self, key: bytes) -> Path:
        assert self._kept_in is not None
        return self._kept_in / f"{self._base}.{blake2b(key, digest_size=8).hexdigest()}.nbc"


_SUM = 32


def _check_sum(key: bytes, stored: bytes) -> bytes:
    digest = blake2b(len(key).to_bytes(8) + key, digest_size=_SUM)
    digest.update(stored)
    return digest.digest()


@cache
def _folder() -> Path | None:
    """Return the folder of the compiled kernels, without stale files; None if no folder can be used.

    It is the first that can be made and in which only the user may write, of one below ``NUMBA_CACHE_DIR``, one beside
    the sources, one in the user's cache folder, and one for temporary files. A line on standard error says if the
    kernels are not kept where they should be.
    """
    chosen = numba.config.CACHE_DIR
    name = f"kernels-{blake2b(str(HERE).encode(), digest_size=8).hexdigest()}"
    refused = ""
    if chosen:
        folder = _usable(Path(chosen).absolute() / name)
        refused = f"NUMBA_CACHE_DIR={chosen} cannot be used" if folder is None else ""
    else:
        folder = _beside_sources()
    if folder is None:
        from platformdirs import user_cache_path

        folder = _usable(user_cache_path("moerank") / name)
    if folder is None:
        folder = _usable(Path(tempfile.gettempdir()).absolute() / f"moerank-{getattr(os, 'geteuid', int)()}-{name}")
        refused = refused or "neither the installation nor the user's cache folder can be used"
    if refused:
        where = f"kept in {folder}" if folder else "not kept, so that each start takes up to a minute"
        if sys.stderr is not None and current_process().name == "MainProcess":  # once, not in each worker
            print(
                f"moerank: compiled kernels are {where}: {refused} (it must be writable, by this user alone)",
                file=sys.stderr,
            )
    if folder is not None:
        for path in folder.iterdir():
            if f".{PYTHON}." in path.name and f"-{STAMP}." not in path.name:
                with suppress(OSError):  # another process was faster
                    path.unlink()
    return folder


def _beside_sources() -> Path | None:
    """Return a folder beside the sources if the user owns them, as others could not remove it with the sources."""
    with suppress(OSError):
        return _usable(HERE / "__pycache__" / "kernels") if is_own(HERE.stat()) else None
    return None


def _usable(folder: Path) -> Path | None:
    """Return a folder if it can be made and written to, by this user alone."""
    try:
        if not folder.is_absolute():  # below the home of a user who has none
            return None
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if not is_private(folder):
            return None
        with tempfile.NamedTemporaryFile(dir=folder, prefix="x" * LONGEST):
            return folder
    except OSError:
        return None
