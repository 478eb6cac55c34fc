"""The best single features: the plainest filter."""

from __future__ import annotations

import numpy as np

from moerank.checks import check_switch
from moerank.data import RankingData
from moerank.kernels.lanes import lanes
from moerank.kernels.ranks import sum_over_queries
from moerank.kernels.single_gain import single_gain
from moerank.metrics import NDCG, Metric, as_metric
from moerank.rankers.base import Matrix
from moerank.rankers.population import AnyRanker
from moerank.selectors.filter import Filter, Order

__all__ = ["SingleFeatures", "single_feature_values"]


class SingleFeatures(Filter):
    """Select the features that rank the training queries best, each on its own.

    The importance of a feature f is metric(f), its values taken for scores, or max(metric(f), metric(−f)). Features
    with nearly the same values are selected together: nothing is asked about similarity.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Features to select; fewer if there are not as many that vary.
    ranker : estimator, optional
        Trained on the selected features. Default: ``RankSVM()``.
    metric : Metric or its name, default NDCG(10)
        Measure of a ranking.
    both_directions : bool, default True
        Whether a feature of which small values are good counts for as much as one of which large values are.

    Attributes
    ----------
    order_, support_, population_, coef_
        As in `Filter`.

    Notes
    -----
    O(n_features) metric values, then the training of the ranker. Ties go to the earlier column. Documents with equal
    values rank in order of row, as everywhere.

    References
    ----------
    X. Geng, T.-Y. Liu, T. Qin, H. Li: Feature selection for ranking. SIGIR 2007, the importance alone.

    Examples
    --------
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> SingleFeatures(1).fit(X, y=[0, 1, 2]).order_.tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int = 10,
        ranker: AnyRanker | None = None,
        metric: Metric | str | None = None,
        both_directions: bool = True,
    ) -> None:
        super().__init__(n_features_to_select, ranker)
        self.metric = metric
        self.both_directions = both_directions

    def _check_parameters(self) -> None:
        super()._check_parameters()
        as_metric(self.metric, NDCG(10))
        check_switch(both_directions=self.both_directions)

    def _order(self, train: RankingData, validation: RankingData | None) -> Order:
        values = single_feature_values(train, as_metric(self.metric, NDCG(10)))
        importance = values.max(axis=0) if self.both_directions else values[0]
        return np.argsort(-importance, kind="stable")


def single_feature_values(data: RankingData, metric: Metric) -> Matrix:
    """Return the metric of ranking by each feature alone, larger or smaller values first, shape (2, n_features).

    Remembered with the data. The values are those of the weights ±1 on one feature, to the bit; nothing is multiplied
    for a cumulated gain down to rank 16.

    Examples
    --------
    >>> data = RankingData([[0.0, 3.0], [1.0, 2.0], [2.0, 1.0]], y=[0, 0, 1])
    >>> single_feature_values(data, NDCG(1)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def compute() -> Matrix:
        return (data.total(_sums, metric) / data.n_queries).reshape(2, -1)

    return data.remember((metric, "of single features"), compute)


def _sums(data: RankingData, metric: Metric) -> Matrix:
    """Return the sums over the queries, shape (2 · n_features,)."""
    few_ranks = metric.few_ranks(data)
    if few_ranks is not None:
        values = np.zeros((data.n_queries, 2 * data.n_features))
        columns, shift = data.columns.reshape(-1), lanes(data.X.dtype.type).bit_length() - 1
        single_gain(columns, data.n_documents, 0, shift, data.offsets, *few_ranks, values)
    else:
        alone = np.eye(data.n_features)
        values = metric.of_linear(data, np.vstack([alone, -alone]))
    return np.asarray(sum_over_queries(values))
