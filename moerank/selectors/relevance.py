"""Relevance of single features and similarity of pairs: what NGAS, XGAS and HCAS select by (Gigli et al., 2016)."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from moerank.checks import check_choice
from moerank.data import RankingData
from moerank.kernels.concordance import concordance
from moerank.metrics import NDCG, Metric, as_metric
from moerank.rankers.base import Matrix
from moerank.rankers.lambda_mart import LambdaMART
from moerank.rankers.population import AnyRanker
from moerank.selectors.filter import Filter, Order
from moerank.selectors.gas import spearman
from moerank.selectors.single import single_feature_values

__all__ = ["RelevanceFilter", "absolute_correlations", "values_by_trees"]

Relevance = Literal["measure", "lambdamart"]
Similarity = Literal["spearman", "kendall"]

# Correlations of short queries are often equal, and rounding, by the order of the documents, must not part them.
DIGITS = 12

# Few trees with leaves of many documents, for on a feature alone more of them learn the documents by heart.
ALONE = {"n_trees": 30, "n_leaves": 10, "min_leaf": 20}


class RelevanceFilter(Filter):
    """Base of the filters that order the features by their relevance and the similarity of pairs.

    A subclass implements `_search`. Parameters and attributes are those of `NGAS`.
    """

    def __init__(
        self,
        n_features_to_select: int = 10,
        ranker: AnyRanker | None = None,
        relevance: Relevance = "measure",
        similarity: Similarity = "spearman",
        metric: Metric | str | None = None,
    ) -> None:
        super().__init__(n_features_to_select, ranker)
        self.relevance = relevance
        self.similarity = similarity
        self.metric = metric

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(get_args(Relevance), relevance=self.relevance)
        check_choice(get_args(Similarity), similarity=self.similarity)
        as_metric(self.metric, NDCG(10))

    def _order(self, train: RankingData, validation: RankingData | None) -> Order:
        metric = as_metric(self.metric, NDCG(10))
        if self.relevance == "measure":
            relevance = single_feature_values(train, metric).max(axis=0)
        else:
            relevance = values_by_trees(train, metric)
        return self._search(relevance, absolute_correlations(train, self.similarity))

    def _search(self, relevance: Matrix, similarity: Matrix) -> Order:
        """Return all features, best first; shapes (n_features,) and (n_features, n_features)."""
        raise TypeError(f"{type(self).__name__} does not implement _search")


def values_by_trees(data: RankingData, metric: Metric) -> Matrix:
    """Return the metric of a LambdaMART on each feature alone, shape (n_features,), remembered.

    O(n_features) trainings, and measured on what they are trained on.

    Examples
    --------
    >>> from moerank.data import load_planted_fold
    >>> train, _, _ = load_planted_fold(1, n_queries=12, n_documents=10)
    >>> values_by_trees(train, NDCG(10)).shape == (train.n_features,)
    True
    """

    def compute() -> Matrix:
        alone = [data.with_features(mask) for mask in np.eye(data.n_features, dtype=bool)]
        return np.array([metric.score(one, LambdaMART(**ALONE)._learn(one)._scores(one.X64)) for one in alone])

    return data.remember((metric, "of trees on single features"), compute)


def absolute_correlations(data: RankingData, similarity: Similarity) -> Matrix:
    """Return |ρ| or |τ| of all pairs of features, averaged over queries, (n_features, n_features), remembered.

    Rounded to 12 digits. O(n_features² · Σ_q m log m), m the number of documents of a query.

    Examples
    --------
    >>> data = RankingData([[0.0, 3.0, 1.0], [1.0, 2.0, 0.0], [2.0, 1.0, 2.0]], y=[0, 0, 1])
    >>> absolute_correlations(data, "kendall").round(3).tolist()
    [[1.0, 1.0, 0.333], [1.0, 1.0, 0.333], [0.333, 0.333, 1.0]]
    """

    def compute() -> Matrix:
        if similarity == "spearman":
            return spearman(data).round(DIGITS)
        return np.abs(2.0 * concordance(data.X64, data.offsets) - 1.0).round(DIGITS)

    return data.remember(("absolute correlation of rankings", similarity), compute)
