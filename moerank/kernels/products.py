"""Products that have the same bits on every processor.

A linear algebra library chooses its code, and with it the order of a sum, by the processor. Here sums are in order of
the rows, and NumPy's `einsum` uses no such library.
"""

from __future__ import annotations

import numpy as np

from moerank.arrays import Matrix
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import fused, lanes, load, spread, store

PRODUCT_LANES = lanes(np.float64)
"""Features of a vector."""

PRODUCT_ROWS = 64
"""Documents that stay in the second level of the cache."""


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
