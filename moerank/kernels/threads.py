"""Threads that share work. Those of a batch are kept.

A system may leave a new thread on the processor of its parent for some milliseconds, longer than a batch takes.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

from moerank.arrays import Array
from moerank.checks import most_workers

Piece = TypeVar("Piece")
Returned = TypeVar("Returned")

VECTOR = 16
"""Individuals that a vector of the kernels holds: a piece of a batch has a multiple of it, but for the last one."""


def in_pieces(
    work: Callable[[Any], Returned], rows: Sequence[Any] | Array, workers: int, multiple: int = VECTOR
) -> list[Returned]:
    """Cut rows into a piece for each worker, and return the result of `work` for each piece, in order."""
    n_pieces = max(1, min(workers, len(rows) // multiple))
    n_multiples = -(-len(rows) // multiple)
    ends = [multiple * (n_multiples * piece // n_pieces) for piece in range(n_pieces + 1)]
    return in_threads(work, [rows[begin:end] for begin, end in pairwise(ends)])


def in_threads(work: Callable[[Piece], Returned], pieces: Sequence[Piece]) -> list[Returned]:
    """Return the result of `work` for each piece, in order; each piece but the first has a thread of its own.

    The calling thread takes the first piece, then those that no thread has begun: so pieces may have pieces themselves.
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


@contextmanager
def new_threads(n: int) -> Iterator[ThreadPoolExecutor]:
    """Return a pool that waits for its threads at the end, but not after an exception such as Ctrl-C."""
    pool = ThreadPoolExecutor(n)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(most_workers(10**9), "moerank")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a fork has none of the threads
