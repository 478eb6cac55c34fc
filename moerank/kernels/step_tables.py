"""Rankers that add a step function of each feature: counts of bins, ridge regression on blocks, and scores by tables.

A *cell* is a bin of a feature. The cells of feature f are the numbers ``offsets[f]`` to ``offsets[f + 1] - 1``, and a
*code* is the bin of a document, from 0.
"""

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.kernels.algebra import (
    MIN_PIVOT,
    PANELS_ABREAST,
    VECTOR_WIDTH,
    positions,
    subtract_products,
)
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import fused, load, put, spread, store

# Features whose counts with one other feature fit the level-1 cache.
COUNTED_FEATURES = 16

# Rows of two vectors that fit the level-1 cache.
GROUPS_ABREAST = 128

# Individuals whose scores are summed side by side.
INDIVIDUALS = 2 * VECTOR_WIDTH

Codes = NDArray[np.uint8]


@kernel
def add_counts(cells: NDArray[np.int32], weight: Vector, total: Matrix) -> None:
    """Add the weight of each document to ``total[cell, other]`` for its cells, `other` of the same or a later feature.

    Shapes: cells (n_documents, n_features), weight (n_documents,), total (n_cells, n_cells) or larger. O(n_documents ·
    n_features²), whatever the number of bins.
    """
    n_documents, n_features = cells.shape
    flat, stride = total.reshape(-1), total.shape[1]
    for begin in range(0, n_features, COUNTED_FEATURES):
        end = min(begin + COUNTED_FEATURES, n_features)
        for f in range(end):
            for i in range(n_documents):
                row = np.int64(cells[i, f]) * stride
                for g in range(max(begin, f), end):
                    flat[np.uint64(row + cells[i, g])] += weight[i]


@kernel
def subtract_squares(sums: Matrix, factor: Vector, total: Matrix) -> None:
    """Subtract Σ_k ``factor[k]`` s_k s_kᵀ over the rows s_k of `sums` from the upper triangle of `total`.

    Shapes: sums (n_groups, n), factor (n_groups,), total (n, n), n a multiple of the width of a vector. Sums are in
    order of the rows, in blocks of them. O(n_groups · n²).
    """
    n_groups, n = sums.shape
    scalars = np.empty(sums.size)
    for k in range(n_groups):
        for i in range(n):
            scalars[k * n + i] = sums[k, i] * factor[k]
    vectors = sums.reshape(-1, VECTOR_WIDTH)
    target = total.reshape(-1, VECTOR_WIDTH)
    n_vectors = n // VECTOR_WIDTH
    for begin in range(0, n_groups, GROUPS_ABREAST):
        size = min(GROUPS_ABREAST, n_groups - begin)
        for panel in range(n_vectors):
            for v in range(panel, n_vectors):
                subtract_products(
                    scalars,
                    begin * n + panel * VECTOR_WIDTH,
                    n,
                    vectors,
                    begin * n_vectors + v,
                    n_vectors,
                    size,
                    target,
                    panel * VECTOR_WIDTH * n_vectors + v,
                    n_vectors,
                )


@kernel
def ridge_blocks(
    A: Matrix, b: Vector, offsets: Integers, alpha: float, feature_mask: Mask
) -> Matrix:
    """Return the solutions W (n_individuals, n_columns) of (A + alpha I) w = b on the columns of feature subsets.

    Feature f has the columns ``offsets[f]`` to ``offsets[f + 1] - 1``; W is 0 in the columns of features off the mask
    (n_individuals, n_features). A is symmetric and positive semidefinite. Bits depend neither on the other individuals
    nor on the processor. O(k³ / 3) operations, in vectors, for an individual with k columns.
    """
    W = np.zeros((len(feature_mask), len(b)))
    max_columns = 0
    for row in range(len(feature_mask)):
        n_columns = 0
        for f in positions(feature_mask[row]):
            n_columns += offsets[f + 1] - offsets[f]
        max_columns = max(max_columns, n_columns)
    n_panels = (max_columns + VECTOR_WIDTH - 1) // VECTOR_WIDTH
    U = np.empty((n_panels * VECTOR_WIDTH * (n_panels + 1), VECTOR_WIDTH))
    for row in range(len(feature_mask)):
        features = positions(feature_mask[row])
        _solve_one(A, b, offsets, alpha, features, U, W[row])
    return W


