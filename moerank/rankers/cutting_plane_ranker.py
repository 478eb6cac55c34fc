"""What the rankers share that are trained by cutting planes: the planes of a small C serve the larger ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np

from moerank.checks import check_at_least, check_positive
from moerank.data import RankingData
from moerank.kernels.blas import one_blas_thread
from moerank.kernels.scores import linear_scores
from moerank.rankers.base import LinearRanker, Matrix
from moerank.rankers.spread import varying_in_queries
from moerank.training.cutting_plane import CuttingPlanes, Separation

__all__ = ["CuttingPlaneRanker"]


class CuttingPlaneRanker(LinearRanker):
    """Base of the linear rankers that minimise ½ ‖w‖² + C R(w) by cutting planes.

    A subclass implements `_separation`.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    gap_ : float
        How much the objective exceeds that of the dual: at most C · eps, unless `fit` warns of an early end.
    n_iter_ : int
        Separations.
    """

    _trained_together = None

    def __init__(self, C: float, eps: float, max_iter: int) -> None:
        self.C = C
        self.eps = eps
        self.max_iter = max_iter

    def _separation(self, train: RankingData) -> Separation:
        """Return what finds the most violated constraint; see `CuttingPlanes`."""
        raise TypeError(f"{type(self).__name__} does not implement _separation")

    def _check_parameters(self) -> None:
        check_positive(C=self.C, eps=self.eps)
        check_at_least(1, max_iter=self.max_iter)

    def _weights(self, train: RankingData) -> Matrix:
        planes = CuttingPlanes(self._separation(train), train.n_features)
        w = self._minimise(planes)
        self.gap_, self.n_iter_ = planes.gap_, planes.n_iter_
        self._converged = planes.converged_
        return w

    def _reservations(self) -> Iterator[str]:
        yield from super()._reservations()
        if not self._converged:
            reason = (
                f"max_iter={self.max_iter} cutting planes; raise max_iter or eps, or lower C"
                if self.n_iter_ == self.max_iter
                else f"{self.n_iter_} cutting planes, as rounding allows no better with features of such scales; "
                "scale them, for instance by query_level_norm, or lower C"
            )
            yield f"stopped within {self.gap_:.3g} of the minimum after {reason}"

    def _minimise(self, planes: CuttingPlanes) -> Matrix:
        with one_blas_thread():
            return planes.minimise(self.C, self.eps, self.max_iter)

    def _candidate_scores(self, train: RankingData, validation: RankingData, candidates: list[Self]) -> Matrix:
        """Train the entries of a grid on the same planes, from the smallest C up."""
        varying = varying_in_queries(train)
        data = train.with_features(varying)
        planes = CuttingPlanes(self._separation(data), data.n_features)
        W = np.zeros((len(candidates), train.n_features))
        for i in np.argsort([candidate.C for candidate in candidates], kind="stable"):
            W[i, varying] = candidates[i]._minimise(planes)
        return linear_scores(validation.X, W)
