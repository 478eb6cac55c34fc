"""RankSVM as a structural support vector machine: the plain hinge by cutting planes (Joachims, 2006)."""

from __future__ import annotations

from typing import Any

import numpy as np

from moerank.data import RankingData
from moerank.rankers.base import LinearRanker, Matrix
from moerank.rankers.cutting_plane import cutting_plane
from moerank.rankers.hinge_problem import PairedDocuments, check_positive

__all__ = ["RankSVMStruct"]


class RankSVMStruct(LinearRanker):
    """Linear RankSVM with the plain hinge loss, in its 1-slack form.

    Minimises, over the p preference pairs (i, j),

        ½ ‖w‖² + (C / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))

    as ½ ‖w‖² + C ξ with one constraint for every subset c of the pairs:

        ξ ≥ (1 / p) Σ cₖ − (1 / p) wᵀ Σ cₖ (xᵢ − xⱼ),   c ∈ {0, 1}ᵖ

    The public tool SVM-rank divides by the number of queries Q instead of p: its C is C · Q / p here.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss, > 0.
    eps : float, default 1e-5
        Training ends when no constraint is violated by more than this, > 0. The objective, at most C at w = 0, is then
        at most C · eps above its minimum. The tool has 1e-3 for a ξ that is p / Q times as large.

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
    The constraint that w violates most has cₖ = 1 where wᵀ(xᵢ − xⱼ) < 1. What it needs is the number of such pairs a
    document is in, as the better and as the worse one, which sorting gives for all documents without looking at a
    pair: O(n_documents · n_features + n_documents log n_documents) a constraint, a few dozen constraints for C up to
    a hundred. The number grows with C, not with the documents.

    References
    ----------
    T. Joachims: Training linear SVMs in linear time. KDD 2006.

    Examples
    --------
    >>> from moerank.rankers.rank_svm_struct import RankSVMStruct
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> RankSVMStruct(C=5.0).fit(X, y=[0, 1, 2]).predict(X).argsort().tolist()
    [0, 1, 2]
    """

    def __init__(self, C: float = 1.0, eps: float = 1e-5) -> None:
        self.C = C
        self.eps = eps

    def _weights(self, train: RankingData) -> Matrix:
        check_positive(C=self.C, eps=self.eps)
        documents = PairedDocuments.of(train)
        X, pairs = train.X[documents.rows], documents.pairs

        def most_violated(w: Matrix) -> tuple[Matrix, float]:
            near = pairs.within_margin(X @ w)
            violated = (near.n_worse - near.n_better).astype(np.float64)
            return violated @ X / pairs.n_pairs, near.n_pairs / pairs.n_pairs

        solution = cutting_plane(most_violated, train.n_features, self.C, self.eps)
        self.objective_, self.gap_, self.n_iter_ = solution.objective, solution.gap, solution.n_iter
        return solution.w

    def default_grid(self, train: RankingData) -> list[dict[str, Any]]:
        """Return C = (p / Q) · 10⁻⁵ · 2ᵏ, k = 0 … 20: the tool's C from 10⁻⁵ to 10 by factors of 2."""
        pairs_a_query = PairedDocuments.of(train).pairs.n_pairs / train.n_queries
        return [{"C": pairs_a_query * 1e-5 * 2.0**k} for k in range(21)]
