"""The features by which a LambdaMART gains most: what practitioners look at first."""

from __future__ import annotations

import numpy as np

from moerank.data import RankingData
from moerank.selectors.filter import Order
from moerank.selectors.lambda_mart_filter import LambdaMARTFilter

__all__ = ["LambdaMARTGain"]


class LambdaMARTGain(LambdaMARTFilter):
    """Order the features by the total gain of the splits of a LambdaMART on all features, and train it on the first.

    The gain of a split is the reduction of the loss that its tree was fitted to.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Features to select; fewer if there are not as many that vary.
    ranker : estimator, optional
        Trained on the selected features. Default: a LambdaMART with the arguments below.
    n_trees : int, default 300
        Largest number of trees of each LambdaMART, at least 1. With validation data in `fit` each has the number that
        these choose, see `LambdaMART.stopped`; without them it has all.
    learning_rate : float, default 0.1
        Share of a tree that is added to the score, > 0.
    n_leaves : int, default 10
        Largest number of leaves of a tree, at least 2.
    min_leaf : int, default 1
        Least number of documents in a leaf.

    Attributes
    ----------
    order_, support_, population_, coef_, forest_
        As in `Filter`.
    n_trees_ : int
        Number of trees of the LambdaMART that is served, and of those of the path; only without another `ranker`.

    Notes
    -----
    Two trainings of LambdaMART, or four with validation data. Equal gains, such as those of features that no tree
    splits by, go to the earlier column. Features of many values are overrated, since they offer more splits; of two
    features with the same values one takes all the gain.

    The grid is ours: sizes a fifth apart, and with each of them the trees as they are and trees of 3 leaves, with
    0.25 % of the documents at least. The rankers of the path have as many trees as the one that is served.

    References
    ----------
    J. H. Friedman: Greedy function approximation: a gradient boosting machine. Annals of Statistics 29, 2001,
    section 8.1.

    Examples
    --------
    >>> from moerank.selectors.lambda_mart_gain import LambdaMARTGain
    >>> X = [[0.3, 0.0], [0.1, 0.3], [0.2, 0.6], [0.2, 0.9]]
    >>> LambdaMARTGain(1, n_trees=5).fit(X, y=[0, 0, 1, 1]).order_.tolist()
    [1, 0]
    """

    def _order(self, train: RankingData, validation: RankingData | None) -> Order:
        trees = self._stopped(train, validation)._learn(train)
        return np.argsort(-trees.booster_.feature_importance("gain"), kind="stable")
