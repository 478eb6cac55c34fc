"""ListNet: cross entropy of top-one probabilities, a gradient step a query (Cao et al., 2007)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from moerank.data import RankingData
from moerank.kernels.scores import linear_scores
from moerank.kernels.top_one import descend, top_one_probabilities
from moerank.rankers.base import LinearRanker, Matrix

__all__ = ["ListNet"]


class ListNet(LinearRanker):
    """x"""

    _size: ClassVar[str | None] = "n_epochs"

    def __init__(self, n_epochs: int = 100, learning_rate: float = 0.01) -> None:
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate

    def _weights(self, train: RankingData) -> Matrix:
        target = top_one_probabilities(train.y.astype(float), train.offsets)
        W = descend(train.X, target, train.offsets, self.learning_rate, self.n_epochs)
        self.path_ = self._everywhere(W)
        return W[-1]

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        return linear_scores(X, self.path_)
