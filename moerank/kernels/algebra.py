"""Products, moments of preference pairs, and systems of feature subsets, with the same bits on every processor.

A linear algebra library chooses its code, and with it the order of a sum, by the processor. Here each sum is in order
of the rows, and NumPy's `einsum` uses no such library.
"""

from typing import Any

import numpy as np

from moerank.arrays import Floats, Integers, Mask, Matrix, Vector
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import blend, fused, lanes, load, put, spread, store

# Numbers in a vector, and rows in a panel.
VECTOR_WIDTH = lanes(np.float64)

# Panels that are processed together; the numbers that they share stay in the level-2 cache.
PANELS_ABREAST = 8

# Entries and queries of a block that fits the level-2 cache.
ENTRIES_ABREAST, QUERY_BLOCK = 256, 512

# Share of a diagonal entry that replaces a pivot lost in rounding, such as that of two equal features.
MIN_PIVOT = 1e-15


def product(A: Matrix, x: Matrix) -> Matrix:
    """Return A x for A (m, n) and x (n,), or the number xᵀy for two vectors; O(m n)."""
    return np.einsum("...j,j->...", A, x)  # type: ignore[no-any-return]


def square(A: Matrix) -> Matrix:
    """Return A Aᵀ, shape (n_features, n_features), for A (n_features, n_documents).

    Sums are in order of the documents. O(n_features² · n_documents).
    """
    n_features = len(A)
    panels = panels_of(A)
    n_rows = len(panels) * VECTOR_WIDTH
    total = np.zeros((n_rows, n_rows))
    _write_square(panels.reshape(-1, VECTOR_WIDTH), total)
    return np.ascontiguousarray(total[:n_features, :n_features])


