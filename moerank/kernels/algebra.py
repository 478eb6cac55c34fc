"""Products, and positive definite systems of feature subsets, with the same bits on every processor.

A linear algebra library chooses its code, and with it the order of a sum, by the processor. Here sums are in order of
the rows, and NumPy's `einsum` uses no such library.
"""

from __future__ import annotations

import numpy as np

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import fused, lanes, load, spread, store

PRODUCT_LANES = lanes(np.float64)
"""Features of a vector."""

PRODUCT_ROWS = 64
"""Documents that stay in the second level of the cache."""

LEAST_PIVOT = 1e-15
"""Share of a diagonal entry that replaces a pivot lost in rounding, as with two equal features of large scale."""


def product(A: Matrix, x: Matrix) -> Matrix:
    """Return A x for A (m, n) and x (n,), or the number xᵀy for two vectors; O(m n)."""
    return np.einsum("...j,j->...", A, x)  # type: ignore[no-any-return]


def square(A: Matrix, B: Matrix | None = None) -> Matrix:
    """Return A Aᵀ, or A Bᵀ if that is symmetric; shapes (n_features, n_documents), result (n_features, n_features).

    It is summed document after document, in O(n_features² · n_documents).
    """
    n_features, n_documents = A.shape
    n_vectors = -(-n_features // PRODUCT_LANES)
    rows = np.zeros((1 if B is None else 2, n_documents, n_vectors * PRODUCT_LANES))
    rows[0, :, :n_features] = A.T
    if B is not None:
        rows[1, :, :n_features] = B.T
    total = np.zeros((n_vectors * PRODUCT_LANES, n_vectors * PRODUCT_LANES))
    _add_product(rows[0], rows[-1], n_vectors, total)
    lower = np.tril(total[:n_features, :n_features])
    return lower + np.tril(lower, -1).T


@kernel
def _add_product(left: Matrix, right: Matrix, n_vectors: int, total: Matrix) -> None:
    """Add the sum of x yᵀ over the rows x and y to the lower triangle of `total`, four features by a vector at once."""
    flat = left.ravel()
    n_features = n_vectors * PRODUCT_LANES
    for begin in range(0, len(left), PRODUCT_ROWS):
        end = min(begin + PRODUCT_ROWS, len(left))
        for vector in range(n_vectors):
            for f in range(vector * PRODUCT_LANES, n_features, 4):
                position = f * n_vectors + vector
                s0 = load(total, position)
                s1 = load(total, position + n_vectors)
                s2 = load(total, position + 2 * n_vectors)
                s3 = load(total, position + 3 * n_vectors)
                for i in range(begin, end):
                    y = load(right, i * n_vectors + vector)
                    k = i * n_features + f
                    s0 = fused(spread(flat[np.uint64(k)]), y, s0)
                    s1 = fused(spread(flat[np.uint64(k + 1)]), y, s1)
                    s2 = fused(spread(flat[np.uint64(k + 2)]), y, s2)
                    s3 = fused(spread(flat[np.uint64(k + 3)]), y, s3)
                store(total, position, s0)
                store(total, position + n_vectors, s1)
                store(total, position + 2 * n_vectors, s2)
                store(total, position + 3 * n_vectors, s3)


@kernel
def dot(a: Vector, b: Vector) -> float:
    """Return Σ aᵢ bᵢ, summed in order."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel
def factorise(B: Matrix, feature_mask: Mask) -> Matrix:
    """Return the Cholesky factors (lanes, n_features, n_features) of B on each row of the mask, packed top left.

    Equal neighbouring rows share the work. Complexity: O(k³ / 3) for a row with k features.
    """
    lanes, n_features = feature_mask.shape
    factors = np.zeros((lanes, n_features, n_features))
    for lane in range(lanes):
        same = lane > 0
        for f in range(n_features):
            same = same and feature_mask[lane, f] == feature_mask[lane - 1, f]
        if same:
            for i in range(n_features):
                for j in range(i + 1):
                    factors[lane, i, j] = factors[lane - 1, i, j]
        else:
            _factor_one(B, np.flatnonzero(feature_mask[lane]), factors[lane])
    return factors


@kernel
def _factor_one(B: Matrix, chosen: Integers, L: Matrix) -> None:
    for i in range(len(chosen)):
        for j in range(i + 1):
            total = B[chosen[i], chosen[j]]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j and total <= 0.0:  # lost in rounding
                total = LEAST_PIVOT * B[chosen[i], chosen[i]]
            L[i, j] = np.sqrt(total) if i == j else total / L[j, j]


@kernel
def solve(L: Matrix, chosen: Mask, b: Vector, x: Vector) -> None:
    """Solve B x = b on the chosen features, given the factor of B there; x is set to 0 elsewhere. O(k²)."""
    index = np.flatnonzero(chosen)
    x[:] = 0.0
    for i in range(len(index)):
        total = b[index[i]]
        for k in range(i):
            total -= L[i, k] * x[index[k]]
        x[index[i]] = total / L[i, i]
    for i in range(len(index) - 1, -1, -1):
        total = x[index[i]]
        for k in range(i + 1, len(index)):
            total -= L[k, i] * x[index[k]]
        x[index[i]] = total / L[i, i]


@kernel
def ridge_subsets(B: Matrix, rhs: Vector, feature_mask: Mask) -> Matrix:
    """Return the solutions W (n_individuals, n_features) of B w = rhs on each feature subset, 0 off it.

    O(n_individuals · k³ / 3).
    """
    W = np.zeros(feature_mask.shape)
    L = np.empty(B.shape)
    for row in range(len(feature_mask)):
        _factor_one(B, np.flatnonzero(feature_mask[row]), L)
        solve(L, feature_mask[row], rhs, W[row])
    return W
