"""Greedy forward selection for RankRLS with leave-query-out errors, by a recursion over the selected features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["greedy_rank_rls"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@kernel
def greedy_rank_rls(
    X: Matrix, y: Vector, offsets: NDArray[np.int64], ridge: float, n_steps: int
) -> tuple[NDArray[np.int64], Vector, Matrix]:
    """Select `n_steps` features, each the one with the least leave-query-out error beside those before it.

    With S the selected features and G = (X_Sᵀ X_S + ridge · I)⁻¹ over documents, the recursion holds a = G y, C = G Xᵀ,
    and for each query Q the leave-query-out residuals p_Q = (G_QQ)⁻¹ a_Q and U_Q = (G_QQ)⁻¹ C_Q. A new feature
    changes G by a matrix of rank one, so that neither its error nor the update needs a system to be solved.

    Parameters
    ----------
    X : (n_features, n_documents), a row a feature, centred in every query
    y : (n_documents,), centred in every query
    offsets : (n_queries + 1,), where queries begin
    ridge : positive
    n_steps : at most n_features

    Returns
    -------
    order : (n_steps,), the features in the order of their selection
    errors : (n_steps,), Σ_Q ‖y_Q − prediction without Q‖² after each step
    W : (n_steps, n_features), the weights after each step, 0 off the selected features

    Notes
    -----
    O(n_steps · n_documents · n_features) time, O(n_documents · n_features) memory. Ties go to the first feature.
    """
    n_features, n_documents = X.shape
    a, p = y / ridge, y.copy()
    C, U = X / ridge, X.copy()
    selected = np.zeros(n_features, np.bool_)
    order = np.empty(n_steps, np.int64)
    errors = np.empty(n_steps)
    W = np.zeros((n_steps, n_features))
    change = np.empty(n_features)
    column, scaled = np.empty(n_documents), np.empty(n_documents)
    for step in range(n_steps):
        best = -1
        least = np.inf
        for i in range(n_features):
            if not selected[i]:
                error = _error_with(X[i], C[i], U[i], a, p, y, offsets)
                if error < least or best < 0:
                    best, least = i, error
        selected[best] = True
        order[step], errors[step] = best, least

        c = 1.0 / (1.0 + _dot(X[best], C[best]))
        d = c * _dot(C[best], y)
        for j in range(n_features):
            change[j] = c * _dot(X[best], C[j])
        for i in range(n_documents):
            column[i] = C[best, i]
            scaled[i] = U[best, i]  # as they are before the update, which overwrites them
        for q in range(len(offsets) - 1):
            begin, end = offsets[q], offsets[q + 1]
            u, v = scaled[begin:end], column[begin:end]
            g = 1.0 / (_dot(v, u) - 1.0 / c)
            inner = _dot(u, a[begin:end]) - d * _dot(u, v)
            _add(p[begin:end], u, -d - g * inner)
            through = _dot(u, v)
            for j in range(n_features):
                inner = _dot(u, C[j, begin:end]) - change[j] * through
                _add(U[j, begin:end], u, -change[j] - g * inner)
        _add(a, column, -d)
        for j in range(n_features):
            _add(C[j], column, -change[j])
        for j in range(n_features):
            if selected[j]:
                W[step, j] = _dot(X[j], a)
    return order, errors, W


@kernel
def _error_with(
    x: Vector, column: Vector, scaled: Vector, a: Vector, p: Vector, y: Vector, offsets: NDArray[np.int64]
) -> float:
    """Leave-query-out error after adding the feature with values x, C = column and U = scaled."""
    c = 1.0 / (1.0 + _dot(x, column))
    d = c * _dot(column, y)
    error = 0.0
    for q in range(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        u, v = scaled[begin:end], column[begin:end]
        through = _dot(v, u)
        g = 1.0 / (through - 1.0 / c)
        factor = d + g * (_dot(u, a[begin:end]) - d * through)
        for i in range(begin, end):
            residual = p[i] - factor * scaled[i]
            error += residual * residual
    return error


@kernel
def _dot(a: Vector, b: Vector) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel
def _add(target: Vector, source: Vector, factor: float) -> None:
    """Add factor · source to target."""
    for i in range(len(target)):
        target[i] += factor * source[i]
