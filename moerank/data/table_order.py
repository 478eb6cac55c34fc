"""How tables of features lie in memory: small ones by rows, large ones by columns, as kernels read them.

What trains and scores goes through the documents of a feature. A small table is copied into columns at no cost; of a
large one there should be no second copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["empty_table", "lies_by_columns", "rows_of_piece"]

BY_COLUMNS = 2**26
"""Bytes of a table that is read from a file from which on it lies by columns."""

PIECE = 2**21
"""Bytes of rows that are taken to columns at a time: they are still in the processor's cache."""


def lies_by_columns(n_bytes: int) -> bool:
    """Whether a table of so many bytes lies by columns."""
    return n_bytes >= BY_COLUMNS


def empty_table(n_documents: int, n_features: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return a table (n_documents, n_features) whose values are yet to be written, in the order for its size."""
    n_bytes = n_documents * n_features * np.dtype(dtype).itemsize
    return np.empty((n_documents, n_features), dtype, order="F" if lies_by_columns(n_bytes) else "C")


def rows_of_piece(row_bytes: int, *, first: bool) -> int:
    """Return how many rows are read before they are taken to columns; the first ones tell a large table."""
    return max(1, (BY_COLUMNS if first else PIECE) // max(1, row_bytes))
