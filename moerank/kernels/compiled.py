"""Compiler of the kernels, at their first call or before; numba's cache keeps the machine code on disk.

Four behaviours of that cache do not suit code that several processes share. So here

* functions have random numbers. Machine code is linked by names with these numbers, and each process would count from
  1: code of two processes could have one name for different functions, of which the linker would take the first;
* a folder has a digest of all kernels' sources in its name. numba looks only at the file of a function to see whether
  its code is stale, but the code contains the functions that it calls, too;
* only folders in which nobody else can write are trusted, because the files are pickles. numba uses only folders that
  it can write to itself, but here everybody can use folders that root has filled;
* one process writes at a time. numba names a file by the next free number of an index, which two may read at once.

``signatures.json`` records which kernels are called, and how: "front" by `moerank run digits` and `moerank run shop`,
"pairs" by the first alone, "steps" by the second alone, "others" with other solvers and data. Each entry is the name,
the types of the arguments and the seconds to compile it. They are compiled by several processes side by side before
they are called.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from pickle import UnpicklingError
from shutil import rmtree
from time import sleep
from typing import Any, TypeAlias, TypeVar

import llvmlite
import numba
import numpy as np
from filelock import FileLock
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.registry import CPUDispatcher
from platformdirs import user_cache_path

from moerank.files import is_private

A = TypeVar("A", bound=np.ndarray[Any, Any])
F = TypeVar("F", bound=Callable[..., object])
Entry: TypeAlias = tuple[str, str, float]

HERE = Path(__file__).resolve().parent
_SOURCES = b"".join(path.read_bytes() for path in sorted(HERE.glob("*.py")))
STAMP = blake2b(
    f"{numba.__version__} {llvmlite.__version__} ".encode() + _SOURCES, digest_size=6
).hexdigest()

GROUPS = ("front", "pairs", "steps", "others")
RECORDED = HERE / "signatures.json"

# Seconds between two looks at the progress.
REFRESH = 0.1

# Errors of a file that a power cut has shortened.
DAMAGED = (EOFError, UnpicklingError)


def _number_functions_anew() -> None:
    start = int.from_bytes(os.urandom(6), "little")
    FunctionIdentity._unique_ids = itertools.count(
        10**15 + start
    )  # all numbers have as many digits


_number_functions_anew()
os.register_at_fork(after_in_child=_number_functions_anew)


def kernel(function: F) -> F:
    """Compile `function` with numba when it is called, without the interpreter lock, and keep the code on disk."""
    dispatcher = numba.njit(nogil=True, no_cfunc_wrapper=True)(
        function
    )  # wrappers for C would take a tenth longer
    dispatcher.__class__ = Kernel
    dispatcher._cache = KernelCache(function)
    return dispatcher


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A compiled function that Ctrl-C ends with KeyboardInterrupt, which numba turns into a SystemError."""

    def __call__(self, *arguments: object) -> Any:
        """Call the compiled function."""
        try:
            return super().__call__(*arguments)
        except SystemError as error:
            cause: BaseException | None = error
            while isinstance(cause, SystemError):
                cause = cause.__cause__
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise


class KernelCache(NullCache):  # type: ignore[misc]
    """numba's caches of a kernel in several folders: code is loaded from any, and saved in the first writable one."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._caches = [_cache_in(folder)(function) for folder in _folders()]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code of a signature; None if it is not on disk."""
        for each in self._caches:
            with suppress(OSError, *DAMAGED):
                if (code := each.load_overload(sig, target_context)) is not None:
                    return code
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled code of a signature, if possible."""
        for each in self._caches:
            with suppress(OSError), FileLock(Path(each.cache_path, "lock"), mode=0o644):
                try:
                    each.save_overload(sig, data)
                except DAMAGED:
                    each.flush()
                return


class _Folder:
    """Tells numba where to keep code, and the stamp by which code is stale."""

    def __init__(self, path: Path) -> None:
        self.get_cache_path = path.__str__
        self.get_source_stamp = STAMP.__str__
        self.get_disambiguator = "".__str__
        self.ensure_cache_path = bool  # numba would ask whether it can write

    def from_function(self, *function: object) -> _Folder:
        """Return this folder for every function."""
        return self


@cache
def _cache_in(folder: Path) -> type:
    """Return the class of numba's caches in a folder."""
    own = {
        "_locator_classes": [_Folder(folder)],
        "check_cachable": lambda self, code: not code.library.has_dynamic_globals,
    }
    files = type("Files", (CompileResultCacheImpl,), own)
    return type("Cache", (FunctionCache,), {"_impl_class": files})


