"""Threads that share work, and linear algebra on one thread: reproducible, and on small matrices faster."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from threading import Lock, get_ident
from typing import Any, TypeVar

from threadpoolctl import LibController, ThreadpoolController

from moerank.arrays import Array
from moerank.checks import cap_workers

Piece = TypeVar("Piece")
Returned = TypeVar("Returned")

# Individuals in a vector of the kernels: all pieces of a batch except the last have a multiple of it.
VECTOR = 16


def in_pieces(
    work: Callable[[Any], Returned],
    rows: Sequence[Any] | Array,
    workers: int,
    multiple: int = VECTOR,
) -> list[Returned]:
    """Cut rows into a piece for each worker, and return the result of `work` for each piece, in order."""
    n_pieces = max(1, min(workers, len(rows) // multiple))
    n_multiples = -(-len(rows) // multiple)
    ends = [multiple * (n_multiples * piece // n_pieces) for piece in range(n_pieces + 1)]
    return in_threads(work, [rows[begin:end] for begin, end in pairwise(ends)])


def in_threads(work: Callable[[Piece], Returned], pieces: Sequence[Piece]) -> list[Returned]:
    """Return the result of `work` for each piece, in order; each piece but the first has a thread of its own.

    The calling thread takes the first piece, then those that no thread has begun, so that the work on a piece may use
    this function, too. Threads are reused, because a system may leave a new one on the processor of its parent for
    longer than a batch takes.
    """
    waiting = [_pool().submit(work, piece) for piece in pieces[1:]]
    try:
        results = [work(piece) for piece in pieces[:1]]
        for piece, future in zip(pieces[1:], waiting, strict=True):
            results.append(work(piece) if future.cancel() else future.result())
        return results
    finally:
        for future in waiting:
            future.cancel()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cap_workers(10**9), "moerank")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Return a context in which products by a linear algebra library run on one thread.

    With more, the last bits of a product depend on how many threads there are, and on a busy machine a product of a
    millisecond takes two hundred.

    Most libraries have one limit for the whole process. So contexts are counted, over all threads: the first to be
    entered sets the limit, and the last to be left restores the earlier one.
    """
    thread = get_ident()
    with _LIMITS.lock:
        _LIMITS.n_inside[thread] += 1
        for library in _libraries(len(sys.modules)):
            key = library.filepath, thread if _is_per_thread(library) else None
            _LIMITS.before.setdefault(key, (library, library.num_threads))
            _set_threads(library, 1)
    try:
        yield
    finally:
        with _LIMITS.lock:
            _LIMITS.n_inside[thread] -= 1
            is_left = {thread: _LIMITS.n_inside[thread] == 0, None: _LIMITS.n_inside.total() == 0}
            for key in [key for key in _LIMITS.before if is_left.get(key[1])]:
                _set_threads(*_LIMITS.before.pop(key))


class _Limits:
    """The contexts that each thread is in, and the earlier limits of libraries, by thread if they are limits of one."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.n_inside: Counter[int] = Counter()
        self.before: dict[tuple[str, int | None], tuple[LibController, int]] = {}


_LIMITS = _Limits()


@cache
def _libraries(n_modules: int) -> list[LibController]:
    """Return the linear algebra libraries; this takes milliseconds, so it is done again only after an import."""
    return ThreadpoolController().select(user_api="blas").lib_controllers  # type: ignore[no-any-return]


def _is_per_thread(library: LibController) -> bool:
    """Whether the limit of a library holds only in the thread that sets it."""
    return library.internal_api == "mkl" or getattr(library, "threading_layer", None) == "openmp"


def _set_threads(library: LibController, n_threads: int) -> None:
    """Set a limit from any thread; threadpoolctl 3.8 ignores all but the one that set it first."""
    if library.num_threads == n_threads:
        return
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(n_threads)
    release(force=True)


def _begin_fork() -> None:
    _pool.cache_clear()  # a fork has none of the threads
    _LIMITS.lock = Lock()
    _LIMITS.n_inside = Counter({get_ident(): _LIMITS.n_inside[get_ident()]})


os.register_at_fork(after_in_child=_begin_fork)
