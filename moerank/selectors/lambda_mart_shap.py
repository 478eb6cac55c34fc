"""The features that move the scores of a LambdaMART most, by their Shapley values (Lundberg et al., 2020)."""

from __future__ import annotations

from typing import Any

import numpy as np

from moerank.data import RankingData
from moerank.rankers.base import Matrix
from moerank.selectors.filter import Order
from moerank.selectors.lambda_mart_filter import LambdaMARTFilter

__all__ = ["LambdaMARTSHAP", "mean_absolute_shap"]

ENTRIES = 1 << 22
"""Shapley values of so many documents times features are held at once."""


class LambdaMARTSHAP(LambdaMARTFilter):
    """Order the features by their mean |Shapley value| in a LambdaMART on all features, and train it on the first.

    The score of a document is parted among the features by the game in which a set of them plays for the expected
    score given their values. In a tree this expectation follows the splits by features of the set, and takes both ways
    of the others, weighed by the training documents that went there.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Features to select; fewer if there are not as many that vary.
    ranker : estimator, optional
        Trained on the selected features. Default: a LambdaMART with the arguments below.
    n_trees, learning_rate, n_leaves, min_leaf
        As in `LambdaMARTGain`.

    Attributes
    ----------
    order_, support_, population_, coef_, forest_, n_trees_
        As in `LambdaMARTGain`.

    Notes
    -----
    The means are over all training documents, O(n_documents · n_trees · n_leaves · depth²) in blocks of bounded
    memory, beside the trainings, two or with validation data four. Equal means go to the earlier column.

    The grid is ours: sizes a fifth apart, and with each of them the trees as they are and trees of 3 leaves, with
    0.25 % of the documents at least. The rankers of the path have as many trees as the one that is served.

    References
    ----------
    S. M. Lundberg et al.: From local explanations to global understanding with explainable AI for trees. Nature
    Machine Intelligence 2, 2020.

    Examples
    --------
    >>> from moerank.selectors.lambda_mart_shap import LambdaMARTSHAP
    >>> X = [[0.3, 0.0], [0.1, 0.3], [0.2, 0.6], [0.2, 0.9]]
    >>> LambdaMARTSHAP(1, n_trees=5).fit(X, y=[0, 0, 1, 1]).order_.tolist()
    [1, 0]
    """

    def _order(self, train: RankingData, validation: RankingData | None) -> Order:
        trees = self._stopped(train, validation)._learn(train)
        return np.argsort(-mean_absolute_shap(trees.booster_, train.X), kind="stable")


def mean_absolute_shap(booster: Any, X: Matrix, entries: int = ENTRIES) -> Matrix:
    """Return the mean over the rows of X of |Shapley value| of each feature, shape (n_features,).

    `entries` bounds the memory: as many values are held at once, of one row at least.
    """
    total = np.zeros(X.shape[1])
    step = max(1, entries // (X.shape[1] + 1))
    for begin in range(0, len(X), step):
        rows = np.asarray(X[begin : begin + step], np.float64)
        values = booster.predict(rows, pred_contrib=True, num_threads=1)
        total += np.abs(values[:, :-1]).sum(axis=0)  # the last column is the expected score
    return total / len(X)