@cache
def _folders() -> list[Path]:
    """Return the folders in which nobody else can write, up to the first in which this process can.

    One is below ``NUMBA_CACHE_DIR``, one beside the sources, one in the user's cache, and one for temporary files.
    """
    name = f"kernels-{blake2b(str(HERE).encode(), digest_size=8).hexdigest()}"
    chosen = [Path(numba.config.CACHE_DIR)] if numba.config.CACHE_DIR else []
    # Windows has no user ids, but a folder for temporary files for each user.
    temporary = Path(tempfile.gettempdir(), f"moerank-{getattr(os, 'geteuid', int)()}")
    private: list[Path] = []
    for parent in (*chosen, HERE / "__pycache__", user_cache_path("moerank"), temporary):
        folder = parent.absolute() / f"{name}-{STAMP}"
        with suppress(OSError):
            if not folder.exists():
                folder.mkdir(parents=True)
                for stale in set(folder.parent.glob(f"{name}-*")) - {folder}:
                    rmtree(stale, ignore_errors=True)
            if is_private(folder):
                private.append(folder)
                if os.access(folder, os.W_OK):
                    return private
    print(
        "moerank: compiled kernels are not kept, so each start takes up to a minute; "
        "set NUMBA_CACHE_DIR to a folder that only you can write to",
        file=sys.stderr,
    )
    return private


def read_only(array: A) -> A:
    """Return a view for reading alone: kernels would be compiled for arrays of both kinds."""
    view = array.view()
    view.flags.writeable = False
    return view


def is_on_disk(function: Callable[..., object], types: object = None) -> bool:
    """Whether machine code of a kernel for some types of arguments is on disk; without `types`, for any."""
    for each in function._cache._caches:  # type: ignore[attr-defined]
        with suppress(OSError, *DAMAGED):
            if any(types in (None, key[0]) for key in each._cache_file._load_index()):
                return True
    return False


def compile_ahead(
    groups: Iterable[str],
    n_processes: int,
    progress: Callable[[], AbstractContextManager[Callable[[float], object]]] = lambda: nullcontext(
        float
    ),
) -> None:
    """Compile the kernels of some of `GROUPS` that are not on disk, the slowest one first.

    `progress` returns a context manager, which is entered only if there is work; its value is called with the finished
    share.
    """
    entries = missing(groups)
    if not entries:
        return
    from loky import ProcessPoolExecutor

    pool = ProcessPoolExecutor(n_processes, initializer=end_with, initargs=(os.getpid(),))
    try:
        costs = {}
        with suppress(
            OSError, BrokenExecutor
        ):  # no process can be started: each kernel is compiled when it is called
            costs = {
                pool.submit(_compile, name, types): seconds for name, types, seconds in entries
            }
        with progress() as report:
            left = set(costs)
            while left:
                left = wait(left, REFRESH).not_done
                report(
                    sum(seconds for future, seconds in costs.items() if future not in left)
                    / sum(costs.values())
                )
    finally:
        with suppress(OSError):
            pool.shutdown(kill_workers=True)


def missing(groups: Iterable[str]) -> list[Entry]:
    """Return the entries of some groups whose kernels are not on disk, the slowest first."""
    recorded = json.loads(RECORDED.read_text())
    entries = (entry for group in groups for entry in recorded[group])
    left = [entry for entry in entries if not is_on_disk(_kernel(entry[0]), _types(entry[1]))]
    return sorted(left, key=lambda entry: -entry[2])


def end_with(parent: int) -> None:
    """End this process when its parent ends, even if the parent was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _compile(name: str, types: str) -> None:
    _kernel(name).compile(_types(types))


def _types(text: str) -> object:
    return eval(text, dict(vars(numba.types)))  # of our own file


def _kernel(name: str) -> Any:
    module, _, function = name.partition(".")
    return getattr(import_module(f"moerank.kernels.{module}"), function)
