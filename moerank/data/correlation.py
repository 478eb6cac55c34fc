"""Absolute Pearson correlations over all documents, whatever their query: of features, and of features with labels."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.blas import one_blas_thread

__all__ = ["feature_correlations", "label_correlations"]

Matrix: TypeAlias = NDArray[np.float64]

# Squares of smaller values lose digits, and in the end vanish: such a feature is scaled up first.
SMALLEST_SQUARED = 1e-140


def feature_correlations(X: Matrix) -> Matrix:
    """Return |Pearson correlation| of each two features of X (n_documents, n_features), shape (n_features, n_features).

    A constant feature correlates with nothing, not even with itself. O(n_documents · n_features²).

    Examples
    --------
    >>> feature_correlations(np.array([[0.0, 3.0, 7.0], [1.0, 2.0, 7.0], [2.0, 1.0, 7.0]])).round(6).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    Z = _standardised(X)
    with one_blas_thread():
        return np.abs(Z.T @ Z)


def label_correlations(X: Matrix, y: NDArray[np.int64]) -> Matrix:
    """Return |Pearson correlation| of each feature of X (n_documents, n_features) with the labels y (n_documents,).

    Shape (n_features,); 0 for a constant feature. The labels must not all be equal. O(n_documents · n_features).

    Examples
    --------
    >>> label_correlations(np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]]), np.array([2, 1, 0])).round(6).tolist()
    [1.0, 0.0]
    """
    Z, centred = _standardised(X), y - y.mean()
    with one_blas_thread():
        return np.asarray(np.abs(centred @ Z) / np.linalg.norm(centred))


def _standardised(X: Matrix) -> Matrix:
    """X with every feature at mean 0 and norm 1 over all documents; a constant feature is 0."""
    varies = X.min(axis=0) < X.max(axis=0)
    faint = varies & (np.abs(X).max(axis=0) < SMALLEST_SQUARED)
    if faint.any():
        X = np.where(faint, X / np.where(faint, np.abs(X).max(axis=0), 1.0), X)
    Z = np.where(varies, X - X.mean(axis=0), 0.0)
    return np.asarray(Z / np.where(varies, np.linalg.norm(Z, axis=0), 1.0))
