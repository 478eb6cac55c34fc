"""HCAS: the most relevant feature of each cluster of similar ones (Gigli et al., 2016)."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from scipy.cluster.hierarchy import linkage

from moerank.checks import check_choice
from moerank.metrics import Metric
from moerank.rankers.base import Matrix
from moerank.rankers.population import AnyRanker
from moerank.selectors.filter import Order
from moerank.selectors.relevance import Relevance, RelevanceFilter, Similarity

__all__ = ["HCAS", "cluster_order"]

Linkage = Literal["single", "ward"]


class HCAS(RelevanceFilter):
    """Hierarchical clustering of the features: for t features, the most relevant one of each of t clusters.

    Features begin as clusters of their own; the two clusters at the smallest distance are joined, until one is left.
    The distance of two features is 1 − their similarity. The choice for t features undoes the last t − 1 of these
    steps.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Features to select; fewer if there are not as many that vary.
    ranker : estimator, optional
        Trained on the selected features. Default: ``RankSVM()``.
    linkage : {"single", "ward"}, default "single"
        The distance of two clusters: that of their nearest features, or the growth of the variance by joining them,
        computed from the distances as if they were Euclidean.
    relevance, similarity, metric
        As in `NGAS`.

    Attributes
    ----------
    order_, support_, population_, coef_, forest_
        As in `Filter`.

    Notes
    -----
    The choices for 1, 2, … features are nested, and so are an order: undoing a step parts a cluster in two, one with
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
    >>> HCAS(2).fit(X, y=[0, 0, 1, 1]).order_.tolist()
    [0, 2, 1]
    """

    def __init__(
        self,
        n_features_to_select: int = 10,
        ranker: AnyRanker | None = None,
        linkage: Linkage = "single",
        relevance: Relevance = "measure",
        similarity: Similarity = "spearman",
        metric: Metric | str | None = None,
    ) -> None:
        super().__init__(n_features_to_select, ranker, relevance, similarity, metric)
        self.linkage = linkage

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(get_args(Linkage), linkage=self.linkage)

    def _search(self, relevance: Matrix, similarity: Matrix) -> Order:
        return cluster_order(relevance, similarity, self.linkage)


def cluster_order(relevance: Matrix, similarity: Matrix, method: Linkage) -> Order:
    """Return all features, the first t one of each of t clusters; shapes (n_features,) and (n_features, n_features).

    Examples
    --------
    >>> alike = np.array([[1.0, 0.9, 0.1, 0.2], [0.9, 1, 0.3, 0.2], [0.1, 0.3, 1, 0.8], [0.2, 0.2, 0.8, 1]])
    >>> cluster_order(np.array([0.9, 0.8, 0.5, 0.7]), alike, "single").tolist()
    [0, 3, 2, 1]
    """
    n_features = len(relevance)
    if n_features == 1:
        return np.zeros(1, np.int64)
    distances = np.clip(1.0 - similarity[np.triu_indices(n_features, 1)], 0.0, None)
    place = np.empty(n_features, np.int64)
    place[np.argsort(-relevance, kind="stable")] = np.arange(n_features)
    best = list(range(n_features))  # the most relevant feature of each cluster, single features first
    order: list[int] = []
    for a, b in linkage(distances, method)[:, :2].astype(np.int64):
        winner, loser = sorted((best[a], best[b]), key=place.__getitem__)
        best.append(winner)
        order.append(loser)
    return np.array([best[-1], *order[::-1]])
