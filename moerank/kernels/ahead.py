"""Kernels compiled before they are called, by several processes side by side.

``signatures.json`` records which kernels runs call, and how: "front" up to the verdict, "baselines" after it, "others"
with other solvers and data. Each entry is the name, the types of the arguments and the seconds to compile it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import TypeAlias

import numba
from numba.core.dispatcher import Dispatcher

from moerank.kernels.compiled import is_on_disk

Entry: TypeAlias = tuple[str, str, float]

GROUPS = ("front", "baselines", "others")

RECORDED = Path(__file__).with_name("signatures.json")

REFRESH = 0.1
"""Seconds between two looks at the progress."""


@contextmanager
def compiled_ahead(
    groups: Iterable[str],
    later: Iterable[str],
    n_processes: int,
    progress: Callable[[], AbstractContextManager[Callable[[float], object]]] = lambda: nullcontext(float),
) -> Iterator[None]:
    """Compile the kernels of `groups` that are not on disk; inside the context those of `later` are compiled, too.

    Both are some of `GROUPS`. `progress` returns a context manager, which is entered only if there is work on `groups`;
    what it gives is called with the share that is done. The slowest kernel begins first. A kernel that is called while
    another process compiles it waits for that process.
    """
    first, second = missing(groups), missing(later)
    if not first and not second:
        yield
        return
    from loky import ProcessPoolExecutor

    pool = ProcessPoolExecutor(n_processes, initializer=end_with, initargs=(os.getpid(),))
    try:
        costs = {pool.submit(_compile, name, types): seconds for name, types, seconds in first}
        waiting = {pool.submit(_compile, name, types): name for name, types, _ in second}
        with progress() if costs else nullcontext(float) as report:
            left = set(costs)
            while left:
                left = wait(left, REFRESH).not_done
                report(sum(seconds for future, seconds in costs.items() if future not in left) / sum(costs.values()))
        for future, name in waiting.items():
            _kernel(name)._cache.under_way.append(  # type: ignore[attr-defined]
                partial(wait, [future])
            )
        yield
    finally:
        pool.shutdown(kill_workers=True)


def missing(groups: Iterable[str]) -> list[Entry]:
    """Return the entries of some groups whose kernels are not on disk."""
    recorded = json.loads(RECORDED.read_text())
    return [entry for group in groups for entry in recorded[group] if not is_on_disk(_kernel(entry[0]))]


def end_with(parent: int) -> None:
    """End this process when its parent ends, even if the parent was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _compile(name: str, types: str) -> None:
    _kernel(name).compile(eval(types, dict(vars(numba.types))))  # of our own file


def _kernel(name: str) -> Dispatcher:
    module, _, function = name.partition(".")
    return getattr(import_module(f"moerank.kernels.{module}"), function)
