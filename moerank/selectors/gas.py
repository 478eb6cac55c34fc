"""Filters by the relevance and the similarity of features: GAS, NGAS, XGAS and HCAS."""

from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.cluster.hierarchy import linkage

from moerank.arrays import Integers, Matrix, Vector
from moerank.checks import NotNegative, Share, check_square
from moerank.data import RankingData, remembered
from moerank.kernels.threads import one_blas_thread
from moerank.metrics import NDCG, as_metric
from moerank.rankers.base import Grid, MetricOrNone
from moerank.rankers.importance import single_feature_values, spearman
from moerank.selectors.filter import Filter
from moerank.training.pair_moments import weights_or_ones

Similarity = Literal["kendall", "spearman"]
Over = Literal["queries", "documents"]


class GAS(Filter):
    """Greedy search for features with a large sum of importance and a small sum of similarity.

    Over the sets S of t features, the algorithm looks for the maximum of

        Σ_{i ∈ S} sᵢ − c Σ_{i ∈ S} Σ_{j ∈ S, j ≠ i} eᵢⱼ

    with sᵢ the importance of a feature and eᵢⱼ the similarity of two. Each step adds the feature that raises the
    objective most, sⱼ − 2 c Σ_{i ∈ S} eᵢⱼ. Every feature is read in the direction in which it ranks better.

    Parameters
    ----------
    n_features_to_select, ranker
        As in `moerank.selectors.filter.Filter`.
    c : float, default 0.01
        Weight of the similarity, ≥ 0; with 0 the features are ordered by importance.
    importance : {"loss", "measure"}, default "loss"
        "loss" is the share of the preference pairs that the feature alone orders as the labels do, where a tie counts
        half (one minus the pairwise ranking loss). "measure" is the metric of ranking by the feature alone.
    metric : Metric or its name, default NDCG(10)
        The metric of the importance "measure".

    Attributes
    ----------
    order_, support_, population_, coef_
        As in `moerank.selectors.filter.Filter`.

    Notes
    -----
    The similarity is the share of the document pairs of a query that both features order the same way, averaged over
    queries; a pair tied in both is ordered the same way, a pair tied in one counts half. The importance is stretched to
    [0, 1], so that c means the same on all data: the measures of single features often differ by a few hundredths only.

    The grid of c is ours: the paper gives none, and 0.01 is a customary value. With importance "measure" c stays as
    it is, because GAS-E was published with a choice of t only.

    O(n_features² · Σ_q m log m) for the similarities, m the number of documents of a query, and O(n_features²) for
    the search; ties go to the earlier column. The first t features of a greedy search are its choice for t. They are
    the maximum for t = 1, for t = n_features and for c = 0, and otherwise at most c t (t − 1) below it: in step k one
    of the k most important features is still free, and similarity takes at most 2 c (k − 1) from it.

    References
    ----------
    X. Geng, T.-Y. Liu, T. Qin, H. Li: Feature selection for ranking. SIGIR 2007, problem (2) and algorithm GAS. With
    importance "measure" and RankSVM in the primal it is GAS-E of H. Lai et al.: FSMRank. IEEE TNNLS 24, 2013.

    Examples
    --------
    >>> X = [[0.0, 0.0, 0.1], [0.3, 0.3, 0.0], [0.6, 0.6, 0.9], [0.9, 0.9, 0.6]]
    >>> GAS(2).fit(X, y=[0, 0, 1, 1], qid=0).order_.tolist()
    [0, 2, 1]
    """

    c: NotNegative = 0.01
    importance: Literal["measure", "loss"] = "loss"
    metric: MetricOrNone = None

    def _own_grid(self, train: RankingData) -> Grid:
        """Return c = 10⁻³ … 10⁰ by half powers; nothing for GAS-E, whose authors chose only the number of features."""
        if self.importance == "measure":
            return [{}]
        return [{"c": 10.0 ** (k / 2)} for k in range(-6, 1)]

    def _order(self, train: RankingData, validation: RankingData | None) -> Integers:
        if self.importance == "measure":
            values = single_feature_values(train, as_metric(self.metric, NDCG(10)))
        else:
            values = pair_order_values(train)
        importance = values.max(axis=0)
        importance = (importance - importance.min()) / (np.ptp(importance) or 1.0)
        directions = np.where(values[0] >= values[1], 1.0, -1.0)
        similarity = similarity_of_rankings(train, tuple(directions))
        return greedy_order(importance, similarity, self.c)


