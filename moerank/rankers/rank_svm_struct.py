"""RankSVM-Struct: the linear ranking SVM with the plain hinge loss, trained by cutting planes (Joachims, 2006)."""

from __future__ import annotations

from typing import Any

from moerank.data import RankingData
from moerank.kernels.counted_sums import CountedPairs
from moerank.rankers.base import Matrix
from moerank.rankers.cutting_plane_ranker import CuttingPlaneRanker
from moerank.training.cutting_plane import Separation

__all__ = ["RankSVMStruct"]


class RankSVMStruct(CuttingPlaneRanker):
    """Linear RankSVM with hinge loss, as a structural support vector machine with one slack variable.

    Minimises, over the preference pairs (i, j) of Q queries,

        ½ ‖w‖² + (C / Q) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))

    This is the objective of SVM-rank with its ``-c`` for C: a pair costs C / Q, where Q counts the queries without
    pairs, too. With p pairs, the C of a mean over pairs, as `RankSVM` has it, is p / Q times this C.

    Parameters
    ----------
    C : float, default 0.01
        Weight of the loss, > 0. The default is that of SVM-rank.
    eps : float, default 1e-3
        Ends when no constraint is violated by more than that; the objective then is within C · eps of its minimum.
    max_iter : int, default 5000
        Largest number of cutting planes.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    gap_ : float
        How much the objective exceeds that of the dual: at most C · eps, unless `fit` warns of an early end.
    n_iter_ : int
        Cutting planes.

    Notes
    -----
    The most violated constraint takes the pairs with wᵀ(xᵢ − xⱼ) < 1, counted by sorting:
    O(m log m + m · n_features) for m documents, whatever the number of pairs. O(1 / (C eps)) planes at worst; about
    40 for OHSUMED at the default.

    References
    ----------
    T. Joachims: Training linear SVMs in linear time. KDD 2006.

    Examples
    --------
    >>> from moerank.rankers.rank_svm_struct import RankSVMStruct
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> RankSVMStruct(C=1.0).fit(X, y=[0, 1, 2]).predict(X).argsort().tolist()
    [0, 1, 2]
    """

    def __init__(self, C: float = 0.01, eps: float = 1e-3, max_iter: int = 5000) -> None:
        super().__init__(C, eps, max_iter)

    def default_grid(self, train: RankingData) -> list[dict[str, Any]]:
        """Return C = 10⁻⁵ · 2ᵏ up to 10, k = 0 … 19: the grid of Gupta and Rosso (2012) for this method."""
        return [{"C": 1e-5 * 2.0**k} for k in range(20)]

    def _separation(self, train: RankingData) -> Separation:
        pairs = CountedPairs(train.y, train.offsets)

        def separate(w: Matrix) -> tuple[Matrix, float]:
            near = pairs.within_margin(train.X64 @ w)
            return (near.n_worse - near.n_better) @ train.X64 / train.n_queries, near.n_pairs / train.n_queries

        return separate
