"""Greedy selection for the additive ranker: forward selection of step functions by the loss of preference pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from moerank.checks import NotNegative, Positive, check_at_least
from moerank.data import RankingData
from moerank.rankers.additive import AdditiveRLS
from moerank.rankers.base import Grid
from moerank.rankers.rank_rls import TargetName
from moerank.selectors.filter import Filter, Order
from moerank.training.bins import MOST_BINS


@dataclass(eq=False, repr=False)
class GreedyAdditive(Filter):
    """Select features one by one, each time the one whose step function lowers the loss of `AdditiveRLS` the most.

    The criterion of a feature set is the minimum of the mean squared error over all preference pairs with the penalty,
    as in `AdditiveRLS`, over the step functions of these features.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Features to select; fewer if there are not as many that vary.
    ranker : estimator, optional
        Trained on the selected features. Default: an `AdditiveRLS` with the arguments below.
    n_bins, smooth, alpha, target
        As in `AdditiveRLS`.

    Attributes
    ----------
    order_ : ndarray of int, shape (n_varying,)
        Columns of X in the order of their selection. Features that are constant in every query, or without thresholds,
        are left out.
    support_, population_, coef_, forest_
        As in `moerank.selectors.filter.Filter`.

    Notes
    -----
    O(n_features · B · n_thresholds²) beside the system of `AdditiveRLS`, for up to B thresholds of each feature: a
    feature that has entered is eliminated from the system of the others, so that each candidate takes a system of its
    own thresholds. A feature is never removed again. Staircase starts from this path
    where `AdditiveRLS` is the backend.

    The grid is ours: every number of features with the grid of `AdditiveRLS` for `n_bins`, chosen by the metric of the
    problem.

    Examples
    --------
    >>> X = [[0.0, 0.3], [0.2, 0.1], [0.5, 0.2], [0.8, 0.3], [1.0, 0.1]]
    >>> GreedyAdditive(1, smooth=1.0).fit(X, y=[0, 1, 2, 1, 0], qid=0).order_.tolist()
    [0, 1]
    """

    n_bins: Annotated[int, partial(check_at_least, 1, MOST_BINS)] = 16
    smooth: NotNegative = 0.3
    alpha: Positive = 0.001
    target: TargetName = "unit"

    _takes_weights = True
    _by_thresholds = True
    tuned_by_metric: ClassVar[bool] = True

    def _judge(self) -> AdditiveRLS:
        return AdditiveRLS(self.n_bins, self.smooth, self.alpha, self.target)

    def _chosen_ranker(self) -> Any:
        return self._judge() if self.ranker is None else self.ranker

    def _order(self, train: RankingData, validation: RankingData | None) -> Order:
        return self._judge().forward_path(train)

    def _own_grid(self, train: RankingData) -> Grid:
        return self._judge().grid_of_bins(train)

    def _ranker_grid(self, train: RankingData) -> Grid:
        return [{}] if self.ranker is None else super()._ranker_grid(train)
