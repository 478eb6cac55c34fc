"""Absolute Pearson correlations over all documents, whatever their query: of features, and of features with labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.square import in_order, square

__all__ = ["feature_correlations", "label_correlations"]

Matrix: TypeAlias = NDArray[np.float64]

# Squares of smaller values lose digits, and in the end vanish: such a feature is scaled up first.
SMALLEST_SQUARED = 1e-140

BLOCK = 2048
"""Documents that are centred at a time, so that no copy of all is made."""


def feature_correlations(X: Matrix) -> Matrix:
    """Return |Pearson correlation| of each two features of X (n_documents, n_features), shape (n_features, n_features).

    A constant feature correlates with nothing, not even with itself. O(n_documents · n_features²).

    Examples
    --------
    >>> feature_correlations(np.array([[0.0, 3.0, 7.0], [1.0, 2.0, 7.0], [2.0, 1.0, 7.0]])).round(6).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    scatter = np.zeros((X.shape[1], X.shape[1]))
    for _, Z in _centred_blocks(X):
        scatter += square(np.ascontiguousarray(Z.T))
    norm = _or_one(np.sqrt(np.diagonal(scatter)))
    share = np.abs(scatter / norm / norm[:, None])
    return 0.5 * (share + share.T)  # as the order of the divisions does not give it


def label_correlations(X: Matrix, y: NDArray[np.int64]) -> Matrix:
    """Return |Pearson correlation| of each feature of X (n_documents, n_features) with the labels y (n_documents,).

    Shape (n_features,); 0 for a constant feature. The labels must not all be equal. O(n_documents · n_features).

    Examples
    --------
    >>> label_correlations(np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]]), np.array([2, 1, 0])).round(6).tolist()
    [1.0, 0.0]
    """
    centred = y - y.mean()
    product, length = np.zeros((2, X.shape[1]))
    for rows, Z in _centred_blocks(X):
        columns = np.ascontiguousarray(Z.T)
        product += in_order(columns, centred[rows])
        length += (Z * Z).sum(axis=0)
    return np.asarray(np.abs(product) / _or_one(np.sqrt(length)) / np.sqrt((centred * centred).sum()))


def _centred_blocks(X: Matrix) -> Iterator[tuple[slice, Matrix]]:
    """Yield the rows of blocks of X and their features less the mean of all documents, in double precision.

    A constant feature is 0, and one too faint to be squared is scaled up.
    """
    mean, least, largest = X.mean(axis=0, dtype=np.float64), X.min(axis=0), X.max(axis=0)
    size = np.maximum(np.abs(least), np.abs(largest)).astype(np.float64)
    constant, divisor = least == largest, np.where(size < SMALLEST_SQUARED, _or_one(size), 1.0)
    for begin in range(0, len(X), BLOCK):
        rows = slice(begin, begin + BLOCK)
        Z = (X[rows] - mean) / divisor
        Z[:, constant] = 0.0
        yield rows, Z


def _or_one(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(values > 0.0, values, 1.0)