@remembered
def similarity_of_rankings(data: RankingData, directions: tuple[float, ...]) -> Matrix:
    """Return the similarity of GAS of all pairs of features, read in these directions, remembered."""
    X, weights = data.X64 * directions, weights_or_ones(data)[1]
    return mean_absolute(X, data.offsets, concordance, weights)


def greedy_order(importance: Matrix, similarity: Matrix, c: float) -> Integers:
    """Return all features in the order of the greedy search; shapes (n_features,) and (n_features, n_features)."""
    gain = importance.astype(float)
    order = np.empty(len(gain), np.int64)
    for step in range(len(gain)):
        order[step] = best = int(np.argmax(gain))
        gain -= 2.0 * c * similarity[best]
        gain[order[: step + 1]] = -np.inf
    return order


@remembered
def pair_order_values(data: RankingData) -> Matrix:
    """Return the share of pairs that each feature orders right, larger or smaller values first, (2, n_features).

    A tie counts half, and a pair as much as its weight v_q uᵢ uⱼ. O(n_pairs · n_features) time, O(n_pairs) memory;
    remembered.
    """
    better, worse = data.pairs.better, data.pairs.worse
    weights = None
    if data.is_weighted:
        u, query_weights = weights_or_ones(data)
        v = query_weights.repeat(np.diff(data.offsets))
        weights = v[better] * u[better] * u[worse]
    shares = np.empty(data.n_features)
    for feature, x in enumerate(np.ascontiguousarray(data.X64.T)):
        orders = 0.5 * ((x[better] > x[worse]) + 1.0 * (x[better] >= x[worse]))
        shares[feature] = np.average(orders, weights=weights)
    return np.stack([shares, 1.0 - shares])


def mean_absolute(
    X: Matrix, offsets: Integers, correlation: Callable[[Matrix], Matrix], weights: Vector
) -> Matrix:
    """Return the weighted mean over queries of the absolute correlations of the features, (n_features, n_features).

    `correlation` returns those of the documents of a query. Queries of one document do not count.
    """
    check_square(X.shape[1])
    total = np.zeros((X.shape[1], X.shape[1]))
    weights = np.where(np.diff(offsets) > 1, weights, 0.0)
    for (begin, end), weight in zip(pairwise(offsets), weights, strict=True):
        if weight:
            total += weight * np.abs(correlation(X[begin:end]))
    return total / (weights.sum() or 1.0)


def concordance(X: Matrix) -> Matrix:
    """Return the share of the document pairs that two features order alike, shape (n_features, n_features).

    A pair tied in both is ordered alike; one tied in one of them counts half. O(n_features² · m²) for m documents.
    """
    n_pairs = len(X) * (len(X) - 1) / 2
    doubled = np.full((X.shape[1], X.shape[1]), n_pairs)
    with one_blas_thread():
        for i in range(1, len(X)):  # sums of whole numbers are exact
            signs = np.sign(X[i] - X[:i]).astype(np.float32)
            ties = 1.0 - np.abs(signs)
            doubled += signs.T @ signs + ties.T @ ties
    return 0.5 * doubled / n_pairs


# Correlations of short queries are often equal; rounding, which depends on the order of documents, must not part them.
CORRELATION_DIGITS = 12


class RelevanceFilter(Filter):
    """Base of the filters that order the features by their relevance and the similarity of pairs in `_search`."""

    similarity: Similarity = "spearman"
    over: Over = "queries"
    metric: MetricOrNone = None

    def _order(self, train: RankingData, validation: RankingData | None) -> Integers:
        relevance = single_feature_values(train, as_metric(self.metric, NDCG(10))).max(axis=0)
        return self._search(relevance, absolute_correlations(train, self.similarity, self.over))

    def _search(self, relevance: Matrix, similarity: Matrix) -> Integers:
        """Return all features, best first; shapes (n_features,) and (n_features, n_features)."""
        raise NotImplementedError


