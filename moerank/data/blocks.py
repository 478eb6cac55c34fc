"""Runs of whole queries, for what goes through all documents without a copy of all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROWS", "blocks"]

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
