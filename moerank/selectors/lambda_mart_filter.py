"""Filters that order the features by what a LambdaMART makes of them, and serve a LambdaMART."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from moerank.data import RankingData
from moerank.rankers.base import Grid, Matrix
from moerank.rankers.lambda_mart import FEW_LEAVES, LambdaMART, leaf_sizes
from moerank.rankers.population import AnyRanker
from moerank.selectors.filter import Filter

__all__ = ["LambdaMARTFilter", "n_that_vary", "sizes_by_dropping"]

DROP = 0.2
"""Share of the features by which the sizes of the grid differ: with LambdaMART, every size would take too long."""


class LambdaMARTFilter(Filter):
    """Base of the filters whose order comes from LambdaMART rankers, and that train one on the first features.

    A subclass implements `_order`. Parameters and attributes are those of `LambdaMARTGain`.
    """

    _additive = False
    _by_thresholds = True
    _size = None

    def __init__(
        self,
        n_features_to_select: int = 10,
        ranker: AnyRanker | None = None,
        n_trees: int = 300,
        learning_rate: float = 0.1,
        n_leaves: int = 10,
        min_leaf: int = 1,
    ) -> None:
        super().__init__(n_features_to_select, ranker)
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.n_leaves = n_leaves
        self.min_leaf = min_leaf

    def without_selection(self) -> Any:
        """Return the ranker that the filter ends in; its number of trees is to be chosen anew for all features."""
        return self._trees() if self.ranker is None else clone(self.ranker)

    def _grid_sizes(self, train: RankingData) -> list[int]:
        """Return sizes about a fifth apart: every size would train too many rankers."""
        return sizes_by_dropping(n_that_vary(train), DROP)

    def _own_grid(self, train: RankingData) -> Grid:
        """Return trees of 3 leaves with 0.25 % of the documents at least, and the trees as they are."""
        return [
            {"n_leaves": FEW_LEAVES, "min_leaf": leaf_sizes(train.n_documents)[0]},
            {"n_leaves": self.n_leaves, "min_leaf": self.min_leaf},
        ]

    def _ranker_grid(self, train: RankingData) -> Grid:
        return [{}] if self.ranker is None else super()._ranker_grid(train)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._trees()._check_parameters()

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self._arrange(train, validation)
        if self.ranker is None:
            chosen = self._first_features(np.array([self.n_features_to_select]))[0]
            held_out = None if validation is None else validation.with_features(chosen)
            self.n_trees_ = self._stopped(train.with_features(chosen), held_out).n_trees
        sizes = np.array([self.n_features_to_select])
        (self.support_,), self.population_ = self._train_first(train, sizes)

    def _trees(self) -> LambdaMART:
        return LambdaMART(self.n_trees, self.learning_rate, self.n_leaves, self.min_leaf)

    def _stopped(self, train: RankingData, validation: RankingData | None) -> LambdaMART:
        """Return a LambdaMART with the number of trees that the validation data choose, not fitted yet."""
        return self._trees() if validation is None else self._trees().stopped(train, validation)

    def _chosen_ranker(self) -> Any:
        return self._trees().set_params(n_trees=self.n_trees_) if self.ranker is None else self.ranker

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        return self._scores(X)[:, None]


def n_that_vary(train: RankingData) -> int:
    """Return the number of features that are not constant in all documents, 1 at the least."""
    return max(1, int(np.count_nonzero(np.ptp(train.X, axis=0) > 0)))


def sizes_by_dropping(n_features: int, drop: float) -> list[int]:
    """Return the sizes, smallest first, that are left where `drop` of the features, one at least, go at a time.

    Examples
    --------
    >>> sizes_by_dropping(20, 0.2)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 20]
    """
    sizes = [n_features]
    while sizes[-1] > 1:
        sizes.append(sizes[-1] - max(1, int(drop * sizes[-1])))
    return sizes[::-1]