@remembered
def absolute_correlations(
    data: RankingData, similarity: Similarity, over: Over = "queries"
) -> Matrix:
    """Return |ρ| or |τ| of all pairs of features, (n_features, n_features), remembered.

    The mean over the queries, or the value for all documents as one list. Rounded to 12 digits. O(n_features² · Σ_q m
    log m), m the number of documents of a query.
    """
    offsets, weights = data.offsets, weights_or_ones(data)[1]
    if over == "documents":
        offsets, weights = np.array([0, data.n_documents]), np.ones(1)
    # Kendall's τ, for which a pair of documents tied in both is ordered the same way, follows from the shares.
    correlation = spearman if similarity == "spearman" else lambda X: 2.0 * concordance(X) - 1.0
    return mean_absolute(data.X64, offsets, correlation, weights).round(CORRELATION_DIGITS)


class NGAS(RelevanceFilter):
    """Naive greedy search: away from the feature chosen last, then to the more relevant of two neighbours.

    The first feature is the most relevant one. In each step, v is the remaining feature least similar to the one
    chosen last, and k the remaining feature most similar to v; the more relevant of v and k comes next.

    Parameters
    ----------
    n_features_to_select, ranker
        As in `moerank.selectors.filter.Filter`.
    similarity : {"spearman", "kendall"}, default "spearman"
        The absolute value of Spearman's ρ or Kendall's τ; a pair of documents that both features leave tied counts
        for τ as ordered the same way.
    over : {"queries", "documents"}, default "queries"
        The mean over the queries, or one value for all documents, which the authors' program takes.
    metric : Metric or its name, default NDCG(10)
        The relevance of a feature is this metric on the training queries, ranked by the feature alone in the direction
        in which it ranks better.

    Attributes
    ----------
    order_, support_, population_, coef_, forest_
        As in `moerank.selectors.filter.Filter`.

    Notes
    -----
    O(n_features² · Σ_q m log m) for the similarities, m the number of documents of a query, and
    O(n_features² log n_features) for the search. Ties of similarity go to the earlier column, ties of relevance to v.
    The paper ranks by LambdaMART on the chosen features; here `ranker` is an argument.

    References
    ----------
    A. Gigli, C. Lucchese, F. M. Nardini, R. Perego: Fast feature selection for learning to rank. ICTIR 2016.

    Examples
    --------
    >>> X = [[0.0, 0.0, 0.1], [0.3, 0.3, 0.0], [0.6, 0.6, 0.9], [0.9, 0.9, 0.6]]
    >>> NGAS(2).fit(X, y=[0, 0, 1, 1], qid=0).order_.tolist()
    [0, 2, 1]
    """

    def _search(self, relevance: Matrix, similarity: Matrix) -> Integers:
        return unlike_order(relevance, similarity, 0.0)


def unlike_order(relevance: Matrix, similarity: Matrix, p: float) -> Integers:
    """Return all features in the order of the search; shapes (n_features,) and (n_features, n_features).

    The share `p` of the others, at least one of them, are compared with v: those that are most similar to it.
    """
    order = [int(np.argmax(relevance))]
    remaining = [f for f in range(len(relevance)) if f != order[0]]
    while remaining:
        v = remaining[int(np.argmin(similarity[order[-1], remaining]))]
        neighbours = np.array([f for f in remaining if f != v], np.int64)
        ranked = np.argsort(-similarity[v, neighbours], kind="stable")
        nearest = neighbours[ranked[: max(1, round(p * len(neighbours)))]]
        candidates = [v, *nearest.tolist()]
        order.append(candidates[int(np.argmax(relevance[candidates]))])
        remaining.remove(order[-1])
    return np.array(order)


