"""Recursive elimination: the features that a LambdaMART splits by least go, and it is trained again."""

from __future__ import annotations

import numpy as np

from moerank.checks import check_share
from moerank.data import RankingData
from moerank.rankers.base import Mask
from moerank.rankers.population import AnyRanker
from moerank.selectors.filter import Order
from moerank.selectors.lambda_mart_filter import LambdaMARTFilter, n_that_vary, sizes_by_dropping

__all__ = ["LambdaMARTRFE"]


class LambdaMARTRFE(LambdaMARTFilter):
    """Train a LambdaMART, drop a share of the features with the least gain, and so on until one is left.

    The gain of a feature is the total over the splits by it, of the trees trained on the features that are left.

    Parameters
    ----------
    n_features_to_select : int, default 10
        The largest number of features to select: the elimination passes some sizes only, and the largest of them up to
        this number counts.
    ranker : estimator, optional
        Trained on the selected features. Default: a LambdaMART with the arguments below.
    drop : float, default 0.2
        Share of the remaining features that each round drops, in (0, 1): rounded down, and one at the least.
    n_trees, learning_rate, n_leaves, min_leaf
        As in `LambdaMARTGain`.

    Attributes
    ----------
    order_ : ndarray of int, shape (n_varying,)
        The features, those that were left longest first; those dropped together by their last gain.
    support_, population_, coef_, forest_, n_trees_
        As in `LambdaMARTGain`.

    Notes
    -----
    About ln(n_features) / drop trainings of LambdaMART, twice as many with validation data. Of equal gains the later
    column is dropped first. The path has a ranker for each size that the elimination passes, and repeats it up to the
    next one. The grid is ours: these sizes, with each of them the trees as they are and trees of 3 leaves, with 0.25 %
    of the documents at least. The rankers of the path have as many trees as the one that is served.

    References
    ----------
    I. Guyon, J. Weston, S. Barnhill, V. Vapnik: Gene selection for cancer classification using support vector
    machines. Machine Learning 46, 2002, for weights of a linear machine in place of gains.

    Examples
    --------
    >>> from moerank.selectors.lambda_mart_rfe import LambdaMARTRFE
    >>> X = [[0.3, 0.0, 0.5], [0.1, 0.3, 0.5], [0.2, 0.6, 0.4], [0.2, 0.9, 0.6]]
    >>> LambdaMARTRFE(1, n_trees=5).fit(X, y=[0, 0, 1, 1]).order_.tolist()
    [1, 0, 2]
    """

    def __init__(
        self,
        n_features_to_select: int = 10,
        ranker: AnyRanker | None = None,
        drop: float = 0.2,
        n_trees: int = 300,
        learning_rate: float = 0.1,
        n_leaves: int = 10,
        min_leaf: int = 1,
    ) -> None:
        super().__init__(n_features_to_select, ranker, n_trees, learning_rate, n_leaves, min_leaf)
        self.drop = drop

    def _grid_sizes(self, train: RankingData) -> list[int]:
        return sizes_by_dropping(n_that_vary(train), self.drop)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share(one=False, drop=self.drop)

    def _order(self, train: RankingData, validation: RankingData | None) -> Order:
        left = np.arange(train.n_features)
        dropped: list[int] = []
        for size in sizes_by_dropping(train.n_features, self.drop)[-2::-1]:
            mask = np.isin(np.arange(train.n_features), left)
            part = train.with_features(mask)
            held_out = None if validation is None else validation.with_features(mask)
            gain = self._stopped(part, held_out)._learn(part).booster_.feature_importance("gain")
            best_first = left[np.argsort(-gain, kind="stable")]
            dropped = [*best_first[size:].tolist(), *dropped]
            left = np.sort(best_first[:size])
        return np.array([*left.tolist(), *dropped])

    def _first_features(self, sizes: Order) -> Mask:
        visited = np.array(sizes_by_dropping(len(self.order_), self.drop))
        return super()._first_features(visited[np.searchsorted(visited, sizes, side="right") - 1])
