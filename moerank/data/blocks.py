"""Runs of whole queries, for what goes through all documents without a copy of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROWS", "blocks", "column_block"]

ROWS = 1 << 14
"""Documents, about, that are worked on at once, unless something speaks for another number."""


def blocks(offsets: NDArray[np.int64], rows: int) -> Iterator[tuple[int, int]]:
    """Cut the queries into runs of at most `rows` documents, or of one query; yield where each begins and ends.

    Parameters
    ----------
    offsets : ndarray of int64, shape (n_queries + 1,)
        Query q holds the rows ``offsets[q]`` to ``offsets[q + 1]``.
    rows : int

    Examples
    --------
    >>> list(blocks(np.array([0, 2, 4, 8, 9]), 4))
    [(0, 2), (2, 3), (3, 4)]
    """
    begin = 0
    while begin < len(offsets) - 1:
        end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + rows, side="right")) - 1)
        yield begin, end
        begin = end


def column_block(X: NDArray[Any], begin: int, end: int) -> tuple[NDArray[Any], int, int]:
    """Return the features of some rows of X (n_documents, n_features) as kernels that go by column read them.

    Parameters
    ----------
    X : ndarray, shape (n_documents, n_features)
        A copy of the rows is made only if X does not lie in memory by columns.
    begin, end : int
        The rows.

    Returns
    -------
    flat : ndarray, shape (n,)
    stride, first : int
        The value of feature f in row ``begin + i`` is ``flat[f · stride + first + i]``.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> column_block(X, 1, 3)
    (array([3., 5., 4., 6.]), 2, 0)
    >>> column_block(np.asfortranarray(X), 1, 3)
    (array([1., 3., 5., 2., 4., 6.]), 3, 1)
    """
    whole = bool(X.flags.f_contiguous)
    flat = X.T.reshape(-1) if whole else np.ascontiguousarray(X[begin:end].T).reshape(-1)
    flat.setflags(write=False)  # kernels are compiled once, whether or not X can be written to
    return (flat, len(X), begin) if whole else (flat, end - begin, 0)