class XGAS(RelevanceFilter):
    """Extended naive greedy search: away from the feature chosen last, then to the most relevant of many neighbours.

    The first feature is the most relevant one. In each step, v is the remaining feature least similar to the one
    chosen last; the most relevant one of v and the share p of the other remaining features that are most similar to v
    comes next.

    Parameters
    ----------
    n_features_to_select, ranker, similarity, over, metric
        As in `NGAS`.
    p : float, default 0.05
        The share of the other remaining features that v is compared with, in (0, 1], rounded to at least one feature.
        With one feature XGAS is NGAS; with p = 1 the features are ordered by relevance.

    Attributes
    ----------
    order_, support_, population_, coef_, forest_
        As in `moerank.selectors.filter.Filter`.

    Notes
    -----
    Time and ties as in `NGAS`. The grid of p is ours: 0.05, 0.1, 0.25 and 0.5, without those that compare the
    same number of features in the first step.

    References
    ----------
    A. Gigli, C. Lucchese, F. M. Nardini, R. Perego: Fast feature selection for learning to rank. ICTIR 2016.

    Examples
    --------
    >>> X = [[0.0, 0.0, 0.1], [0.3, 0.3, 0.0], [0.6, 0.6, 0.9], [0.9, 0.9, 0.6]]
    >>> XGAS(2, p=1.0).fit(X, y=[0, 0, 1, 1], qid=0).order_.tolist()
    [0, 2, 1]
    """

    p: Share = 0.05

    def _own_grid(self, train: RankingData) -> Grid:
        n_others = train.n_features - 2
        compared = {max(1, round(p * n_others)): p for p in (0.5, 0.25, 0.1, 0.05)}
        return [{"p": p} for p in sorted(compared.values())]

    def _search(self, relevance: Matrix, similarity: Matrix) -> Integers:
        return unlike_order(relevance, similarity, self.p)


class HCAS(RelevanceFilter):
    """Hierarchical clustering of the features: for t features, the most relevant one of each of t clusters.

    Features begin as clusters of their own; the two clusters at the smallest distance are joined, until one is left.
    The distance of two features is 1 − their similarity. The choice for t features undoes the last t − 1 of these
    steps.

    Parameters
    ----------
    n_features_to_select, ranker, similarity, over, metric
        As in `NGAS`.
    linkage : {"single", "ward"}, default "single"
        The distance of two clusters: that of their nearest features, or the growth of the variance by joining them,
        computed from the distances as if they were Euclidean.

    Attributes
    ----------
    order_, support_, population_, coef_, forest_
        As in `moerank.selectors.filter.Filter`.

    Notes
    -----
    The choices for 1, 2, … features are nested, so they form an order: undoing a step splits a cluster in two, one with
    the feature that was chosen for both, the other with the feature that comes next. Ties of relevance go to the
    earlier column, those of distances as scipy breaks them.

    O(n_features² · Σ_q m log m) for the similarities, m the number of documents of a query, and O(n_features²) for
    the clusters.

    References
    ----------
    A. Gigli, C. Lucchese, F. M. Nardini, R. Perego: Fast feature selection for learning to rank. ICTIR 2016.

    Examples
    --------
    >>> X = [[0.0, 0.0, 0.1], [0.3, 0.3, 0.0], [0.6, 0.6, 0.9], [0.9, 0.9, 0.6]]
    >>> HCAS(2).fit(X, y=[0, 0, 1, 1], qid=0).order_.tolist()
    [0, 2, 1]
    """

    linkage: Literal["single", "ward"] = "single"

    def _search(self, relevance: Matrix, similarity: Matrix) -> Integers:
        n_features = len(relevance)
        if n_features == 1:
            return np.zeros(1, np.int64)
        distances = np.clip(1.0 - similarity[np.triu_indices(n_features, 1)], 0.0, None)
        rank = np.empty(n_features, np.int64)
        rank[np.argsort(-relevance, kind="stable")] = np.arange(n_features)
        # The most relevant feature of each cluster, single features first.
        best = [*range(n_features)]
        order = []
        for a, b in linkage(distances, self.linkage)[:, :2].astype(np.int64):
            winner, loser = sorted((best[a], best[b]), key=rank.__getitem__)
            best.append(winner)
            order.append(loser)
        return np.array([best[-1], *order[::-1]])
