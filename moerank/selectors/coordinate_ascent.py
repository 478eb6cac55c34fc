"""Coordinate ascent: the weights of a few features by searching a ranking metric along one at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.kernels.scores import linear_scores
from moerank.metrics import Metric

__all__ = ["coordinate_ascent"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

FIRST_STEP = 0.001
FIRST_SHARE = 0.05
DOUBLINGS = 25


def coordinate_ascent(
    data: RankingData,
    metric: Metric,
    features: Sequence[int] | None = None,
    restarts: int = 5,
    tolerance: float = 0.001,
) -> tuple[Vector, float]:
    """Return weights of some features that rank `data` well, with Σ |w| = 1, and their metric.

    From equal weights, the weight of one feature after the other is changed by ±s, ±3s, ±7s … ±(2²⁵ − 1)s, or set to
    0, whichever ranks best, if that is better than before. The first step s is 0.001, or a twentieth of the weight
    where 0.001 is more than half of it. This ends with a pass that gains less than `tolerance`, or
    nothing.

    Parameters
    ----------
    data : RankingData
    metric : Metric
    features : sequence of int, optional
        Columns of X, at least one. Default: all.
    restarts : int, default 5
        Searches, each of which begins its passes with the next feature; at most one for each feature.
    tolerance : float, default 0.001

    Returns
    -------
    weights : ndarray, shape (len(features),)
    value : float
        The metric of wᵀx.

    Notes
    -----
    A search along a feature is one evaluation of the metric for 51 individuals. The constants are those of RankLib,
    which tries the decreases only where no increase helps, and shuffles the features for each restart.

    References
    ----------
    D. Metzler, W. B. Croft: Linear feature-based models for information retrieval. Information Retrieval 10, 2007.

    Examples
    --------
    >>> from moerank.metrics import NDCG
    >>> data = RankingData([[0.0, 0.9], [0.5, 0.6], [0.4, 0.5]], y=[0, 1, 2])
    >>> weights, value = coordinate_ascent(data, NDCG(3))
    >>> value
    1.0
    """
    X = data.X64 if features is None else np.ascontiguousarray(data.X64[:, features])
    found = [_ascend(data, X, metric, first, tolerance) for first in range(min(restarts, X.shape[1]))]
    return max(found, key=lambda result: result[1])


def _ascend(data: RankingData, X: Matrix, metric: Metric, first: int, tolerance: float) -> tuple[Vector, float]:
    """Return the result of one search over the columns of X, whose passes begin with column `first`."""

    def rank() -> tuple[Vector, float]:
        table = linear_scores(X, w[None])
        return table[:, 0], float(metric.batch(data, table)[0])

    n_features = X.shape[1]
    w = np.full(n_features, 1.0 / n_features)
    scores, value = rank()
    gain = np.inf
    while gain > 0.0 and gain >= tolerance:
        before = value
        for f in [*range(first, n_features), *range(first)]:
            changes = _changes(w, f)
            values = metric.batch(data, scores[:, None] + X[:, f, None] * changes)
            best = int(np.argmax(values))
            if values[best] > value:
                w[f] += changes[best]
                w /= np.abs(w).sum()
                scores, value = rank()
        gain = value - before
    return w, value


def _changes(w: Vector, f: int) -> Vector:
    """Return the changes of weight f that are tried."""
    size = abs(w[f])
    step = FIRST_SHARE * size if 0.0 < 0.5 * size < FIRST_STEP else FIRST_STEP
    up = step * (2.0 ** np.arange(1, DOUBLINGS + 1) - 1.0)
    changes = np.concatenate([up, -up, [-w[f]]])
    return changes[(w[f] + changes != 0) | (np.abs(w).sum() > size)]
