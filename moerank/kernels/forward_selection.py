"""Greedy forward selection for RankRLS with leave-query-out errors, by a recursion over the selected features.

Eight features are the lanes of a vector. Only the arrays C and U of the recursion have the size n_features ×
n_documents. A step reads C once, for the change of each feature by the one just selected. Then it updates C and U query
by query, and sums the errors of the next step.
"""

from typing import TypeAlias

import numpy as np

from moerank.arrays import Integers, Matrix, Vector
from moerank.kernels.algebra import dot, factorise, plus_ridge, product, solve, square
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import lanes, load, spread, store

GROUP_SIZE = lanes(np.float64)

# Minimum share of 1 + xᵀGx that remains without a query; below it, rounding decides about the error.
MIN_REMAINDER = 1e-13

# C and U (n_blocks · n_documents, lanes); xᵀC, Cᵀy and the result of `_changes`, each (n_blocks, lanes).
FeatureState: TypeAlias = tuple[Matrix, Matrix, Matrix, Matrix, Matrix]

# a, p, and C and U of the feature selected last, before its selection.
DocumentState: TypeAlias = tuple[Vector, Vector, Vector, Vector]

# Where the queries begin, and two numbers for each query that depend on the feature selected last.
QueryState: TypeAlias = tuple[Integers, Vector, Vector]


def greedy_rank_rls(
    X: Matrix,
    y: Vector,
    offsets: Integers,
    ridge: float,
    n_steps: int,
) -> tuple[Integers, Vector, Matrix]:
    """Select `n_steps` features, each the one with the least leave-query-out error together with the earlier ones.

    With S the selected features and G = (X_Sᵀ X_S + ridge · I)⁻¹ over documents, the recursion holds a = G y, C = G Xᵀ,
    and for each query Q the leave-query-out residuals p_Q = (G_QQ)⁻¹ a_Q and U_Q = (G_QQ)⁻¹ C_Q. A new feature
    changes G by a matrix of rank one, so neither its error nor the update solves a linear system. The weights are the
    solution of a system, because rounding would spoil X_S a where ridge is small.

    O(n_steps · n_documents · n_features) time, O(n_documents · n_features) memory. Ties go to the first feature.

    X (n_features, n_documents) and y (n_documents,) are centred in every query. The error is Σ_Q ‖y_Q − prediction
    without Q‖².

    Return the features in order of selection (n_steps,), and the error (n_steps,) and the weights (n_steps, n_features)
    after each step. The errors are NaN from the first step in which rounding decides about one.
    """
    n_features, n_documents = X.shape
    feature_state = _begin(X, y, ridge)
    a = y / ridge
    document_state = a, y.copy(), np.zeros(n_documents), np.zeros(n_documents)
    query_state = offsets, *np.zeros((2, len(offsets) - 1))
    unselected = np.ones(n_features, np.bool_)
    order, errors = np.zeros(n_steps, np.int64), np.full(n_steps, np.nan)
    W = np.zeros((n_steps, n_features))
    for step in range(n_steps):
        error = _update_and_try(feature_state, document_state, query_state).ravel()[:n_features]
        order[step] = best = int(np.where(unselected, error, np.inf).argmin())
        if not np.isfinite(error[best]):
            return order, errors, W
        errors[step], unselected[best] = error[best], False
        _select(best, X, feature_state, document_state, query_state)
    prefix_masks, ordered_X = np.tri(n_steps, dtype=np.bool_), X[order]
    factor, target = (
        factorise(plus_ridge(square(ordered_X), ridge), prefix_masks[-1:])[0],
        product(ordered_X, y),
    )
    for step, w in enumerate(np.zeros((n_steps, n_steps))):
        solve(factor, prefix_masks[step], target, w)
        W[step, order] = w
    return order, errors, W


@kernel
def _select(
    best: int,
    X: Matrix,
    feature_state: FeatureState,
    document_state: DocumentState,
    query_state: QueryState,
) -> None:
    """Update everything except C and U after the selection of the feature `best`."""
    C, U, power, target, change = feature_state
    a, p, column, scaled = document_state
    offsets, through, g = query_state
    n_documents = len(a)
    block, lane = best // GROUP_SIZE, best % GROUP_SIZE
    c = 1.0 / (1.0 + power[block, lane])
    d = c * target[block, lane]
    for i in range(n_documents):
        column[i], scaled[i] = C[block * n_documents + i, lane], U[block * n_documents + i, lane]
    _changes(C, X[best], c, change)
    for q in range(len(g)):
        begin, end = offsets[q], offsets[q + 1]
        u, v = scaled[begin:end], column[begin:end]
        through[q] = dot(u, v)
        g[q] = 1.0 / (through[q] - 1.0 / c)
        inner = dot(u, a[begin:end]) - d * through[q]
        factor = -d - g[q] * inner
        for i in range(begin, end):
            p[i] += factor * scaled[i]
            C[block * n_documents + i, lane] = 0.0
            U[block * n_documents + i, lane] = 0.0
    a += -d * column
    power[:] = np.maximum(power - change * change / c, 0.0)
    target -= change * target[block, lane]
    power[block, lane] = target[block, lane] = change[block, lane] = 0.0


