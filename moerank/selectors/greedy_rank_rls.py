"""Greedy RankRLS: forward selection by the leave-query-out error of RankRLS (Pahikkala et al., 2010)."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from moerank.data import RankingData, centre_in_queries
from moerank.kernels.forward_selection import greedy_rank_rls
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, Metric
from moerank.rankers import as_feature_table, as_ranking_data

__all__ = ["GreedyRankRLS"]

Matrix = NDArray[np.float64]


class GreedyRankRLS(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Select features one by one, each time the one with the least leave-query-out error of RankRLS.

    The criterion of a feature set S is Σ_Q ‖ỹ_Q − X̃_Q w₋Q‖², with ~ centring in every query and w₋Q the minimum of
    ‖ỹ − X̃_S w‖² + alpha ‖w‖² over all queries but Q. It is half the squared error over all document pairs of the
    query, divided by the query's length.

    Parameters
    ----------
    n_features_to_select : int, default 10
        Features to select; fewer if there are not as many that vary.
    alpha : float, default 1.0
        Regularisation, > 0.

    Attributes
    ----------
    order_ : ndarray of int, shape (n_selected,)
        Columns of X in the order of their selection. Features that are constant in every query are left out, with a
        warning.
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
    trains n_features · n_queries rankers a step.

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

    def __init__(self, n_features_to_select: int = 10, alpha: float = 1.0) -> None:
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha

    def fit(self, X: ArrayLike, y: ArrayLike, *, qid: ArrayLike | None = None, validation: Any = None) -> Self:
        """Select features; arguments and errors as in `LinearRanker.fit`, `validation` is ignored."""
        if not self.alpha > 0:
            raise ValueError(f"alpha must be positive, not {self.alpha}")
        if self.n_features_to_select < 1:
            raise ValueError(f"n_features_to_select must be at least 1, not {self.n_features_to_select}")
        data = as_ranking_data(X, y, qid)
        centred = centre_in_queries(data.X, data.offsets)
        varying = np.flatnonzero(centred.any(axis=0))
        if len(varying) < data.n_features:
            warnings.warn(
                f"{data.n_features - len(varying)} features are constant in every query and left out", stacklevel=2
            )
        n_steps = min(self.n_features_to_select, len(varying))
        order, self.errors_, path = greedy_rank_rls(
            np.ascontiguousarray(centred[:, varying].T),
            centre_in_queries(data.y, data.offsets),
            data.offsets,
            self.alpha,
            n_steps,
        )
        self.order_ = varying[order]
        self.path_coefs_ = np.zeros((n_steps, data.n_features))
        self.path_coefs_[:, varying] = path
        self.coef_ = self.path_coefs_[-1]
        self.support_ = np.isin(np.arange(data.n_features), self.order_)
        self.n_features_in_ = data.n_features
        return self

    def predict(self, X: ArrayLike) -> Matrix:
        """Return the scores (n_documents,) of the rows of X, all features in their columns."""
        check_is_fitted(self, "coef_")
        return linear_scores(as_feature_table(X, self.n_features_in_), self.coef_[None])[:, 0]

    def tune(
        self,
        train: RankingData,
        validation: RankingData,
        grid: list[dict[str, Any]] | None = None,
        metric: Metric | None = None,
    ) -> Self:
        """Return a clone with the alpha of the grid and the number of features that rank the validation data best.

        Every entry of the grid is fitted once, with all its features; the path gives all smaller numbers.

        Parameters
        ----------
        train, validation : RankingData
        grid : list of parameter dictionaries, optional
            Default: alpha = 2⁸, 2⁶, 2² and 2⁻⁷, as the paper's curves, with up to `n_features_to_select` features.
        metric : Metric, default MAP()
            Ties go to fewer features, then to the earlier entry of the grid.
        """
        metric = metric or MAP()
        grid = grid or [{"alpha": 2.0**power} for power in (8, 6, 2, -7)]
        fitted = [clone(self).set_params(**entry).fit(train.X, train.y, qid=train.qid) for entry in grid]
        quality = [metric.batch(validation, linear_scores(validation.X, solver.path_coefs_)) for solver in fitted]
        sizes, best = max(
            ((values.argmax() + 1, entry) for entry, values in enumerate(quality)),
            key=lambda choice: (quality[choice[1]].max(), -choice[0], -choice[1]),
        )
        tuned: Self = clone(fitted[best]).set_params(n_features_to_select=int(sizes))
        return tuned

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "coef_")
        return self.support_