@kernel
def _solve_one(
    A: Matrix, b: Vector, offsets: Integers, alpha: float, features: Integers, U: Matrix, w: Vector
) -> None:
    """Solve the system of one individual: factor Uᵀ U = A, with b as a further column of A, then substitute.

    U has all rows of the first eight columns, then those of the next eight, so that sums over rows read it in order.
    """
    n = 0
    for f in features:
        n += offsets[f + 1] - offsets[f]
    n_panels = (n + VECTOR_WIDTH - 1) // VECTOR_WIDTH
    n_rows = n_panels * VECTOR_WIDTH
    to_next = (n_rows - 1) * VECTOR_WIDTH  # from the end of a vector to the row in the next columns
    flat = U.reshape(-1)
    flat[: (n_panels + 1) * n_rows * VECTOR_WIDTH] = 0.0
    i = 0
    for c in range(len(features)):
        for p in range(offsets[features[c]], offsets[features[c] + 1]):
            diagonal = (i - i % VECTOR_WIDTH) * n_rows + i * VECTOR_WIDTH + i % VECTOR_WIDTH
            target = diagonal
            for g in features[c:]:
                for q in range(p if g == features[c] else offsets[g], offsets[g + 1]):
                    flat[target] = A[p, q]
                    target += 1
                    if target % VECTOR_WIDTH == 0:
                        target += to_next
            flat[diagonal] += alpha
            flat[(n_rows * n_panels + i) * VECTOR_WIDTH] = b[p]
            i += 1
    for row in range(n, n_rows):  # padding of the last panel
        flat[((n_panels - 1) * n_rows + row) * VECTOR_WIDTH + row % VECTOR_WIDTH] = 1.0
    for begin in range(0, n_panels, PANELS_ABREAST):
        _factor_panels(U, flat, n_panels, begin, min(begin + PANELS_ABREAST, n_panels))
    _substitute(U, flat, n_panels)
    i = 0
    for f in features:
        for p in range(offsets[f], offsets[f + 1]):
            w[p] = flat[(n_panels * n_rows + i) * VECTOR_WIDTH]
            i += 1


@kernel
def _factor_panels(U: Matrix, flat: Vector, n_panels: int, begin: int, end: int) -> None:
    """Turn rows of A into rows of U, given the earlier rows; entries left of the diagonal are not read."""
    n_rows = n_panels * VECTOR_WIDTH
    for v in range(begin, n_panels + 1):
        for panel in range(begin, min(v + 1, end)):
            base, top = panel * n_rows * VECTOR_WIDTH, panel * VECTOR_WIDTH
            square, row = base + top * VECTOR_WIDTH, v * n_rows + top
            subtract_products(flat, base, VECTOR_WIDTH, U, v * n_rows, 1, top, U, row, 1)
            for r in range(VECTOR_WIDTH):
                diagonal = square + r * VECTOR_WIDTH + r
                pivot, values = flat[diagonal], load(U, row + r)
                for k in range(r):
                    values = fused(
                        spread(-flat[square + k * VECTOR_WIDTH + r]), load(U, row + k), values
                    )
                store(U, row + r, values)
                root = flat[diagonal]
                if v == panel:
                    if root <= 0.0:  # lost in rounding
                        root = MIN_PIVOT * max(pivot, 1.0)
                    root = np.sqrt(root)
                store(U, row + r, values * spread(1.0 / root))
                flat[diagonal] = root


@kernel
def _substitute(U: Matrix, flat: Vector, n_panels: int) -> None:
    """Solve U w = y by back substitution; w replaces y, the column after the last panel."""
    n_rows = n_panels * VECTOR_WIDTH
    w = np.zeros((max(n_panels, 1), VECTOR_WIDTH))
    lane = np.empty((1, VECTOR_WIDTH))
    for r in range(n_rows - 1, -1, -1):
        total = spread(0.0)
        panel = r // VECTOR_WIDTH
        for v in range(panel, n_panels):
            total = fused(load(U, v * n_rows + r), load(w, v), total)
        store(lane, 0, total)
        y = flat[(n_panels * n_rows + r) * VECTOR_WIDTH]
        for c in range(VECTOR_WIDTH):
            y -= lane[0, c]
        y /= flat[(panel * n_rows + r) * VECTOR_WIDTH + r % VECTOR_WIDTH]
        w[panel, r % VECTOR_WIDTH] = y
        flat[(n_panels * n_rows + r) * VECTOR_WIDTH] = y


