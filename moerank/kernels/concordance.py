"""How alike features order the documents of a query: concordant pairs, counted without listing pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["concordance"]

Matrix = NDArray[np.float64]


@kernel
def concordance(X: Matrix, offsets: NDArray[np.int64]) -> Matrix:
    """Share of the document pairs of a query that two features order the same way, averaged over queries.

    A pair that both features leave tied is ordered the same way; one that only one of them leaves tied counts half.

    Parameters
    ----------
    X : (n_documents, n_features)
    offsets : (n_queries + 1,), where queries begin

    Returns
    -------
    ndarray, shape (n_features, n_features)
        Symmetric, between 0 and 1, with 1 on the diagonal; queries of one document do not count. Without any query
        that counts, all entries are 1.

    Notes
    -----
    O(n_features² · Σ_q m log m) with m the number of documents of a query. Of N pairs, D ordered differently, T and U
    tied in the one and the other feature and B in both, N − D − (T + U) / 2 + B count.
    """
    n_features = X.shape[1]
    total = np.zeros((n_features, n_features))
    longest = np.diff(offsets).max()
    rank = np.empty((n_features, longest), np.int64)
    order = np.empty((n_features, longest), np.int64)
    tied = np.empty(n_features, np.int64)
    tree = np.empty(longest + 1, np.int64)
    in_group = np.zeros(longest, np.int64)
    n_counted = 0
    for q in range(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        m = end - begin
        n_pairs = m * (m - 1) // 2
        if n_pairs == 0:
            continue
        n_counted += 1
        for f in range(n_features):
            tied[f] = _dense_ranks(X[begin:end, f], order[f, :m], rank[f, :m])
        for f in range(n_features):
            for g in range(f):
                opposed, tied_in_both = _opposed(order[f, :m], rank[f], rank[g], tree[: m + 1], in_group)
                alike = n_pairs - opposed - 0.5 * (tied[f] + tied[g]) + tied_in_both
                total[f, g] += alike / n_pairs
    result = np.ones((n_features, n_features))
    if n_counted > 0:
        for f in range(n_features):
            for g in range(f):
                result[f, g] = result[g, f] = total[f, g] / n_counted
    return result


@kernel
def _dense_ranks(x: NDArray[np.float64], order: NDArray[np.int64], rank: NDArray[np.int64]) -> int:
    """Write the order of x and the rank of each entry, 0, 1, … with equal ranks for ties; return the tied pairs."""
    order[:] = np.argsort(x, kind="mergesort")
    n_tied = run = 0
    rank[order[0]] = 0
    for k in range(1, len(order)):
        i, previous = order[k], order[k - 1]
        if x[i] == x[previous]:
            run += 1
            n_tied += run
            rank[i] = rank[previous]
        else:
            run = 0
            rank[i] = rank[previous] + 1
    return n_tied


@kernel
def _opposed(
    order: NDArray[np.int64],
    rank: NDArray[np.int64],
    other: NDArray[np.int64],
    tree: NDArray[np.int64],
    in_group: NDArray[np.int64],
) -> tuple[int, int]:
    """Count the pairs that two rankings order differently, and those that both leave tied.

    The documents are visited in the `order` of the first ranking, a group of ties at a time. A Fenwick `tree` holds
    how many earlier ones have each rank in the other ranking; `in_group` is a workspace that is 0 before and after.
    """
    m = len(order)
    tree[:] = 0
    n_opposed = n_tied = n_seen = 0
    begin = 0
    while begin < m:
        end = begin + 1
        while end < m and rank[order[end]] == rank[order[begin]]:
            end += 1
        for k in range(begin, end):
            r = other[order[k]]
            not_above = 0
            node = r + 1
            while node > 0:
                not_above += tree[node]
                node &= node - 1
            n_opposed += n_seen - not_above
            n_tied += in_group[r]
            in_group[r] += 1
        for k in range(begin, end):
            r = other[order[k]]
            in_group[r] = 0
            node = r + 1
            while node <= m:
                tree[node] += 1
                node += node & -node
        n_seen += end - begin
        begin = end
    return n_opposed, n_tied