def panels_of(A: Matrix) -> Matrix:
    """Return the columns of each eight rows of A (m, n), shape (n_panels, n, 8), with zeros for missing rows."""
    n_panels = -(-len(A) // VECTOR_WIDTH)
    rows = np.zeros((n_panels * VECTOR_WIDTH, A.shape[1]))
    rows[: len(A)] = A
    return np.ascontiguousarray(rows.reshape(n_panels, VECTOR_WIDTH, -1).transpose(0, 2, 1))


def plus_ridge(A: Matrix, alpha: float) -> Matrix:
    """Return A + alpha I."""
    total = A.copy()
    total.flat[:: len(A) + 1] += alpha
    return total


@kernel
def _write_square(panels: Matrix, total: Matrix) -> None:
    """Write A Aᵀ to `total`, which is 0; `panels` has the columns of each eight rows of A, in order."""
    flat, n_vectors = panels.reshape(-1), total.shape[1] // VECTOR_WIDTH
    n, target = len(panels) // n_vectors, total.reshape(-1, VECTOR_WIDTH)
    for begin in range(0, n_vectors, PANELS_ABREAST):
        for v in range(begin, n_vectors):
            for panel in range(begin, min(v + 1, begin + PANELS_ABREAST)):
                at, row = panel * n * VECTOR_WIDTH, panel * VECTOR_WIDTH * n_vectors + v
                subtract_products(
                    flat, at, VECTOR_WIDTH, panels, v * n, 1, n, target, row, n_vectors
                )
    for i in range(len(total)):  # the upper triangle has the negative sums
        for j in range(i, len(total)):
            total[i, j] = total[j, i] = 0.0 - total[i, j]


@kernel
def subtract_products(
    scalars: Vector,
    at: int,
    stride: int,
    vectors: Matrix,
    v: int,
    step: int,
    n: int,
    target: Matrix,
    row: int,
    down: int,
) -> None:
    """Subtract Σ_k of eight numbers of `scalars` times a vector of `vectors` from eight vectors of `target`.

    The k-th numbers begin at ``at + k · stride``, the k-th vector is ``v + k · step``, and the vectors of the target
    are ``row``, ``row + down``, ….
    """
    zero = spread(0.0)
    sums = zero, zero, zero, zero, zero, zero, zero, zero
    for k in range(n):
        y = load(vectors, v + k * step)
        x = at + k * stride
        for j in range(8):
            sums = put(sums, j, fused(spread(scalars[np.uint64(x + j)]), y, sums[j]))
    for j in range(8):
        i = row + j * down
        store(target, i, load(target, i) - sums[j])


@kernel
def dot(a: Vector, b: Vector) -> float:
    """Return Σ aᵢ bᵢ, summed in order."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel
def positions(mask: Mask) -> Integers:
    """Return the indices of the true entries; `np.flatnonzero` takes twice as long to compile."""
    index = np.empty(len(mask), np.int64)
    n = 0
    for i in range(len(mask)):
        if mask[i]:
            index[n] = i
            n += 1
    return index[:n]


@kernel
def largest(values: Vector | Integers) -> Any:
    """Return the largest number; ``values.max()`` takes half a second longer to compile."""
    best = values[0]
    for value in values:
        best = max(best, value)
    return best


@kernel
def factorise(B: Matrix, feature_mask: Mask) -> Matrix:
    """Return the Cholesky factor of B on each row of the mask, in the top left corner of (n_features, n_features).

    Shape (lanes, n_features, n_features). Equal neighbouring rows share the work. O(k³ / 3) for a row with k features.
    """
    lanes, n_features = feature_mask.shape
    factors = np.zeros((lanes, n_features, n_features))
    for lane in range(lanes):
        if lane > 0 and (feature_mask[lane] == feature_mask[lane - 1]).all():
            for i in range(n_features):
                for j in range(i + 1):
                    factors[lane, i, j] = factors[lane - 1, i, j]
        else:
            _factor_one(B, positions(feature_mask[lane]), factors[lane])
    return factors


@kernel
def _factor_one(B: Matrix, features: Integers, L: Matrix) -> None:
    for i in range(len(features)):
        for j in range(i + 1):
            total = B[features[i], features[j]]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j and total <= 0.0:  # lost in rounding
                total = MIN_PIVOT * B[features[i], features[i]]
            L[i, j] = np.sqrt(total) if i == j else total / L[j, j]


@kernel
def solve(L: Matrix, feature_mask: Mask, b: Vector, x: Vector) -> None:
    """Solve B x = b on the features of the mask, given the factor of B there; x is set to 0 elsewhere. O(k²)."""
    index = positions(feature_mask)
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
def ridge_subsets(B: Matrix, rhs: Matrix, feature_mask: Mask) -> Matrix:
    """Return the solutions of the systems B (n_systems, n_features, n_features) on each feature subset, 0 elsewhere.

    Shape (n_individuals · n_systems, n_features), the systems of an individual one after the other. `rhs` has the shape
    (n_systems, n_features). O(n_individuals · n_systems · k³ / 3).
    """
    n_individuals, n_features = feature_mask.shape
    n_systems = len(B)
    W = np.zeros((n_individuals * n_systems, n_features))
    max_size = 0
    for row in range(n_individuals):
        max_size = max(max_size, len(positions(feature_mask[row])))
    L = np.empty((max_size, max_size))
    for row in range(n_individuals):
        features = positions(feature_mask[row])
        for system in range(n_systems):
            _factor_one(B[system], features, L)
            solve(L, feature_mask[row], rhs[system], W[row * n_systems + system])
    return W


@kernel
def sums_over_queries(packed: Floats, query_mask: Mask) -> Matrix:
    """Return Σ of the rows of `packed` (n_queries, n_entries) that each row of `query_mask` keeps.

    Shape (n_individuals, n_entries), summed in double precision in order of the queries. O(n_individuals · n_queries ·
    n_entries); queries that an individual leaves out take no time.
    """
    n_queries, n_entries = packed.shape
    sums = np.zeros((len(query_mask), n_entries))
    for query_begin in range(0, n_queries, QUERY_BLOCK):
        query_end = min(query_begin + QUERY_BLOCK, n_queries)
        for begin in range(0, n_entries, ENTRIES_ABREAST):
            end = min(begin + ENTRIES_ABREAST, n_entries)
            for individual in range(len(query_mask)):
                for q in range(query_begin, query_end):
                    if query_mask[individual, q]:
                        for entry in range(begin, end):
                            sums[individual, entry] += packed[q, entry]
    return sums


@kernel
def centred_stack(
    flat: Floats,
    stride: int,
    start: int,
    offsets: Integers,
    run: Integers,
    root_degree: Vector,
    stack: Matrix,
) -> None:
    """Centre documents in their queries, and fill the stack whose square is the sum over their preference pairs.

    Sums are in order of the documents. Eight features are processed side by side to hide the latency of an addition.

    flat : has the value of feature f of document i at ``f · stride + start + i``
    offsets : (n_queries + 1,), where the queries of the block begin, from 0
    run : (n_documents,), the run of each document, from 0 to ``n_runs - 1``
    root_degree : (n_documents,), √ of the number of pairs of each document
    stack : (n_features, n_documents + n_runs)
        Receives √degree · x, and then the sum of x over each run, x centred in its query and in double precision.
        Where a feature is constant in a query it is exactly 0.
    """
    n_features, n_documents = len(stack), len(run)
    n_runs = stack.shape[1] - n_documents
    longest = 0
    for q in range(len(offsets) - 1):  # np.diff takes three seconds to compile
        longest = max(longest, offsets[q + 1] - offsets[q])
    tile = np.zeros((longest, VECTOR_WIDTH))
    sums = np.empty((n_runs, VECTOR_WIDTH))
    zero = spread(0.0)
    for f in range(0, n_features, VECTOR_WIDTH):
        width = min(VECTOR_WIDTH, n_features - f)
        for r in range(n_runs):
            store(sums, r, zero)
        for q in range(len(offsets) - 1):
            begin = offsets[q]
            size = offsets[q + 1] - begin
            for c in range(width):
                base = (f + c) * stride + start + begin
                for k in range(size):
                    # An unsigned index is not tested for being negative.
                    tile[k, c] = flat[np.uint64(base + k)]
            head = load(tile, 0)
            total = zero
            constant = zero >= zero
            for k in range(size):
                x = load(tile, k)
                total = total + x
                constant = constant & (x >= head) & (head >= x)
            mean = blend(constant, head, total / spread(np.float64(size)))
            for k in range(size):
                r = run[np.uint64(begin + k)]
                x = load(tile, k) - mean
                store(tile, k, x)
                store(sums, r, load(sums, r) + x)
            for c in range(width):
                for k in range(size):
                    i = np.uint64(begin + k)
                    stack[f + c, i] = tile[k, c] * root_degree[i]
        for c in range(width):
            for r in range(n_runs):
                stack[f + c, n_documents + r] = sums[r, c]
