"""XGAS: NGAS that compares more neighbours (Gigli et al., 2016)."""

from __future__ import annotations

from moerank.checks import check_share
from moerank.data import RankingData
from moerank.metrics import Metric
from moerank.rankers.base import Grid, Matrix
from moerank.rankers.population import AnyRanker
from moerank.selectors.filter import Order
from moerank.selectors.ngas import unlike_order
from moerank.selectors.relevance import Relevance, RelevanceFilter, Similarity

__all__ = ["XGAS"]


class XGAS(RelevanceFilter):
    """Extended naive greedy search: away from the feature chosen last, then to the most relevant of many neighbours.

    The first feature is the most relevant one. In each step, v is the remaining feature least similar to the one
    chosen last; the most relevant one of v and the share p of the other remaining features that are most similar to v
    comes next.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Features to select; fewer if there are not as many that vary.
    ranker : estimator, optional
        Trained on the selected features. Default: ``RankSVM()``.
    p : float, default 0.05
        The share of the other remaining features that v is compared with, in (0, 1]: rounded, and one at the least,
        with which XGAS is NGAS. With 1 the features are ordered by relevance.
    relevance, similarity, metric
        As in `NGAS`.

    Attributes
    ----------
    order_, support_, population_, coef_, forest_
        As in `Filter`.

    Notes
    -----
    Time and ties as in `NGAS`. The grid of p is ours: 0.05, 0.1, 0.25 and 0.5, of which those stay that compare
    another number of features in the first step.

    References
    ----------
    A. Gigli, C. Lucchese, F. M. Nardini, R. Perego: Fast feature selection for learning to rank. ICTIR 2016.

    Examples
    --------
    >>> X = [[0.0, 0.0, 0.1], [0.3, 0.3, 0.0], [0.6, 0.6, 0.9], [0.9, 0.9, 0.6]]
    >>> XGAS(2, p=1.0).fit(X, y=[0, 0, 1, 1]).order_.tolist()
    [0, 2, 1]
    """

    def __init__(
        self,
        n_features_to_select: int = 10,
        ranker: AnyRanker | None = None,
        p: float = 0.05,
        relevance: Relevance = "measure",
        similarity: Similarity = "spearman",
        metric: Metric | str | None = None,
    ) -> None:
        super().__init__(n_features_to_select, ranker, relevance, similarity, metric)
        self.p = p

    def _own_grid(self, train: RankingData) -> Grid:
        compared = {_share(p, train.n_features - 2): p for p in (0.5, 0.25, 0.1, 0.05)}
        return [{"p": p} for p in sorted(compared.values())]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share(p=self.p)

    def _search(self, relevance: Matrix, similarity: Matrix) -> Order:
        return unlike_order(relevance, similarity, lambda n_others: _share(self.p, n_others))


def _share(p: float, n_others: int) -> int:
    return max(1, round(p * n_others))
