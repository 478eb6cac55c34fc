"""Cumulated gain of linear rankers down to a low rank: by the kernel that suits them, on some threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.lane_gain import individuals_share_features, lane_gain
from moerank.kernels.linear_gain import linear_gain

__all__ = ["FewRanks", "gain_of_linear"]

Floats = NDArray[np.floating[Any]]
FewRanks = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]
"""Queries that count, gain of each document, discount of each rank, depth and ideal of each query that counts."""


def gain_of_linear(
    X: Floats,
    columns: Callable[[], Floats],
    W: NDArray[np.float64],
    offsets: NDArray[np.int64],
    few_ranks: FewRanks,
    workers: int,
) -> NDArray[np.float64]:
    """Return the discounted cumulated gain over its ideal value of each query and individual.

    The threads share the queries: each goes through its own documents for all individuals, and no value depends on
    their number.

    Parameters
    ----------
    X : ndarray, shape (n_documents, n_features)
    columns : callable
        Returns the same by columns; it is called if they are needed.
    W : ndarray of float64, shape (n_individuals, n_features)
    offsets : ndarray of int64, shape (n_queries + 1,)
    few_ranks : tuple of ndarray
        As `moerank.kernels.linear_gain.linear_gain` takes them.
    workers : int, at least 1
    """
    query, gain, discount, depth, ideal = few_ranks
    share = individuals_share_features(X, W, offsets, query)
    kernel, table = (lane_gain, X) if share else (linear_gain, columns())
    cuts = np.searchsorted(offsets[query], np.linspace(0, len(X), workers + 1)[1:-1])
    parts = [slice(begin, end) for begin, end in pairwise([0, *cuts.tolist(), len(query)])]

    def values_of(part: slice) -> NDArray[np.float64]:
        return kernel(table, W, offsets, query[part], gain, discount, depth[part], ideal[part])

    if workers == 1:
        return values_of(parts[0])
    with ThreadPoolExecutor(workers) as pool:
        values, *others = pool.map(values_of, parts)
    for other in others:
        values += other  # which is 0 for the queries of the others
    return values
