"""Preference pairs counted, not listed: how many better and worse documents each document has in its query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.label_runs import number_runs

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
    n_pairs : int
        Preference pairs of all queries.

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
    n_pairs: int

    @classmethod
    def of(cls, y: NDArray[np.int64], offsets: NDArray[np.int64]) -> LabelRuns:
        """Find the runs of documents with labels `y` in queries that begin at `offsets`; O(n log n) for n documents."""
        run, size, first = number_runs(y, offsets)
        n_runs = np.diff(first)
        before = np.cumsum(size) - size
        n_worse = before - np.repeat(offsets[:-1], n_runs)
        n_better = np.repeat(offsets[1:], n_runs) - before - size
        return cls(run, first, n_worse, n_better, int(n_worse @ size))
