"""Greedy forward selection: by the leave-query-out error of RankRLS, and by the loss of the additive ranker."""

from functools import partial
from typing import Annotated, Any

import numpy as np

from moerank.arrays import Integers, Matrix
from moerank.checks import Count, NotNegative, Positive, check_at_least
from moerank.data import RankingData, centre_in_queries
from moerank.kernels.forward_selection import greedy_rank_rls
from moerank.rankers import (
    AdditiveRLS,
    LinearPopulation,
    LinearRanker,
    RankRLS,
    Selection,
    SelectionPath,
    nested_masks,
)
from moerank.rankers.base import Grid
from moerank.rankers.rank_rls import TargetName
from moerank.scikit_learn import check_is_fitted
from moerank.selectors.filter import Filter
from moerank.training.bins import MAX_BINS


class GreedyRankRLS(Selection, LinearRanker):
    """Select features one by one, each time the one with the least leave-query-out error of RankRLS.

    The criterion of a feature set S is Σ_Q ‖ỹ_Q − X̃_Q w₋Q‖², with ~ centring in every query and w₋Q the minimum of
    ‖ỹ − X̃_S w‖² + alpha ‖w‖² over all queries except Q. It is half the squared error over all document pairs of the
    query, divided by the query's length.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Number of features to select; fewer if fewer vary.
    alpha : float, default 1.0
        Regularisation, > 0.

    Attributes
    ----------
    order_ : ndarray of int, shape (n_selected,)
        Columns of X in the order of their selection. Features that are constant in every query are left out.
    errors_ : ndarray, shape (n_selected,)
        The criterion with the first 1, 2, … of them.
    path_coefs_ : ndarray, shape (n_selected, n_features)
        The ranker with the first 1, 2, … of them.
    coef_ : ndarray, shape (n_features,)
        The ranker with all selected features.
    support_ : ndarray of bool, shape (n_features,)
        The selected features.

    Notes
    -----
    O(k · n_documents · n_features) for k features, by a recursion that solves no system; the straightforward wrapper
    trains n_features · n_queries rankers per step.

    References
    ----------
    T. Pahikkala, A. Airola, P. Naula, T. Salakoski: Greedy RankRLS: a linear time algorithm for learning sparse
    ranking models. SIGIR workshop on feature generation and selection for information retrieval, 2010.

    Examples
    --------
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2], [0.1, 0.2], [0.9, 0.3]]
    >>> GreedyRankRLS(n_features_to_select=1).fit(X, y=[0, 1, 2, 0, 1], qid=[1, 1, 1, 2, 2]).order_.tolist()
    [0]
    """

    n_features_to_select: Count = 10
    alpha: Positive = 1.0

    _size = "n_features_to_select"

    def path(self, train: RankingData) -> SelectionPath:
        """Return the rankers with 1, 2, … features; the selection goes on beyond `n_features_to_select`.

        `train` is the data that the solver was fitted to.
        """
        check_is_fitted(self, "coef_")
        order, _, coefs = self._select(train, train.n_features)
        steps = np.arange(train.n_features).clip(max=len(order) - 1)
        return SelectionPath(nested_masks(order, train.n_features), LinearPopulation(coefs[steps]))

    def without_selection(self) -> RankRLS:
        """Return RankRLS with the loss of the selection."""
        return RankRLS(self.alpha, loss="query")

    def default_grid(self, train: RankingData) -> Grid:
        """Return alpha = 2⁸, 2⁶, 2² and 2⁻⁷, as in the paper's curves, with every number of features."""
        sizes = range(1, train.n_features + 1)
        return [
            {"n_features_to_select": size, "alpha": 2.0**power}
            for size in sizes
            for power in (8, 6, 2, -7)
        ]

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self.order_, self.errors_, self.path_coefs_ = self._select(train, self.n_features_to_select)
        self._set_weights(self.path_coefs_[-1])

    def _select(self, train: RankingData, n_steps: int) -> tuple[Integers, Matrix, Matrix]:
        """Return order, criterion and rankers of the first `n_steps` features, or of all that vary."""
        columns = np.ascontiguousarray(
            centre_in_queries(train.X[:, self.varying_], train.offsets).T
        )
        y = centre_in_queries(train.y, train.offsets)
        order, errors, coefs = greedy_rank_rls(
            columns, y, train.offsets, self.alpha, min(n_steps, len(columns))
        )
        if not np.isfinite(errors).all():
            raise ValueError(
                f"alpha={self.alpha:g} is too small next to the squares of features up to "
                f"{np.abs(train.X).max():g} in {train.name}: the errors without a query are lost "
                "in rounding; take a larger alpha, or scale the features, for instance by "
                "query_level_norm"
            )
        return np.flatnonzero(self.varying_)[order], errors, self._everywhere(coefs)


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

    The grid is ours: every number of features with `n_bins` bins, and smooth and alpha of `AdditiveRLS`, alpha in whole
    powers of ten.

    Examples
    --------
    >>> X = [[0.0, 0.3], [0.2, 0.1], [0.5, 0.2], [0.8, 0.3], [1.0, 0.1]]
    >>> GreedyAdditive(1, smooth=1.0).fit(X, y=[0, 1, 2, 1, 0], qid=0).order_.tolist()
    [0, 1]
    """

    n_bins: Annotated[int, partial(check_at_least, 1, MAX_BINS)] = 16
    smooth: NotNegative = 0.3
    alpha: Positive = 0.001
    target: TargetName = "unit"

    _takes_weights = True
    _scale_free = True

    def _judge(self) -> AdditiveRLS:
        return AdditiveRLS(self.n_bins, self.smooth, self.alpha, self.target)

    def _chosen_ranker(self) -> Any:
        return self._judge() if self.ranker is None else self.ranker

    def _order(self, train: RankingData, validation: RankingData | None) -> Integers:
        return self._judge().forward_path(train)

    def _own_grid(self, train: RankingData) -> Grid:
        return self._judge().grid_of_bins(train)

    def _ranker_grid(self, train: RankingData) -> Grid:
        return [{}] if self.ranker is None else super()._ranker_grid(train)
