"""FSMSVM: the features with the largest weights in FSMRank, ranked by RankSVM (Lai et al., 2013)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np

from moerank.checks import check_not_negative
from moerank.data import RankingData
from moerank.metrics import Metric
from moerank.rankers.base import Grid
from moerank.rankers.fsm_rank import FSMRank, importance
from moerank.rankers.population import AnyRanker
from moerank.selectors.filter import Filter, Order

__all__ = ["FSMSVM"]


class FSMSVM(Filter):
    """Order the features by FSMRank, then train RankSVM on the first ones.

    The order is that of |w|, with w the minimum of FSMRank's objective

        (1 / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))² + ½ lambda1 |w|ᵀA|w| + lambda2 Σ |wᵢ| / sᵢ

    Parameters
    ----------
    n_features_to_select : int, default 10
        Features to select; fewer if there are not as many that vary.
    ranker : estimator, optional
        Trained on the selected features. Default: ``RankSVM()``.
    lambda1, lambda2 : float, optional
        Those of `FSMRank`, ≥ 0. None is chosen by `tune`: both first, as FSMRank itself would choose them on the
        validation data, then the number of features and the ranker. Without `tune` None is FSMRank's default.

    Attributes
    ----------
    order_, support_, population_, coef_
        As in `Filter`.

    Notes
    -----
    The cost is that of one FSMRank and one ranker. Features without a weight follow those with one, by importance.

    References
    ----------
    H. Lai, Y. Pan, Y. Tang, R. Yu: FSMRank: feature selection algorithm for learning to rank. IEEE Transactions on
    Neural Networks and Learning Systems 24, 2013, section V.

    Examples
    --------
    >>> X = [[0.0, 0.6], [0.5, 0.4], [1.0, 0.6], [0.2, 0.4]]
    >>> FSMSVM(1).fit(X, y=[0, 1, 2, 0]).order_.tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int = 10,
        ranker: AnyRanker | None = None,
        lambda1: float | None = None,
        lambda2: float | None = None,
    ) -> None:
        super().__init__(n_features_to_select, ranker)
        self.lambda1 = lambda1
        self.lambda2 = lambda2

    def tune(
        self,
        train: RankingData,
        validation: RankingData,
        grid: Grid | None = None,
        metric: Metric | str | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> Self:
        """Return a clone with the parameters that rank the validation data best, FSMRank's before the others.

        Arguments as in `Ranker.tune`.
        """
        self._check_parameters()
        first = self._first_stage()
        open_ = [name for name in ("lambda1", "lambda2") if getattr(self, name) is None]
        entries = [{name: entry[name] for name in open_} for entry in first.default_grid(train)]
        chosen = first.tune(train, validation, list({repr(entry): entry for entry in entries}.values()), metric)
        settled = {name: getattr(chosen, name) for name in open_}
        grid = [{**settled, **entry} for entry in grid or self.default_grid(train)]
        return super().tune(train, validation, grid, metric, progress)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_not_negative(or_none=True, lambda1=self.lambda1, lambda2=self.lambda2)

    def _order(self, train: RankingData, validation: RankingData | None) -> Order:
        weights = np.abs(self._first_stage().fit_population(train)[0])
        return np.lexsort((-importance(train), -weights))

    def _first_stage(self) -> FSMRank:
        given = {name: getattr(self, name) for name in ("lambda1", "lambda2")}
        return FSMRank(**{name: value for name, value in given.items() if value is not None})
