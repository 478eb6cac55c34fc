"""SVM-MAP: the structural support vector machine for average precision (Yue et al., 2007)."""

from __future__ import annotations

from typing import Any

import numpy as np

from moerank.data import RankingData
from moerank.kernels.precision_ranking import most_violated_rankings
from moerank.rankers.base import Matrix
from moerank.rankers.cutting_plane import CuttingPlaneRanker, Separation

__all__ = ["SVMMAP"]


class SVMMAP(CuttingPlaneRanker):
    """x"""

    def __init__(self, C: float = 10.0, eps: float = 1e-3, max_iter: int = 5000) -> None:
        super().__init__(C, eps, max_iter)

    def _separation(self, train: RankingData) -> Separation:
        relevant = train.y > 0
        starts = train.offsets[:-1]
        n_used = np.count_nonzero(
            np.logical_or.reduceat(relevant, starts) & ~np.logical_and.reduceat(relevant, starts)
        )
        if n_used == 0:
            raise ValueError(f"{train.name}: no query has both relevant documents (label > 0) and others")
        coefficients, losses = np.empty(train.n_documents), np.empty(train.n_queries)

        def separate(w: Matrix) -> tuple[Matrix, float]:
            most_violated_rankings(train.X @ w, relevant, train.offsets, coefficients, losses)
            return coefficients @ train.X / n_used, float(losses.sum() / n_used)

        return separate
