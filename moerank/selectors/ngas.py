"""NGAS: the relevant features out of pairs of which one is unlike the feature chosen last (Gigli et al., 2016)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from moerank.rankers.base import Matrix
from moerank.selectors.filter import Order
from moerank.selectors.relevance import RelevanceFilter

__all__ = ["NGAS", "unlike_order"]


class NGAS(RelevanceFilter):
    """Naive greedy search: away from the feature chosen last, then to the more relevant of two neighbours.

    The first feature is the most relevant one. In each step, v is the remaining feature least similar to the one
    chosen last, and k the remaining feature most similar to v; the more relevant of v and k comes next.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Features to select; fewer if there are not as many that vary.
    ranker : estimator, optional
        Trained on the selected features. Default: ``RankSVM()``.
    relevance : {"measure", "lambdamart"}, default "measure"
        The metric on the training queries of ranking by the feature alone, in the direction in which it ranks better,
        or of a LambdaMART of 30 trees trained on the feature alone, which need not rise or fall with it.
    similarity : {"spearman", "kendall"}, default "spearman"
        The absolute value of Spearman's ρ or Kendall's τ, averaged over queries; a pair of documents that both
        features leave tied counts for τ as ordered the same way.
    metric : Metric or its name, default NDCG(10)
        Of the relevance.

    Attributes
    ----------
    order_, support_, population_, coef_, forest_
        As in `Filter`.

    Notes
    -----
    O(n_features² · Σ_q m log m) for the similarities, m the number of documents of a query, and
    O(n_features² log n_features) for the search. Ties of similarity go to the earlier column, ties of relevance to v.
    The paper ranks by LambdaMART on the chosen features; that is an argument here.

    References
    ----------
    A. Gigli, C. Lucchese, F. M. Nardini, R. Perego: Fast feature selection for learning to rank. ICTIR 2016.

    Examples
    --------
    >>> X = [[0.0, 0.0, 0.1], [0.3, 0.3, 0.0], [0.6, 0.6, 0.9], [0.9, 0.9, 0.6]]
    >>> NGAS(2).fit(X, y=[0, 0, 1, 1]).order_.tolist()
    [0, 2, 1]
    """

    def _search(self, relevance: Matrix, similarity: Matrix) -> Order:
        return unlike_order(relevance, similarity, lambda n_others: 1)


def unlike_order(relevance: Matrix, similarity: Matrix, n_neighbours: Callable[[int], int]) -> Order:
    """Return all features in the order of the search; shapes (n_features,) and (n_features, n_features).

    `n_neighbours` says how many of so many other features are compared with v: those most similar to it.

    Examples
    --------
    >>> alike = np.array([[1.0, 0.9, 0.1, 0.2], [0.9, 1, 0.3, 0.2], [0.1, 0.3, 1, 0.8], [0.2, 0.2, 0.8, 1]])
    >>> unlike_order(np.array([0.9, 0.8, 0.5, 0.7]), alike, lambda n_others: 1).tolist()
    [0, 3, 1, 2]
    """
    order = [int(np.argmax(relevance))]
    left = [f for f in range(len(relevance)) if f != order[0]]
    while left:
        v = left[int(np.argmin(similarity[order[-1], left]))]
        others = np.array([f for f in left if f != v], np.int64)
        nearest = np.argsort(-similarity[v, others], kind="stable")[: n_neighbours(len(others))]
        candidates = [v, *others[nearest].tolist()]
        order.append(candidates[int(np.argmax(relevance[candidates]))])
        left.remove(order[-1])
    return np.array(order)
