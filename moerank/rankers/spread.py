"""How far features spread within queries: what a ranker that adds them up can see of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData, centre_in_queries
from moerank.data.blocks import ROWS, blocks, column_block
from moerank.data.shares import add_up
from moerank.kernels.columns import add_extents
from moerank.kernels.lanes import lanes

__all__ = ["MOST", "Apart", "features_apart", "varying_in_queries"]

MOST = 1e4
"""The largest ratio of two standard deviations that needs no word."""


class Apart(NamedTuple):
    """The features with the largest and the smallest standard deviation within queries: columns, and the values."""

    large: int
    small: int
    largest: float
    smallest: float

    @property
    def ratio(self) -> float:
        """The ratio of the two, infinity if it is too large to be a number."""
        return self.largest / self.smallest if self.smallest > self.largest / 1e300 else float("inf")


def varying_in_queries(train: RankingData) -> NDArray[np.bool_]:
    """Return the features in which two documents of some query differ, shape (n_features,), remembered."""
    return _bounds(train).varies


def features_apart(train: RankingData) -> Apart | None:
    """Return the features that differ most in scale, or None if their ratio is at most 10,000; remembered.

    The scale of a feature is the standard deviation √(Σ_q Σ_{i ∈ q} (x_i − x̄_q)² / n) over all documents. Only features
    that vary in some query count.

    Notes
    -----
    O(n_documents · n_features).
    """
    return train.remember("features far apart", lambda: _compare(train))


class _Bounds(NamedTuple):
    """Per feature: whether it varies in a query, its largest extent in one, and bounds of its deviation."""

    varies: NDArray[np.bool_]
    unit: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]


def _bounds(train: RankingData) -> _Bounds:
    """Return what the extents say of the deviations, which mostly suffices; remembered.

    Of the m documents of a query with extent e, the sum of squares is between e² / 2 and m e² / 4.
    """

    def compute() -> _Bounds:
        extents = train.map(_extents)
        largest = np.max([shard[0] for shard in extents], axis=0)
        varies = largest > 0.0
        unit = np.where(varies, largest, 1.0)
        squares, weighted = add_up((0, len(extents)), lambda i: _in_unit(*extents[i], unit))
        return _Bounds(
            varies=varies,
            unit=unit,
            least=np.sqrt(squares / (2 * train.n_documents)) * unit,
            most=np.sqrt(weighted / (4 * train.n_documents)) * unit,
        )

    return train.remember("spread in queries", compute)


def _extents(data: RankingData) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return of each feature the largest extent in a query, and the sums of squares in this unit."""
    largest, squares, weighted = np.zeros((3, data.n_features))
    width = lanes(data.X.dtype.type)
    for begin, end in data.query_blocks(ROWS):
        offsets = data.offsets[begin : end + 1]
        block = column_block(data.X, int(offsets[0]), int(offsets[-1]))
        add_extents(*block, offsets - offsets[0], width, largest, squares, weighted)
    return largest, squares, weighted


def _in_unit(
    largest: NDArray[np.float64],
    squares: NDArray[np.float64],
    weighted: NDArray[np.float64],
    unit: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums of squares of a shard in the unit of all shards."""
    share = largest / unit
    return squares * share * share, weighted * share * share


def _squares(data: RankingData, varies: NDArray[np.int64], unit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Σ (x − x̄_q)² of some features in their units, shape (n_varies,)."""
    total = np.zeros(len(varies))
    for begin, end in blocks(data.offsets, ROWS):
        rows = slice(data.offsets[begin], data.offsets[end])
        offsets = data.offsets[begin : end + 1] - data.offsets[begin]
        units = data.X[rows][:, varies] / unit
        total += (centre_in_queries(units, offsets) ** 2).sum(axis=0)
    return total


def _compare(train: RankingData) -> Apart | None:
    bounds = _bounds(train)
    varies = np.flatnonzero(bounds.varies)
    if len(varies) < 2 or bounds.most[varies].max() <= MOST * bounds.least[varies].min():
        return None
    total = train.total(_squares, varies, bounds.unit[varies])
    deviation = np.sqrt(total / train.n_documents) * bounds.unit[varies]
    large, small = int(deviation.argmax()), int(deviation.argmin())
    if deviation[large] <= MOST * deviation[small]:
        return None
    return Apart(int(varies[large]), int(varies[small]), float(deviation[large]), float(deviation[small]))
