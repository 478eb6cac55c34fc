"""SVM-MAP: the structural support vector machine for average precision (Yue et al., 2007)."""

from __future__ import annotations

from typing import Any

import numpy as np

from moerank.data import RankingData
from moerank.kernels.precision_ranking import most_violated_rankings
from moerank.rankers.base import Matrix
from moerank.rankers.cutting_plane_ranker import CuttingPlaneRanker
from moerank.training.cutting_plane import Separation

__all__ = ["SVMMAP"]


class SVMMAP(CuttingPlaneRanker):
    """Linear ranker that bounds 1 − average precision in every query by a convex loss.

    Minimises, over the Q queries with both relevant documents R and others N,

        ½ ‖w‖² + (C / Q) Σ_q max_π [1 − AP(π) − wᵀ(Ψ(π*) − Ψ(π))],
        Ψ(π) = 1 / (|R| |N|) Σ_{i ∈ R} Σ_{j ∈ N} ± (xᵢ − xⱼ),   + where the ranking π has i above j,

    with π over all rankings of the query and π* a perfect one.

    Labels count as binary: a document is relevant if its label is greater than 0, and grades above that make no
    difference. Queries with documents of one kind only are left out.

    Parameters
    ----------
    C : float, default 10.0
        Weight of the loss, > 0.
    eps : float, default 1e-3
        Ends when no constraint, in units of average precision, is violated by more than that; the objective then is
        within C · eps of its minimum.
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
    The paper has a slack variable for each query; with one for their mean, as here, the minimum is the same. A plane
    costs O(m · n_features + m log m + Σ_q |R| |N|) for m documents. The grid is this package's: below it the weights
    only shrink, above it validation data gain no more.

    References
    ----------
    Y. Yue, T. Finley, F. Radlinski, T. Joachims: A support vector method for optimizing average precision. SIGIR 2007.

    Examples
    --------
    >>> from moerank.rankers.svm_map import SVMMAP
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> SVMMAP().fit(X, y=[0, 0, 1]).predict(X).argsort().tolist()[-1]
    2
    """

    def __init__(self, C: float = 10.0, eps: float = 1e-3, max_iter: int = 5000) -> None:
        super().__init__(C, eps, max_iter)

    def default_grid(self, train: RankingData) -> list[dict[str, Any]]:
        """Return C = 2ᵏ, k = −7 … 10."""
        return [{"C": 2.0**k} for k in range(-7, 11)]

    def _separation(self, train: RankingData) -> Separation:
        relevant = train.y > 0
        n_relevant = np.add.reduceat(relevant, train.offsets[:-1], dtype=np.int64)
        n_used = np.count_nonzero((n_relevant > 0) & (n_relevant < np.diff(train.offsets)))
        if n_used == 0:
            raise ValueError(f"{train.name}: no query has both relevant documents (label > 0) and others")
        coefficients, losses = np.empty(train.n_documents), np.empty(train.n_queries)

        def separate(w: Matrix) -> tuple[Matrix, float]:
            most_violated_rankings(train.X64 @ w, relevant, train.offsets, coefficients, losses)
            return coefficients @ train.X64 / n_used, float(losses.sum() / n_used)

        return separate
