"""GAS: features that are important and dissimilar, by a greedy search (Geng et al., 2007)."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from scipy.stats import rankdata

from moerank.checks import check_choice, check_not_negative, check_switch
from moerank.data import RankingData
from moerank.kernels.blas import one_blas_thread
from moerank.kernels.concordance import concordance
from moerank.metrics import NDCG, Metric, as_metric
from moerank.rankers.base import Grid, Matrix
from moerank.rankers.population import AnyRanker
from moerank.selectors.filter import Filter, Order
from moerank.selectors.single import single_feature_values

__all__ = ["GAS", "greedy_order", "pair_order_values", "spearman"]

Importance = Literal["measure", "loss"]
Similarity = Literal["kendall", "spearman"]


class GAS(Filter):
    """Greedy search for features with a large sum of importance and a small sum of similarity.

    Over the sets S of t features, the algorithm looks for the maximum of

        Σ_{i ∈ S} sᵢ − c Σ_{i ∈ S} Σ_{j ∈ S, j ≠ i} eᵢⱼ

    with sᵢ the importance of a feature and eᵢⱼ the similarity of two. Each step adds the feature that raises the
    objective most, sⱼ − 2 c Σ_{i ∈ S} eᵢⱼ. Every feature is read in the direction in which it ranks better.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Features to select; fewer if there are not as many that vary.
    ranker : estimator, optional
        Trained on the selected features. Default: ``RankSVM()``.
    c : float, default 0.01
        Weight of the similarity, ≥ 0; with 0 the features are ordered by importance.
    importance : {"loss", "measure"}, default "loss"
        The share of the preference pairs that the feature alone orders as the labels do, a tie counting half (one
        minus the pairwise ranking loss), or the metric of ranking by the feature alone.
    similarity : {"kendall", "spearman"}, default "kendall"
        The share of the document pairs of a query that both features order the same way, averaged over queries; a
        pair tied in both is ordered the same way, a pair tied in one counts half. Or the absolute value of
        Spearman's ρ averaged over queries, 0 in a query where a feature is constant.
    metric : Metric or its name, default NDCG(10)
        For the importance "measure".
    normalise : bool, default True
        Whether the importance is stretched to [0, 1], so that c means the same on all data, with either importance:
        the measures of single features often differ by a few hundredths only.

    Attributes
    ----------
    order_, support_, population_, coef_
        As in `Filter`.

    Notes
    -----
    The grid of c is ours: the paper gives none, and 0.01 is a customary value. With importance "measure" c stays as
    it is, since GAS-E was published with the choice of t alone.

    O(n_features² · Σ_q m log m) for the similarities, m the number of documents of a query, and O(n_features²) for
    the search; ties go to the earlier column. The first t features of a greedy search are its choice for t. They are
    the maximum for t = 1, for t = n_features and for c = 0, and otherwise at most c t (t − 1) below it: in step k one
    of the k most important features is left, and similarity takes at most 2 c (k − 1) from it.

    References
    ----------
    X. Geng, T.-Y. Liu, T. Qin, H. Li: Feature selection for ranking. SIGIR 2007, problem (2) and algorithm GAS. With
    importance "measure" and RankSVM in the primal it is GAS-E of H. Lai et al.: FSMRank. IEEE TNNLS 24, 2013.

    Examples
    --------
    >>> X = [[0.0, 0.0, 0.1], [0.3, 0.3, 0.0], [0.6, 0.6, 0.9], [0.9, 0.9, 0.6]]
    >>> GAS(2).fit(X, y=[0, 0, 1, 1]).order_.tolist()
    [0, 2, 1]
    """

    def __init__(
        self,
        n_features_to_select: int = 10,
        ranker: AnyRanker | None = None,
        c: float = 0.01,
        importance: Importance = "loss",
        similarity: Similarity = "kendall",
        metric: Metric | str | None = None,
        normalise: bool = True,
    ) -> None:
        super().__init__(n_features_to_select, ranker)
        self.c = c
        self.importance = importance
        self.similarity = similarity
        self.metric = metric
        self.normalise = normalise

    def _own_grid(self, train: RankingData) -> Grid:
        """Return c = 10⁻³ … 10⁰ by half powers; for GAS-E nothing, whose authors chose the number of features alone."""
        return [{}] if self.importance == "measure" else [{"c": 10.0 ** (k / 2)} for k in range(-6, 1)]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_not_negative(c=self.c)
        check_choice(get_args(Importance), importance=self.importance)
        check_choice(get_args(Similarity), similarity=self.similarity)
        as_metric(self.metric, NDCG(10))
        check_switch(normalise=self.normalise)

    def _order(self, train: RankingData, validation: RankingData | None) -> Order:
        if self.importance == "measure":
            values = single_feature_values(train, as_metric(self.metric, NDCG(10)))
        else:
            values = pair_order_values(train)
        importance = values.max(axis=0)
        if self.normalise:
            importance = (importance - importance.min()) / (np.ptp(importance) or 1.0)
        directions = np.where(values[0] >= values[1], 1.0, -1.0)
        return greedy_order(importance, self._similarities(train, directions), self.c)

    def _similarities(self, train: RankingData, directions: Matrix) -> Matrix:
        def compute() -> Matrix:
            if self.similarity == "spearman":
                return spearman(train)
            return concordance(train.X64 * directions, train.offsets)

        return train.remember(("similarity of rankings", self.similarity, directions.tobytes()), compute)


def greedy_order(importance: Matrix, similarity: Matrix, c: float) -> Order:
    """Return all features in the order of the greedy search; shapes (n_features,) and (n_features, n_features).

    Examples
    --------
    >>> greedy_order(np.array([1.0, 0.9, 0.5]), np.array([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]]), 0.5).tolist()
    [0, 2, 1]
    """
    gain = importance.astype(np.float64)
    order = np.empty(len(gain), np.int64)
    for step in range(len(gain)):
        order[step] = best = int(np.argmax(gain))
        gain -= 2.0 * c * similarity[best]
        gain[order[: step + 1]] = -np.inf
    return order


def pair_order_values(data: RankingData) -> Matrix:
    """Return the share of preference pairs that each feature orders right, read up or down, shape (2, n_features).

    A tie counts half. O(n_pairs · n_features) time, O(n_pairs) memory; remembered.

    Examples
    --------
    >>> pair_order_values(RankingData([[0.0, 3.0], [1.0, 1.0], [2.0, 3.0]], y=[0, 0, 1])).tolist()
    [[1.0, 0.75], [0.0, 0.25]]
    """

    def compute() -> Matrix:
        better, worse = data.pairs.better, data.pairs.worse
        columns = np.ascontiguousarray(data.X64.T)
        right = np.array([np.mean(0.5 * ((x[better] > x[worse]) + 1.0 * (x[better] >= x[worse]))) for x in columns])
        return np.stack([right, 1.0 - right])

    return data.remember("preference pairs ordered by single features", compute)


def spearman(data: RankingData) -> Matrix:
    """Return the absolute mean over queries of Spearman's ρ, shape (n_features, n_features).

    Queries of one document do not count, and ρ is 0 in a query where a feature is constant.
    O(n_documents · n_features² + n_features · Σ_q m log m).

    Examples
    --------
    >>> spearman(RankingData([[0.0, 3.0], [1.0, 2.0], [5.0, 1.0]], y=[0, 0, 1])).round(12).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    spans = [slice(begin, end) for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    spans = [rows for rows in spans if rows.stop - rows.start > 1]
    total = np.zeros((data.n_features, data.n_features))
    for rows in spans:
        ranks = rankdata(data.X64[rows], axis=0)
        ranks -= ranks.mean(axis=0)
        norm = np.sqrt(np.square(ranks).sum(axis=0))
        ranks /= np.where(norm > 0, norm, 1.0)
        with one_blas_thread():
            total += ranks.T @ ranks
    return np.abs(total) / max(len(spans), 1)
