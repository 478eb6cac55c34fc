"""RankSVM-Struct: the linear ranking SVM with the plain hinge loss, trained by cutting planes (Joachims, 2006)."""

from __future__ import annotations

from moerank.data import RankingData
from moerank.kernels.counted_sums import CountedPairs
from moerank.rankers.base import Matrix
from moerank.rankers.cutting_plane import CuttingPlaneRanker, Separation

__all__ = ["RankSVMStruct"]


class RankSVMStruct(CuttingPlaneRanker):
    """x"""

    def __init__(self, C: float = 0.01, eps: float = 1e-3, max_iter: int = 5000) -> None:
        super().__init__(C, eps, max_iter)

    def _separation(self, train: RankingData) -> Separation:
        pairs = CountedPairs(train.y, train.offsets)

        def separate(w: Matrix) -> tuple[Matrix, float]:
            near = pairs.within_margin(train.X @ w)
            return (near.n_worse - near.n_better) @ train.X / train.n_queries, near.n_pairs / train.n_queries

        return separate
