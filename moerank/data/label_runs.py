"""Preference pairs counted, not listed: how many better and worse documents each document has in its query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LabelRuns"]


@dataclass(frozen=True, eq=False)
class LabelRuns:
    """The documents of each query by label. A run is the documents of one label in one query.

    Attributes
    ----------
    run : ndarray of int32, shape (n_documents,)
        The run of each document. Runs count by query, then by label, the least first.
    first : ndarray of int64, shape (n_queries + 1,)
        Query q has the runs ``first[q]`` to ``first[q + 1]``.
    n_worse, n_better : ndarray of int64, shape (n_runs,)
        How many documents of its query are worse and better than each document of a run.
    n_pairs_of : ndarray of int64, shape (n_queries,)
        Preference pairs of each query.

    Examples
    --------
    >>> runs = LabelRuns.of(np.array([2, 0, 1, 1, 5, 5]), np.array([0, 4, 6]))
    >>> runs.run.tolist(), runs.n_worse.tolist(), runs.n_better.tolist(), runs.n_pairs
    ([2, 0, 1, 1, 3, 3], [0, 1, 3, 0], [3, 1, 0, 0], 5)
    """

    run: NDArray[np.int32]
    first: NDArray[np.int64]
    n_worse: NDArray[np.int64]
    n_better: NDArray[np.int64]
    n_pairs_of: NDArray[np.int64]

    @property
    def n_pairs(self) -> int:
        """Preference pairs of all queries."""
        return int(self.n_pairs_of.sum())

    def n_pairs_among(self, documents: NDArray[np.bool_]) -> int:
        """Count the preference pairs of which both documents are kept; O(n_documents).

        Parameters
        ----------
        documents : ndarray of bool, shape (n_documents,)

        Examples
        --------
        >>> runs = LabelRuns.of(np.array([2, 0, 1, 1]), np.array([0, 4]))
        >>> runs.n_pairs_among(np.array([True, False, True, True]))
        2
        """
        size = np.bincount(self.run[documents], minlength=len(self.n_worse))
        together = np.add.reduceat(size, self.first[:-1])
        return int((together @ together - size @ size) // 2)

    @classmethod
    def of(cls, y: NDArray[np.int64], offsets: NDArray[np.int64]) -> LabelRuns:
        """Find the runs of documents with labels `y` in queries that begin at `offsets`; O(n log n) for n documents."""
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        order = np.lexsort((y, query))
        begins = (np.diff(y[order], prepend=-1) != 0) | (np.diff(query, prepend=-1) != 0)
        run = np.empty(len(y), np.int32)
        run[order] = np.cumsum(begins) - 1
        first = np.searchsorted(query[begins], np.arange(len(offsets)))
        size, n_runs = np.bincount(run), np.diff(first)
        before = np.cumsum(size) - size
        n_worse = before - np.repeat(offsets[:-1], n_runs)
        n_better = np.repeat(offsets[1:], n_runs) - before - size
        return cls(run, first, n_worse, n_better, np.add.reduceat(n_worse * size, first[:-1]))
