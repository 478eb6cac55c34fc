"""Blocks of whole queries, and the order of large tables in memory."""

from __future__ import annotations

from collections.abc import Iterator

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
