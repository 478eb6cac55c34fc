"""Products, moments of preference pairs, and systems of feature subsets, with the same bits on every processor.

A linear algebra library chooses its code, and with it the order of a sum, by the processor. Here sums are in order of
the rows, and NumPy's `einsum` uses no such library.
"""

from __future__ import annotations

import numpy as np

from moerank.arrays import Floats, Integers, Mask, Matrix, Vector
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import bits_of, fused, lanes, load, spread, store

# Features of a vector, which are multiplied, or centred, side by side.
PRODUCT_LANES = lanes(np.float64)

# Documents of a block that stays in the second level of the cache.
PRODUCT_ROWS = 64

# Entries and queries of a block that stays in the second level of the cache.
ENTRIES_ABREAST, QUERY_BLOCK = 256, 512

# Share of a diagonal entry that replaces a pivot lost in rounding, such as that of two equal features.
LEAST_PIVOT = 1e-15


def product(A: Matrix, x: Matrix) -> Matrix:
    """Return A x for A (m, n) and x (n,), or the number xᵀy for two vectors; O(m n)."""
    return np.einsum("...j,j->...", A, x)  # type: ignore[no-any-return]


def square(A: Matrix) -> Matrix:
    """Return A Aᵀ, shape (n_features, n_features), for A (n_features, n_documents).

    It is summed document after document, in O(n_features² · n_documents).
    """
    n_features, n_documents = A.shape
    n_vectors = -(-n_features // PRODUCT_LANES)
    rows = np.zeros((n_documents, n_vectors * PRODUCT_LANES))
    rows[:, :n_features] = A.T
    total = np.zeros((n_vectors * PRODUCT_LANES, n_vectors * PRODUCT_LANES))
    _add_product(rows, rows, n_vectors, total)
    _copy_to_upper_triangle(total)
    return np.ascontiguousarray(total[:n_features, :n_features])


def plus_ridge(A: Matrix, alpha: float) -> Matrix:
    """Return A + alpha I."""
    total = A.copy()
    total.flat[:: len(A) + 1] += alpha
    return total


@kernel
def _copy_to_upper_triangle(A: Matrix) -> None:
    for i in range(len(A)):
        for j in range(i):
            A[j, i] = A[i, j]


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
        if lane > 0 and (feature_mask[lane] == feature_mask[lane - 1]).all():
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
    largest = 0
    for row in range(len(feature_mask)):
        largest = max(largest, feature_mask[row].sum())
    L = np.empty((largest, largest))
    for row in range(len(feature_mask)):
        _factor_one(B, np.flatnonzero(feature_mask[row]), L)
        solve(L, feature_mask[row], rhs, W[row])
    return W


@kernel
def sums_over_queries(packed: Floats, query_mask: Mask) -> Matrix:
    """Return Σ of the rows of `packed` (n_queries, n_entries) that each row of `query_mask` keeps.

    Shape (n_individuals, n_entries), summed in double precision in order of query. O(n_individuals · n_queries ·
    n_entries); queries that an individual leaves out cost nothing.
    """
    n_queries, n_entries = packed.shape
    sums = np.zeros((len(query_mask), n_entries))
    for first in range(0, n_queries, QUERY_BLOCK):
        last = min(first + QUERY_BLOCK, n_queries)
        for begin in range(0, n_entries, ENTRIES_ABREAST):
            end = min(begin + ENTRIES_ABREAST, n_entries)
            for individual in range(len(query_mask)):
                for q in range(first, last):
                    if query_mask[individual, q]:
                        for entry in range(begin, end):
                            sums[individual, entry] += packed[q, entry]
    return sums


@kernel
def centred_stack(
    flat: Floats,
    stride: int,
    first: int,
    offsets: Integers,
    run: Integers,
    n_runs: int,
    root_degree: Vector,
    stack: Matrix,
    n_features: int,
) -> None:
    """Centre documents in their queries, and fill the stack whose square is the sum over their preference pairs.

    Sums are taken document after document. Eight features go side by side to hide the latency of an addition.

    flat : has the value of feature f of document i at ``f · stride + first + i``
    offsets : (n_queries + 1,), where the block's queries begin, from 0
    run : (n_documents,), the run of each document, from 0 to ``n_runs - 1``
    root_degree : (n_documents,), √ of the number of pairs of each document
    stack : (n_features, n_documents + n_runs), or larger
        Receives √degree · x, and then the sum of x over each run, x centred in its query and in double precision.
        Where a feature is constant in a query it is exactly 0.
    """
    n_documents = len(run)
    longest = 0
    for q in range(len(offsets) - 1):  # np.diff takes three seconds to compile
        longest = max(longest, offsets[q + 1] - offsets[q])
    tile = np.zeros((longest, PRODUCT_LANES))
    sums = np.empty((n_runs, PRODUCT_LANES))
    mean = np.empty((1, PRODUCT_LANES))
    zero = spread(0.0)
    for f in range(0, n_features, PRODUCT_LANES):
        width = min(PRODUCT_LANES, n_features - f)
        for r in range(n_runs):
            store(sums, r, zero)
        for q in range(len(offsets) - 1):
            begin = offsets[q]
            size = offsets[q + 1] - begin
            for c in range(width):
                base = (f + c) * stride + first + begin
                for k in range(size):
                    tile[k, c] = flat[np.uint64(base + k)]  # unsigned numbers need no test for a place from the end
            head = load(tile, 0)
            total = zero
            constant = zero >= zero
            for k in range(size):
                x = load(tile, k)
                total = total + x
                constant = constant & (x >= head) & (head >= x)
            store(mean, 0, total)
            bits = bits_of(constant)
            for c in range(PRODUCT_LANES):
                mean[0, c] = tile[0, c] if (bits >> c) & 1 else mean[0, c] / size
            centre = load(mean, 0)
            for k in range(size):
                r = run[np.uint64(begin + k)]
                store(sums, r, load(sums, r) + (load(tile, k) - centre))
            for c in range(width):
                base = (f + c) * stride + first + begin
                for k in range(size):
                    i = np.uint64(begin + k)
                    stack[f + c, i] = (flat[np.uint64(base + k)] - mean[0, c]) * root_degree[i]
        for c in range(width):
            for r in range(n_runs):
                stack[f + c, n_documents + r] = sums[r, c]
