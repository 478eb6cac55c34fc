"""Absolute Pearson correlations over all documents, whatever their query: of features, and of features with labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from moerank.data.blocks import column_block
from moerank.kernels.columns import centre_columns, columns_seen
from moerank.kernels.lanes import lanes
from moerank.kernels.square import in_order, sheet, square

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
    for _, _, centred in _centred_blocks(X):
        scatter += square(centred)[: X.shape[1], : X.shape[1]]
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
    for begin, end, block in _centred_blocks(X):
        Z = block[: X.shape[1], : end - begin]
        product += in_order(Z, centred[begin:end])
        length += in_order(Z * Z, np.ones(end - begin))
    return np.asarray(np.abs(product) / _or_one(np.sqrt(length)) / np.sqrt((centred * centred).sum()))


def _centred_blocks(X: Matrix) -> Iterator[tuple[int, int, Matrix]]:
    """Yield the rows of blocks of X and, as a sheet, their features less the mean of all documents, a row each.

    A constant feature is 0, and one too faint to be squared is scaled up. The mean is that of the values added up in
    order of document, whichever way X lies in memory.
    """
    n, n_features = X.shape
    total, least, largest = np.zeros(n_features), np.full(n_features, np.inf), np.full(n_features, -np.inf)
    places = [(begin, min(begin + BLOCK, n)) for begin in range(0, n, BLOCK)]
    for begin, end in places:
        columns_seen(*column_block(X, begin, end), end - begin, lanes(X.dtype.type), total, least, largest)
    size = np.maximum(np.abs(least), np.abs(largest))
    divisor = np.where(size < SMALLEST_SQUARED, _or_one(size), 1.0)
    divisor[least == largest] = 0.0
    for begin, end in places:
        centred = sheet(n_features, end - begin)
        centre_columns(*column_block(X, begin, end), end - begin, total / n, divisor, centred)
        yield begin, end, centred


def _or_one(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(values > 0.0, values, 1.0)
