"""Blocks of whole queries, and sums over blocks in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from moerank.arrays import Array, Integers

ROWS = 1 << 14
"""Default number of documents in a block."""


def blocks(offsets: Integers, rows: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last query (exclusive) of runs of at most `rows` documents, or of one query."""
    begin = 0
    while begin < len(offsets) - 1:
        end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + rows, side="right")) - 1)
        yield begin, end
        begin = end


def column_block(X: Array, begin: int, end: int) -> tuple[Array, int, int]:
    """Return ``flat, stride, first``: feature f of row ``begin + i`` of X is ``flat[f · stride + first + i]``."""
    by_columns = bool(X.flags.f_contiguous)
    flat = X.T.reshape(-1) if by_columns else np.ascontiguousarray(X[begin:end].T).reshape(-1)
    flat.setflags(write=False)  # kernels are compiled once, whether or not X can be written to
    return (flat, len(X), begin) if by_columns else (flat, end - begin, 0)


BY_COLUMNS = 2**26
"""Bytes from which on a table lies in memory by columns, as kernels read it; a small one is copied when they do."""


def empty_table(n_documents: int, n_features: int, dtype: DTypeLike) -> Array:
    """Return a table (n_documents, n_features) without values, in the order in memory that suits its size."""
    n_bytes = n_documents * n_features * np.dtype(dtype).itemsize
    return np.empty((n_documents, n_features), dtype, order="F" if n_bytes >= BY_COLUMNS else "C")


T = TypeVar("T")

Run: TypeAlias = tuple[int, int]
"""Neighbouring shards: the first, and the one after the last."""


@dataclass(frozen=True, eq=False)
class ByQuery:
    """An array with a value for each query along its last axis."""

    values: Array


class ByDocument(ByQuery):
    """An array with a value for each document along its last axis."""


def shares(argument: object, queries: Integers, documents: Integers) -> Sequence[object]:
    """Return the value of an argument for each shard: its part of a `ByQuery` or `ByDocument`, all of anything else."""
    if not isinstance(argument, ByQuery):
        return [argument] * (len(queries) - 1)
    ends = documents if isinstance(argument, ByDocument) else queries
    if argument.values.shape[-1] != ends[-1]:
        raise ValueError(f"{argument.values.shape[-1]} values are not one for each of {ends[-1]}")
    return np.split(argument.values, ends[1:-1], axis=-1)


def runs_of(shards: Iterable[int], n_shards: int) -> list[Run]:
    """Return the fewest runs of these shards that `add_up` adds up by themselves, in order."""
    there = set(shards)

    def inside(begin: int, end: int) -> list[Run]:
        if there.issuperset(range(begin, end)):
            return [(begin, end)]
        if there.isdisjoint(range(begin, end)):
            return []
        middle = (begin + end) // 2
        return inside(begin, middle) + inside(middle, end)

    return inside(0, n_shards)


def add_up(run: Run, part: Callable[[int], T], known: Mapping[Run, T] | None = None) -> T:
    """Return the sum of ``part(i)`` over a run: arrays, numbers, or tuples of these; `known` has sums of other runs."""
    if known is not None and run in known:
        return known[run]
    begin, end = run
    if end - begin == 1:
        return part(begin)
    middle = (begin + end) // 2
    return _sum(add_up((begin, middle), part, known), add_up((middle, end), part, known))


def _sum(left: Any, right: Any) -> Any:
    if isinstance(left, tuple):
        return tuple(_sum(one, other) for one, other in zip(left, right, strict=True))
    return left + right
