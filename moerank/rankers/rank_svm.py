"""RankSVM in the primal: the linear support vector machine on preference pairs (Chapelle and Keerthi, 2010)."""

from __future__ import annotations

from typing import Any

from moerank.checks import check_not_negative, check_positive
from moerank.data import RankingData
from moerank.rankers.base import Mask, Matrix, PairBackend
from moerank.rankers.masks import read_masks
from moerank.training.losses import SQUARED_HINGE
from moerank.training.pair_problem import PairProblem

__all__ = ["RankSVM"]


class RankSVM(PairBackend):
    """Linear RankSVM with squared hinge loss, by truncated Newton.

    Minimises, over the p preference pairs (i, j),

        ½ ‖w‖² + (C / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))²

    The loss is a mean, so a subset of the pairs does not change the regularisation.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss, > 0. LETOR's grid is ½ · 10ᵏ, k = −2 … 2.
    tol : float, default 1e-7
        Relative error of the objective allowed to the members of a population, ≥ 0. `fit` is exact to rounding.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)

    Notes
    -----
    `fit` takes dense Newton steps, O(p · n_features) each. A population starts from the solution for all pairs (or,
    with a shared pair subset, for all features) and takes truncated Newton steps without a Hessian: about four
    passes over the pairs for 16 individuals at once.

    References
    ----------
    O. Chapelle, S. S. Keerthi: Efficient algorithms for ranking with SVMs. Information Retrieval 13, 2010.

    Examples
    --------
    >>> from moerank.rankers.rank_svm import RankSVM
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> ranker = RankSVM(C=5.0).fit(X, y=[0, 1, 2])
    >>> ranker.predict(X).argsort().tolist()
    [0, 1, 2]
    """

    def __init__(self, C: float = 1.0, tol: float = 1e-7) -> None:
        self.C = C
        self.tol = tol

    def fit_population(
        self,
        train: RankingData,
        *,
        pair_mask: Mask | None = None,
        feature_mask: Mask | None = None,
        start: Matrix | None = None,
    ) -> Matrix:
        """Train one ranker for each row of the masks; see `FitnessBackend`."""
        self._check_parameters()
        subset, pairs, features = read_masks(train, pair_mask, feature_mask)
        problem = PairProblem.of(train, subset)
        if pairs is None and features.all() and start is None:
            return problem.model(self.C, SQUARED_HINGE).w[None].repeat(len(features), axis=0)
        return self._solve_population(problem, self.C, SQUARED_HINGE, pairs, features, start)

    def default_grid(self, train: RankingData) -> list[dict[str, Any]]:
        """Return LETOR's grid, C = ½ · 10ᵏ with k = −2 … 2."""
        return [{"C": 0.5 * 10.0**k} for k in range(-2, 3)]

    def _check_parameters(self) -> None:
        check_positive(C=self.C)
        check_not_negative(tol=self.tol)
