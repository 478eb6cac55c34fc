"""Greedy forward selection for RankRLS with leave-query-out errors, by a recursion over the selected features.

Eight features are the lanes of a vector. Only the arrays C and U of the recursion have the size n_features ×
n_documents. A step reads C once, for the change of each feature by the one just selected. Then it updates C and U query
by query, and sums the errors of the next step.
"""

from typing import TypeAlias

import numpy as np

from moerank.arrays import Array, Integers, Matrix, Vector
from moerank.kernels.algebra import (
    VECTOR_WIDTH,
    dot,
    factorise,
    panels_of,
    plus_ridge,
    product,
    solve,
    square,
)
from moerank.kernels.compiled import kernel
from moerank.kernels.lanes import blend, load, spread, store

# Minimum share of 1 + xᵀGx that remains without a query; below it, rounding decides about the error.
MIN_REMAINDER = 1e-13

# C and U (n_blocks · n_documents, lanes); xᵀC, Cᵀy and the result of `_changes`, each (n_blocks, lanes); a, p, and C
# and U of the feature selected last, before its selection; two numbers for each query that depend on this feature.
State: TypeAlias = tuple[Array, ...]


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
    panels = panels_of(X)
    shares = panels / ridge
    power = np.einsum("bij,bij->bj", panels, shares)
    state = (
        shares.reshape(-1, VECTOR_WIDTH),
        panels.reshape(-1, VECTOR_WIDTH),
        power,
        np.einsum("bij,i->bj", shares, y),
        np.zeros_like(power),
        y / ridge,
        y.copy(),
        *np.zeros((2, n_documents)),
        *np.zeros((2, len(offsets) - 1)),
    )
    unselected = np.ones(n_features, np.bool_)
    order, errors = np.zeros(n_steps, np.int64), np.full(n_steps, np.nan)
    W = np.zeros((n_steps, n_features))
    for step in range(n_steps):
        error = _update_and_try(state, offsets).ravel()[:n_features]
        order[step] = best = int(np.where(unselected, error, np.inf).argmin())
        if not np.isfinite(error[best]):
            return order, errors, W
        errors[step], unselected[best] = error[best], False
        _select(best, X, state, offsets)
    W[:, order] = _weights_of_steps(X[order], y, ridge)
    return order, errors, W


def _weights_of_steps(X: Matrix, y: Vector, ridge: float) -> Matrix:
    """Return the weights (n_steps, n_steps) of ridge regression on the first 1, 2, … features."""
    W, masks = np.zeros((len(X), len(X))), np.tri(len(X), dtype=np.bool_)
    factor, target = factorise(plus_ridge(square(X), ridge), masks[-1:])[0], product(X, y)
    for mask, w in zip(masks, W, strict=True):
        solve(factor, mask, target, w)
    return W


@kernel
def _select(best: int, X: Matrix, state: State, offsets: Integers) -> None:
    """Update everything except C and U after the selection of the feature `best`."""
    C, U, power, target, change, a, p, column, scaled, through, g = state
    n_documents = len(a)
    block, lane = best // VECTOR_WIDTH, best % VECTOR_WIDTH
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
def _changes(C: Matrix, x: Vector, c: float, change: Matrix) -> None:
    """Write c · xᵀC of every feature, x the feature just selected."""
    for b in range(len(change)):
        start = b * len(x)
        even_sum = odd_sum = spread(0.0)  # two sums hide the latency of an addition
        for i in range(0, len(x) - 1, 2):
            even_sum = even_sum + spread(x[i]) * load(C, start + i)
            odd_sum = odd_sum + spread(x[i + 1]) * load(C, start + i + 1)
        if len(x) % 2:
            even_sum = even_sum + spread(x[len(x) - 1]) * load(C, start + len(x) - 1)
        store(change, b, spread(c) * (even_sum + odd_sum))


@kernel
def _update_and_try(state: State, offsets: Integers) -> Matrix:
    """Update C and U after the last selection, and return the error (n_blocks, lanes) with each further feature.

    In the first step the arrays of the feature selected last are 0. All other arrays have been updated.
    """
    C, U, power, target, change, a, p, column, scaled, through, g = state
    error, one, impossible = np.empty_like(power), spread(1.0), spread(np.nan)
    for b in range(len(power)):
        start = b * len(a)
        total = spread(0.0)
        changes, grown = load(change, b), one + load(power, b)
        d = load(target, b) / grown
        for q in range(len(offsets) - 1):
            begin, end = offsets[q], offsets[q + 1]
            inner_c = spread(0.0)
            for i in range(begin, end):
                inner_c = inner_c + spread(scaled[i]) * load(C, start + i)
            factors = changes + spread(g[q]) * (inner_c - changes * spread(through[q]))
            inner_a = inner_v = spread(0.0)
            for i in range(begin, end):
                u = load(U, start + i) - spread(scaled[i]) * factors
                v = load(C, start + i) - spread(column[i]) * changes
                store(U, start + i, u)
                store(C, start + i, v)
                inner_a = inner_a + u * spread(a[i])
                inner_v = inner_v + u * v
            share = inner_v - grown
            weight = blend(spread(-MIN_REMAINDER) * grown > share, one / share, impossible)
            factors = d + weight * (inner_a - d * inner_v)
            for i in range(begin, end):
                residual = spread(p[i]) - factors * load(U, start + i)
                total = total + residual * residual
        store(error, b, total)
    return error