@kernel
def forward_blocks(total: Matrix, offsets: Integers, n_steps: int) -> Integers:
    """Return the first features in the order in which they enter: each lowers min_w wᵀA w − 2 bᵀw the most.

    Feature f has the columns ``offsets[f]`` to ``offsets[f + 1] - 1`` of A, n in all; without columns it never enters.
    `total` has at least n + 1 columns, a multiple of the width of a vector: the upper triangle of A, positive definite,
    then b, and zeros; it is overwritten. A block that has entered is eliminated from the others. Ties go to the first
    feature. O(n_steps · n · (B² + n B)) for B columns of each feature.
    """
    n, unselected = offsets[-1], offsets[1:] > offsets[:-1]
    order = np.empty(min(n_steps, unselected.sum()), np.int64)
    for step in range(len(order)):
        max_fall = -1.0
        for f in range(len(unselected)):
            if unselected[f]:
                i, j = offsets[f], offsets[f + 1]
                rows = np.empty((j - i, j - i + 1))
                for a in range(j - i):
                    for b in range(j - i):
                        rows[a, b] = total[i + a, i + b]
                    rows[a, j - i] = total[i + a, n]
                _eliminate(rows, 0)
                fall = (rows[:, -1] ** 2).sum()
                if fall > max_fall:
                    max_fall, order[step] = fall, f
        unselected[order[step]] = False
        i, j = offsets[order[step]], offsets[order[step] + 1]
        rows = total[i:j].copy()
        for a in range(j - i):
            for b in range(i):
                rows[a, b] = total[b, i + a]
        _eliminate(rows, i)
        subtract_squares(rows, np.ones(j - i), total)
    return order


@kernel
def _eliminate(rows: Matrix, begin: int) -> None:
    """Divide rows by the Cholesky factor of the square that begins at column `begin`; its upper triangle is read."""
    for k in range(len(rows)):
        pivot = rows[k, begin + k]
        if pivot <= 0.0:  # lost in rounding
            pivot = MIN_PIVOT
        root = np.sqrt(pivot)
        for f in range(rows.shape[1]):
            rows[k, f] /= root
        for i in range(k + 1, len(rows)):
            factor = rows[k, begin + i]
            for f in range(rows.shape[1]):
                rows[i, f] -= factor * rows[k, f]


@kernel
def table_scores(codes: Codes, offsets: Integers, tables: Matrix) -> Matrix:
    """Return the scores (n_documents, n_individuals): Σ_f ``tables[individual, offsets[f] + code]``, in feature order.

    Shapes: codes (n_features, n_documents), tables (n_individuals, n_cells). A document adds two vectors for each
    feature that any of 16 neighbouring individuals uses; adding 0 for the other individuals changes no bit.
    """
    n_features, n_documents = codes.shape
    n_individuals = len(tables)
    scores = np.empty((n_documents, n_individuals))
    block = np.empty((2 * n_documents, VECTOR_WIDTH))
    for start in range(0, n_individuals, INDIVIDUALS):
        n = min(INDIVIDUALS, n_individuals - start)
        lookup = np.zeros((2 * tables.shape[1], VECTOR_WIDTH))
        features = np.empty(n_features, np.int64)
        n_used = 0
        for f in range(n_features):
            is_used = False
            for cell in range(offsets[f], offsets[f + 1]):
                for lane in range(n):
                    value = tables[start + lane, cell]
                    lookup[2 * cell + lane // VECTOR_WIDTH, lane % VECTOR_WIDTH] = value
                    is_used = is_used or value != 0.0
            features[n_used] = f
            n_used += is_used
        _sum_tables(codes, offsets, lookup, features[:n_used], block)
        for i in range(n_documents):
            for lane in range(n):
                scores[i, start + lane] = block[2 * i + lane // VECTOR_WIDTH, lane % VECTOR_WIDTH]
    return scores


@kernel
def _sum_tables(
    codes: Codes, offsets: Integers, lookup: Matrix, features: Integers, block: Matrix
) -> None:
    """Sum two vectors of each used feature for each document."""
    n_documents = codes.shape[1]
    zero = spread(0.0)
    n_full = n_documents - n_documents % 4
    for i in range(0, n_full, 4):  # four documents together hide the latency of an addition
        sums = zero, zero, zero, zero, zero, zero, zero, zero
        for f in features:
            for j in range(8):
                row = 2 * (offsets[f] + codes[f, i + j // 2]) + j % 2
                sums = put(sums, j, sums[j] + load(lookup, row))
        for j in range(8):
            store(block, 2 * i + j, sums[j])
    for i in range(n_full, n_documents):
        for j in range(2):
            total = zero
            for f in features:
                total = total + load(lookup, 2 * (offsets[f] + codes[f, i]) + j)
            store(block, 2 * i + j, total)
