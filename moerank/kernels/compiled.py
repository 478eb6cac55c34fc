"""Compiler of the kernels, at their first call or before; numba's cache files keep the machine code on disk.

Several processes share this code. So here

* the functions in a kernel have random numbers. numba counts them from 1 in each process, and links machine code by
  names with these numbers: code of two processes could have one name for different functions, of which the linker would
  take the first;
* the name of a folder contains a digest of the sources of all kernels. The code of a kernel contains the functions that
  it calls, so it is stale when any of them changes;
* code is loaded only from folders in which nobody else can write, because the files are pickles. Everybody can use a
  folder that root has filled;
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
from concurrent.futures import BrokenExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
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
from numba.core.caching import IndexDataCacheFile, NullCache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.sigutils import normalize_signature
from platformdirs import user_cache_path

from moerank.files import is_private

A = TypeVar("A", bound=np.ndarray[Any, Any])
F = TypeVar("F", bound=Callable[..., object])
Entry: TypeAlias = tuple[str, str, float]

HERE = Path(__file__).resolve().parent
_SOURCES = b"".join(path.read_bytes() for path in sorted(HERE.glob("*.py")))
_VERSIONS = f"{numba.__version__} {llvmlite.__version__} ".encode()
STAMP = blake2b(_VERSIONS + _SOURCES, digest_size=6).hexdigest()

GROUPS = ("front", "pairs", "steps", "others")
RECORDED = HERE / "signatures.json"

# Errors of a file that a power cut has shortened.
DAMAGED = (EOFError, UnpicklingError)


def kernel(function: F) -> F:
    """Compile `function` with numba when it is called, without the interpreter lock, and keep the code on disk."""
    # Wrappers for C would take a tenth longer.
    options = {"nopython": True, "nogil": True, "no_cfunc_wrapper": True, "boundscheck": None}
    dispatcher: Any = Kernel(function, targetoptions=options)
    dispatcher._cache = KernelCache(function)
    return dispatcher  # type: ignore[no-any-return]


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

    def compile(self, sig: Any) -> Any:
        """Load or compile the code for the types of a call; its functions have random numbers of equal length."""
        with global_compiler_lock:
            numbers = FunctionIdentity._unique_ids
            start = 10**20 + int.from_bytes(os.urandom(8), "little")
            FunctionIdentity._unique_ids = itertools.count(start)
            try:
                return super().compile(sig)
            finally:
                FunctionIdentity._unique_ids = numbers


class KernelCache(NullCache):  # type: ignore[misc]
    """numba's files for the code of a kernel, in each of our folders; the last one is written."""

    def __init__(self, function: Callable[..., object]) -> None:
        name = f"{Path(function.__code__.co_filename).stem}.{function.__qualname__}"
        self.files = [IndexDataCacheFile(str(folder), name, STAMP) for folder in _folders()]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for the types of a call; None if it is not on disk."""
        target_context.refresh()
        for files in self.files:
            with suppress(OSError, *DAMAGED):
                code = files.load((sig, target_context.codegen().magic_tuple()))
                if code is not None:
                    return CompileResult._rebuild(target_context, *code)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store the compiled code for the types of a call, if possible."""
        if not self.files or data.library.has_dynamic_globals:
            return
        with suppress(OSError), FileLock(_folders()[-1] / "lock", mode=0o644):
            try:
                self.files[-1].save((sig, data.codegen.magic_tuple()), data._reduce())
            except DAMAGED:
                self.files[-1].flush()


@cache
def _folders() -> list[Path]:
    """Return the folders in which nobody else can write, up to the first in which this process can.

    One is below ``NUMBA_CACHE_DIR``, one beside the sources, one in the user's cache, and one for temporary files.
    """
    installation = blake2b(f"{HERE} {sys.version}".encode(), digest_size=8).hexdigest()
    name = f"kernels-{installation}"
    parents = [HERE / "__pycache__"]
    with suppress(RuntimeError):  # of a user without a home
        parents.append(user_cache_path("moerank"))
    with suppress(OSError):  # of a system without a folder for temporary files
        # Windows has no user ids, but such a folder for each user.
        user = getattr(os, "geteuid", int)()
        parents.append(Path(tempfile.gettempdir(), f"moerank-{user}"))
    if numba.config.CACHE_DIR:
        parents.insert(0, Path(numba.config.CACHE_DIR))
    private: list[Path] = []
    for parent in parents:
        folder = parent.absolute() / f"{name}-{STAMP}"
        with suppress(OSError):
            if not folder.exists():
                folder.mkdir(parents=True)
                for stale in set(parent.glob(f"{name}-*")) - {folder}:
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
    """Return a read-only view: kernels would be compiled for writable arrays as well."""
    view = array.view()
    view.flags.writeable = False
    return view


def is_on_disk(function: Callable[..., object], types: object = None) -> bool:
    """Return whether code of a kernel for this processor and the types of a call is on disk; for any if None."""
    processor = cpu_target.target_context.codegen().magic_tuple()
    for files in function._cache.files:  # type: ignore[attr-defined]
        with suppress(OSError, *DAMAGED):
            for signature, target in files._load_index():
                if types in (None, signature) and target == processor:
                    return True
    return False


def compile_ahead(
    groups: Iterable[str],
    n_processes: int,
    progress: Callable[[], AbstractContextManager[Callable[[float], object]]] = lambda: nullcontext(
        float
    ),
) -> None:
    """Compile the kernels of some of `GROUPS` that are not on disk, the slowest one first, if they can be kept.

    `progress` returns a context manager, which is entered only if there is work; its value is called with the finished
    share.
    """
    entries = missing(groups)
    if not entries or not any(os.access(folder, os.W_OK) for folder in _folders()):
        return
    from loky import ProcessPoolExecutor

    with progress() as report:
        with suppress(OSError, BrokenExecutor), ExitStack() as stack:
            pool = ProcessPoolExecutor(n_processes, initializer=end_with, initargs=(os.getpid(),))
            stack.callback(pool.shutdown, kill_workers=True)
            costs = {
                pool.submit(_compile, name, types): seconds for name, types, seconds in entries
            }
            for _ in as_completed(costs):
                finished = sum(seconds for future, seconds in costs.items() if future.done())
                report(finished / sum(costs.values()))
        entries = missing(groups)  # where no process can be started
        for number, (name, types, _) in enumerate(entries, start=1):
            _compile(name, types)
            report(number / len(entries))


def missing(groups: Iterable[str]) -> list[Entry]:
    """Return the entries of some groups whose kernels are not on disk, the slowest first."""
    recorded = json.loads(RECORDED.read_text())
    entries = [
        (name, types, seconds)
        for group in groups
        for name, types, seconds in recorded[group]
        if not is_on_disk(_kernel(name), _types(types))
    ]
    return sorted(entries, key=lambda entry: -entry[2])


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
    """Return the types of arguments that numba writes as this text."""
    return normalize_signature(text)[0]


def _kernel(name: str) -> Any:
    module, _, function = name.partition(".")
    return getattr(import_module(f"moerank.kernels.{module}"), function)