@kernel
def _begin(X: Matrix, y: Vector, ridge: float) -> FeatureState:
    """Return C = X / ridge, U = X, xᵀC and Cᵀy, and no changes.

    The last block is padded with features that are 0.
    """
    n_features, n_documents = X.shape
    n_blocks = (n_features + GROUP_SIZE - 1) // GROUP_SIZE
    C = np.zeros((n_blocks * n_documents, GROUP_SIZE))
    U = np.zeros((n_blocks * n_documents, GROUP_SIZE))
    power, target = np.zeros((n_blocks, GROUP_SIZE)), np.zeros((n_blocks, GROUP_SIZE))
    for b in range(n_blocks):
        width = min(GROUP_SIZE, n_features - b * GROUP_SIZE)
        for i in range(n_documents):
            for j in range(width):
                x = X[b * GROUP_SIZE + j, i]
                U[b * n_documents + i, j] = x
                C[b * n_documents + i, j] = x / ridge
                power[b, j] += x * (x / ridge)
                target[b, j] += (x / ridge) * y[i]
    return C, U, power, target, np.zeros_like(power)


@kernel
def _changes(C: Matrix, x: Vector, c: float, change: Matrix) -> None:
    """Write c · xᵀC of every feature, x the feature just selected."""
    total = np.empty((1, GROUP_SIZE))
    for b in range(len(change)):
        start = b * len(x)
        even_sum = odd_sum = spread(0.0)  # two sums hide the latency of an addition
        for i in range(0, len(x) - 1, 2):
            even_sum = even_sum + spread(x[i]) * load(C, start + i)
            odd_sum = odd_sum + spread(x[i + 1]) * load(C, start + i + 1)
        if len(x) % 2:
            even_sum = even_sum + spread(x[len(x) - 1]) * load(C, start + len(x) - 1)
        store(total, 0, even_sum + odd_sum)
        for j in range(GROUP_SIZE):
            change[b, j] = c * total[0, j]


@kernel
def _update_and_try(
    feature_state: FeatureState, document_state: DocumentState, query_state: QueryState
) -> Matrix:
    """Update C and U after the last selection, and return the error (n_blocks, lanes) with each further feature.

    In the first step the arrays of the feature selected last are 0. All other arrays have been updated.
    """
    C, U, power, target, change = feature_state
    a, p, column, scaled = document_state
    offsets, through, g = query_state
    n_documents = len(a)
    error = np.empty_like(power)
    factor = np.empty((1, GROUP_SIZE))
    inner = np.empty((1, GROUP_SIZE))
    ahead = np.empty((1, GROUP_SIZE))
    for b in range(len(power)):
        start = b * n_documents
        total = spread(0.0)
        changes = load(change, b)
        for q in range(len(offsets) - 1):
            begin, end = offsets[q], offsets[q + 1]
            inner_c = spread(0.0)
            for i in range(begin, end):
                inner_c = inner_c + spread(scaled[i]) * load(C, start + i)
            store(inner, 0, inner_c)
            for j in range(GROUP_SIZE):
                factor[0, j] = change[b, j] + g[q] * (inner[0, j] - change[b, j] * through[q])
            factors = load(factor, 0)
            inner_a = inner_v = spread(0.0)
            for i in range(begin, end):
                u = load(U, start + i) - spread(scaled[i]) * factors
                v = load(C, start + i) - spread(column[i]) * changes
                store(U, start + i, u)
                store(C, start + i, v)
                inner_a = inner_a + u * spread(a[i])
                inner_v = inner_v + u * v
            store(inner, 0, inner_a)
            store(ahead, 0, inner_v)
            for j in range(GROUP_SIZE):
                d = target[b, j] / (1.0 + power[b, j])
                share = ahead[0, j] - (1.0 + power[b, j])
                weight = 1.0 / share if share < -MIN_REMAINDER * (1.0 + power[b, j]) else np.nan
                factor[0, j] = d + weight * (inner[0, j] - d * ahead[0, j])
            factors = load(factor, 0)
            for i in range(begin, end):
                residual = spread(p[i]) - factors * load(U, start + i)
                total = total + residual * residual
        store(error, b, total)
    return error
