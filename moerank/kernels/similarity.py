"""Kernels of single features: concordance with one another, and Gaussian densities."""

from __future__ import annotations

import numpy as np

from moerank.arrays import Integers, Matrix, Vector
from moerank.kernels.compiled import kernel
from moerank.kernels.counted_sums import add_at, sum_of_first


@kernel
def concordance(X: Matrix, offsets: Integers) -> Matrix:
    """Return the share of the document pairs of a query that two features order alike, averaged over queries.

    Shape (n_features, n_features). A pair that both features leave tied is ordered alike; one that only one of them
    leaves tied counts half. Queries of one document do not count; without any other query all entries are 1.

    O(n_features² · Σ_q m log m) with m the number of documents of a query. Of N pairs, D ordered differently, T and U
    tied in the one and the other feature and B in both, N − D − (T + U) / 2 + B count.
    """
    n_features = X.shape[1]
    total = np.zeros((n_features, n_features))
    longest = 0
    for q in range(len(offsets) - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
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
def _dense_ranks(x: Vector, order: Integers, rank: Integers) -> int:
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
def _opposed(order: Integers, rank: Integers, other: Integers, tree: Integers, in_group: Integers) -> tuple[int, int]:
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
            n_opposed += n_seen - int(sum_of_first(tree, r + 1))
            n_tied += in_group[r]
            in_group[r] += 1
        for k in range(begin, end):
            r = other[order[k]]
            in_group[r] = 0
            add_at(tree, m, r + 1, 1)
        n_seen += end - begin
        begin = end
    return n_opposed, n_tied


TERMS = 22
"""Of the expansion about the middle of a cell one bandwidth wide: the rest is below 1e-15 of a sample's peak."""
BANDWIDTHS_REACHED = 10.0
"""Bandwidths beyond which a cell is not looked at: exp(−9.5² / 2) is below 1e-19."""


@kernel
def gaussian_density(samples: Vector, points: Vector, bandwidth: float) -> Vector:
    """Return the density (1 / M h) Σⱼ φ((x − xⱼ) / h) of M samples at each point x, φ the standard normal density.

    The bandwidth h is positive. Densities are not negative; the error is below 1e-14 of the peak of one sample,
    1 / (h √(2π)). O((n_samples + n_points) · TERMS) and a sort of the samples. With s = (xⱼ − g) / h, at most ½, the
    distance of a sample from the middle g of its cell and z = (x − g) / h,

        exp(−(z − s)² / 2) = exp(−z² / 2) Σₖ (sᵏ / k!) Heₖ(z)

    with the Hermite polynomials Heₖ: the samples of a cell are summed up once, whatever the number of points.
    """
    ordered = np.sort(samples) / bandwidth
    density = np.zeros(len(points))
    moments = np.empty((len(ordered), TERMS))
    middles = np.empty(len(ordered))
    n_cells = begin = 0
    while begin < len(ordered):
        middle = ordered[begin] + 0.5
        moments[n_cells] = 0.0
        middles[n_cells] = middle
        end = begin
        while end < len(ordered) and ordered[end] <= middle + 0.5:
            term = 1.0
            for k in range(TERMS):
                moments[n_cells, k] += term
                term *= (ordered[end] - middle) / (k + 1)
            end += 1
        begin = end
        n_cells += 1
    middles = middles[:n_cells]
    scale = 1.0 / (len(ordered) * bandwidth * np.sqrt(2.0 * np.pi))
    for i in range(len(points)):
        x = points[i] / bandwidth
        first, last = np.searchsorted(middles, x - BANDWIDTHS_REACHED), np.searchsorted(middles, x + BANDWIDTHS_REACHED)
        for cell in range(first, last):
            z = x - middles[cell]
            previous, hermite, total = 0.0, 1.0, 0.0
            for k in range(TERMS):
                total += moments[cell, k] * hermite
                previous, hermite = hermite, z * hermite - k * previous
            density[i] += np.exp(-0.5 * z * z) * total
        density[i] = max(density[i], 0.0) * scale
    return density
