"""SVM-MAP: a structural support vector machine for average precision (Yue et al., 2007)."""

from __future__ import annotations

from typing import Any

import numpy as np

from moerank.data import RankingData
from moerank.kernels.violated_ranking import most_violated_rankings
from moerank.rankers.base import LinearRanker, Matrix
from moerank.rankers.cutting_plane import cutting_plane
from moerank.rankers.hinge_problem import check_positive

__all__ = ["SVMMAP"]


class SVMMAP(LinearRanker):
    """Linear ranker that minimises a convex bound on 1 − MAP.

    Minimises, over the Q queries that have relevant documents R and irrelevant ones N,

        ½ ‖w‖² + (C / Q) Σ_q max over rankings r of q of [1 − AP(r) − wᵀ(ψ(r*) − ψ(r))]

        ψ(r) = 1 / (|R| |N|) Σ_{i ∈ R, j ∈ N} ± (xᵢ − xⱼ),   + where r has i above j, else −

    with r* a ranking that has R above N. Relevance is binary: a document of any label above 0 is relevant, grades make
    no difference, and queries without both kinds are left out.

    Parameters
    ----------
    C : float, default 10.0
        Weight of the loss, > 0. The authors' n-slack form has the same C.
    eps : float, default 1e-5
        Training ends when no constraint is violated by more than this, > 0: the mean loss, at most 1 at w = 0, is then
        known that closely, and the objective is at most C · eps above its minimum.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    objective_ : float
        The objective at `coef_`.
    gap_ : float
        Bound on its distance from the minimum, at most C · eps.
    n_iter_ : int
        Constraints generated.

    Notes
    -----
    Cutting planes in the 1-slack form, one constraint a round for all queries together, where the authors have one a
    query; the minimum is the same. O(n_documents · n_features + Σ_q |R| |N|) a constraint.

    References
    ----------
    Y. Yue, T. Finley, F. Radlinski, T. Joachims: A support vector method for optimizing average precision. SIGIR 2007.

    Examples
    --------
    >>> from moerank.rankers.svm_map import SVMMAP
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> SVMMAP(C=5.0).fit(X, y=[0, 0, 1]).predict(X).argsort().tolist()
    [0, 1, 2]
    """

    def __init__(self, C: float = 10.0, eps: float = 1e-5) -> None:
        self.C = C
        self.eps = eps

    def _weights(self, train: RankingData) -> Matrix:
        check_positive(C=self.C, eps=self.eps)
        relevant = train.y > 0
        n_relevant, sizes = np.add.reduceat(relevant, train.offsets[:-1], dtype=np.int64), np.diff(train.offsets)
        mixed = (n_relevant > 0) & (n_relevant < sizes)
        if not mixed.any():
            raise ValueError(
                f"{train.name}: no query has both relevant documents (label above 0) and irrelevant ones (label 0)"
            )
        rows = np.repeat(mixed, sizes)
        X, relevant, offsets = train.X[rows], relevant[rows], np.append(0, np.cumsum(sizes[mixed]))
        n_queries = len(offsets) - 1

        def most_violated(w: Matrix) -> tuple[Matrix, float]:
            weight, loss = most_violated_rankings(X @ w, relevant, offsets)
            return weight @ X / n_queries, loss / n_queries

        solution = cutting_plane(most_violated, train.n_features, self.C, self.eps)
        self.objective_, self.gap_, self.n_iter_ = solution.objective, solution.gap, solution.n_iter
        return solution.w

    def default_grid(self, train: RankingData) -> list[dict[str, Any]]:
        """Return C = 10⁻¹ … 10³ by half powers of ten; the paper gives no grid."""
        return [{"C": 10.0 ** (k / 2)} for k in range(-2, 7)]
