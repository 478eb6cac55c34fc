"""Values of neighbouring sizes averaged, so that no spike among validation values decides a number of rounds."""

from __future__ import annotations

from collections import deque

import numpy as np

from moerank.data import RankingData
from moerank.metrics import Metric
from moerank.rankers.arguments import Vector

__all__ = ["TrailingMean", "steadied"]

REACH = 10
"""Neighbours on each side that count; fewer where there are less than ten times as many values."""


def steadied(values: Vector) -> Vector:
    """Return the mean of each value and its neighbours, up to ten on each side and a tenth of all, shape (n_sizes,).

    The metric of a boosted ranker on few queries jumps from round to round, often highest in the first ones, where a
    single round moves many documents at once. Near the ends only the neighbours that there are count, so that an end
    weighs no more than any other value.

    Examples
    --------
    >>> values = np.array([0.9, 0.1, 0.1, 0.5, 0.6, 0.5, 0.1, 0.1, 0.1, 0.1])
    >>> int(values.argmax()), int(steadied(values).argmax())
    (0, 4)
    """
    reach = min(REACH, len(values) // 10)
    windows = [values[max(0, i - reach) : i + reach + 1] for i in range(len(values))]
    # As differences, so that equal values have the same mean to the bit, however many they are.
    return np.array([value + (window - value).mean() for value, window in zip(values, windows, strict=True)])


class TrailingMean:
    """The mean of a metric over the last 21 rounds, as many as `steadied` looks at.

    A training that is ended by it goes past the spikes of single rounds. As long as there are fewer rounds it is
    negative and grows, so that nothing ends there.

    Parameters
    ----------
    metric : Metric

    Examples
    --------
    >>> from moerank.metrics import NDCG
    >>> data, watched = RankingData([[0.0], [1.0]], y=[0, 1]), TrailingMean(NDCG(1))
    >>> [watched(data, np.array([0.0, 1.0])) for _ in range(21)][-2:], round(watched(data, np.array([1.0, 0.0])), 3)
    ([-1.0, 1.0], 0.952)
    """

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._last: deque[float] = deque(maxlen=2 * REACH + 1)

    def __call__(self, data: RankingData, scores: Vector) -> float:
        """Return the mean with the value of these scores for the documents of `data`."""
        self._last.append(float(self._metric.score(data, scores)))
        missing = 2 * REACH + 1 - len(self._last)
        return -float(missing) if missing else float(np.mean(self._last))
