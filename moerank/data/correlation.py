"""Absolute Pearson correlations over all documents: of features, and of features with labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from moerank.arrays import Matrix, Vector
from moerank.checks import check_square
from moerank.data.blocks import add_up, column_block
from moerank.data.ranking_data import RankingData
from moerank.data.shards import AnyData
from moerank.kernels.columns import columns_seen
from moerank.kernels.lanes import lanes
from moerank.kernels.products import product, square

SMALLEST_SQUARED = 1e-140
"""Features with smaller values are scaled up first, as their squares would lose digits or vanish."""

BLOCK = 2048
"""Documents that are centred at a time, in place of a copy of all."""


def feature_correlations(data: AnyData | Matrix) -> Matrix:
    """Return |Pearson correlation| of each pair of features, shape (n_features, n_features).

    `data` may be a table (n_documents, n_features), too. A constant feature correlates with nothing, not even with
    itself. O(n_documents · n_features²).
    """
    if isinstance(data, AnyData):
        scatter = data.total(_scatter, *_centre_of(data.map(_seen)))
    else:
        scatter = _scatter(data, *_centre_of([_seen(data)]))
    norm = _or_one(np.sqrt(np.diagonal(scatter)))
    share = np.abs(scatter / norm / norm[:, None])
    return 0.5 * (share + share.T)  # symmetric in spite of the order of the divisions


def label_correlations(data: AnyData) -> Vector:
    """Return |Pearson correlation| of each feature with the relevance label over all documents, shape (n_features,).

    0 for a constant feature. The labels must not all be equal. O(n_documents · n_features).
    """
    mean_label = sum(data.map(_sum_of_labels)) / data.n_documents  # of integers, and so exact
    product, length, label_length = data.total(_label_products, *_centre_of(data.map(_seen)), mean_label)
    return np.asarray(np.abs(product) / _or_one(np.sqrt(length)) / np.sqrt(label_length))


_Seen: TypeAlias = tuple[Vector, Vector, Vector, int]
"""Sum, least and largest value of each feature, and the number of documents."""


def _seen(data: RankingData | Matrix) -> _Seen:
    X = _table(data)
    n, n_features = X.shape
    total, least, largest = np.zeros(n_features), np.full(n_features, np.inf), np.full(n_features, -np.inf)
    for begin, end in _places(n):
        columns_seen(*column_block(X, begin, end), end - begin, lanes(X.dtype.type), total, least, largest)
    return total, least, largest, n


def _centre_of(seen: Sequence[_Seen]) -> tuple[Vector, Vector]:
    """Return the mean and the divisor of each feature: 0 for a constant one, 1 unless squares would vanish."""
    totals, leasts, largests, sizes = zip(*seen, strict=True)
    least, largest = np.min(leasts, axis=0), np.max(largests, axis=0)
    size = np.maximum(np.abs(least), np.abs(largest))
    divisor = np.where(size < SMALLEST_SQUARED, _or_one(size), 1.0)
    divisor[least == largest] = 0.0
    return add_up((0, len(seen)), totals.__getitem__) / sum(sizes), divisor


def _table(data: RankingData | Matrix) -> Matrix:
    return data.X if isinstance(data, RankingData) else data


def _scatter(data: RankingData | Matrix, mean: Vector, divisor: Vector) -> Matrix:
    """Return the sums of the products of each two features less their means, shape (n_features, n_features)."""
    X = _table(data)
    check_square(X.shape[1])
    scatter = np.zeros((X.shape[1], X.shape[1]))
    for _, _, centred in _centred_blocks(X, mean, divisor):
        scatter += square(centred)
    return scatter


def _sum_of_labels(data: RankingData) -> int:
    return int(data.y.sum())


def _label_products(
    data: RankingData, mean: Vector, divisor: Vector, mean_label: float
) -> tuple[Vector, Vector, float]:
    """Return the sums of feature times label, feature squared and label squared, each less its mean."""
    centred = data.y.astype(np.float64) - mean_label
    products, length = np.zeros((2, data.n_features))
    for begin, end, Z in _centred_blocks(data.X, mean, divisor):
        products += product(Z, centred[begin:end])
        length += (Z * Z).sum(axis=1)
    return products, length, float((centred * centred).sum())


def _centred_blocks(X: Matrix, mean: Vector, divisor: Vector) -> Iterator[tuple[int, int, Matrix]]:
    """Yield the rows of blocks of X, and their features less their means, a row each."""
    unit = bool((divisor == 1.0).all())
    for begin, end in _places(len(X)):
        centred = X[begin:end].T.astype(np.float64, order="C")
        centred -= mean[:, None]
        if not unit:
            centred = np.divide(centred, divisor[:, None], out=np.zeros_like(centred), where=divisor[:, None] != 0.0)
        yield begin, end, centred


def _places(n_documents: int) -> list[tuple[int, int]]:
    return [(begin, min(begin + BLOCK, n_documents)) for begin in range(0, n_documents, BLOCK)]


def _or_one(values: Vector) -> Vector:
    return np.where(values > 0.0, values, 1.0)
