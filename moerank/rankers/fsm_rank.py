"""FSMRank: one convex problem that ranks well with few, important and dissimilar features (Lai et al., 2013)."""

from dataclasses import replace
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from moerank.arrays import Integers, Matrix, Vector
from moerank.checks import Count, NotNegative
from moerank.data import RankingData
from moerank.rankers.base import Backend, Grid
from moerank.rankers.importance import (
    FeatureImportance,
    FeatureSimilarity,
    feature_importance,
    feature_similarity,
)
from moerank.rankers.selection import LargestWeightsPath
from moerank.training.masks import Masks, read_masks
from moerank.training.pairs import SQUARED_HINGE, ListedPairs, Penalties, pairs_for


class FSMRank(LargestWeightsPath, Backend):
    """Joint feature selection and ranking by accelerated proximal gradient.

    Minimises problem (2) of the paper over the non-negative variables u and v (n_features,) of the weights w = u − v,

        (1 / p) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))² + ½ lambda1 (u + v)ᵀA(u + v) + lambda2 Σ (uᵢ + vᵢ) / sᵢ

    over the p preference pairs (i, j), with sᵢ the importance of a feature and Aᵢⱼ the similarity of two features. Both
    come from all training documents, whatever the masks say.

    Parameters
    ----------
    lambda1 : float, default 1e-3
        Weight of the similarity of features chosen together, ≥ 0.
    lambda2 : float, default 1e-3
        Weight of the cost of features, ≥ 0; less important features cost more. From about 1 on no feature is left.
    max_iter : int, default 400
        Largest number of steps.
    tol : float, default 1e-4
        Training ends when the objective changes by at most this fraction in a step. This is the paper's rule; it leaves
        a gap to the minimum.
    importance : str, Metric, array-like of shape (n_features,) or callable, default "pearson"
        s: "pearson", "spearman" or "kendall" correlation with the label, "ones", a metric or its name, the numbers,
        or a function of the training data that returns them; see `feature_importance`.
    similarity : str, array-like of shape (n_features, n_features) or callable, default "pearson"
        A: "pearson", "spearman" or "kendall" correlation, "identity", the numbers, or a function; see
        `feature_similarity`.
    convex : bool, default True
        Whether A is replaced by the nearest positive semidefinite matrix, which makes the problem convex. False keeps
        the paper's A.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
        The weights u − v.
    variables_ : ndarray, shape (2 * n_features,)
        The solution [u; v] of problem (2).
    support_ : ndarray of bool, shape (n_features,)
        Features with a weight other than 0. Constant features and those of importance 0 never have one.
    n_iter_ : int
        Steps taken.
    objectives_ : ndarray, shape (n_iter_ + 1,)
        The objective at the start and after each step.

    Notes
    -----
    Takes O(p + n_documents · n_features + n_features²) per step, for up to eight individuals at once. The similarity
    term sees u + v, not u − v: problems (1) and (2) of the paper differ there, and its Algorithm 1 solves (2).

    References
    ----------
    H. Lai, Y. Pan, Y. Tang, R. Yu: FSMRank: feature selection algorithm for learning to rank. IEEE Transactions on
    Neural Networks and Learning Systems 24, 2013, Algorithm 1.

    Examples
    --------
    >>> from moerank.rankers.fsm_rank import FSMRank
    >>> X = [[0.0, 0.6], [0.5, 0.4], [1.0, 0.6], [0.2, 0.4]]
    >>> FSMRank(lambda2=0.1).fit(X, y=[0, 1, 2, 0], qid=0).support_.tolist()
    [True, False]
    """

    lambda1: NotNegative = 1e-3
    lambda2: NotNegative = 1e-3
    max_iter: Count = 400
    tol: NotNegative = 1e-4
    importance: FeatureImportance = "pearson"
    similarity: FeatureSimilarity = "pearson"
    convex: bool = True

    _trained_together = ("lambda1", "lambda2")
    _remedy = "a smaller lambda2 keeps more features, and comparable scales of the features help"

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        variables, n_iter, history = self._minimise(train, read_masks(train))
        self.variables_ = variables[0]
        self.n_iter_ = int(n_iter[0])
        self.objectives_ = history[: self.n_iter_ + 1, 0].copy()
        self._set_weights(weights_of(variables)[0])

    def _fit_warning(self) -> str:
        if self.n_iter_ < self.max_iter:
            return ""
        previous, final = self.objectives_[-2:]
        change = abs(final - previous)
        if change <= self.tol * abs(previous):
            return ""
        return (
            f"stopped at max_iter={self.max_iter} steps, the last of which changed the "
            f"objective by {change:.3g}; raise max_iter or tol, or scale the features"
        )

    def _train(self, train: RankingData, masks: Masks, start: Matrix | None) -> Matrix:
        return weights_of(self._minimise(train, masks, start)[0])

    def objective(self, train: RankingData, variables: ArrayLike) -> float:
        """Return the objective on all pairs of `train` at `variables`, [u; v] of shape (2 * n_features,), not negative.

        The weights w of any linear ranker are the point ``np.concatenate([w.clip(0), (-w).clip(0)])``. A weight on a
        feature of importance 0 has an infinite cost.
        """
        u, v = np.split(np.asarray(variables, dtype=float), 2)
        problem = ListedPairs.of(train)
        loss = problem.residuals(u - v, SQUARED_HINGE)[0] / len(problem)
        (s, A, _), size = measures_of(train, self), u + v
        positive = size > 0
        with np.errstate(divide="ignore"):
            cost = (size[positive] / s[positive]).sum()
        return float(loss + 0.5 * self.lambda1 * size @ A @ size + self.lambda2 * cost)

    def default_grid(self, train: RankingData) -> Grid:
        """Return lambda1 and lambda2 in 10⁰ … 10⁻⁶ by half powers, 169 entries; the paper gives no grid."""
        powers = [10.0 ** (-k / 2) for k in range(13)]
        return [
            {"lambda1": lambda1, "lambda2": lambda2} for lambda2, lambda1 in product(powers, powers)
        ]

    def _fit_candidates(self, train: RankingData, candidates: list[Self]) -> Matrix:
        """Train entries of a grid that differ only in lambda1 and lambda2 as one population."""
        masks = read_masks(train, feature_mask=np.ones((len(candidates), train.n_features), bool))
        lambdas = np.array([[c.lambda1 for c in candidates], [c.lambda2 for c in candidates]])
        return weights_of(candidates[0]._minimise(train, masks, lambdas=lambdas)[0])

    def _minimise(
        self,
        train: RankingData,
        masks: Masks,
        start: Matrix | None = None,
        lambdas: Matrix | None = None,
    ) -> tuple[Matrix, Integers, Matrix]:
        """Run Algorithm 1, see `ListedPairs.minimise_penalised`; the entries of a grid have their own `lambdas`."""
        n = len(masks.features)
        if lambdas is None:
            lambdas = np.tile([[self.lambda1], [self.lambda2]], n)
        s, A, cost = measures_of(train, self)
        masks = replace(masks, features=masks.features & (s > 0))
        weights = np.zeros((n, train.n_features))
        if start is not None:
            weights = np.where(masks.features, start, 0.0)
        variables = np.hstack([weights.clip(0.0), (-weights).clip(0.0)])
        penalties = Penalties(A, np.tile(cost, (n, 1)), *lambdas)
        return pairs_for(train, masks).minimise_penalised(
            penalties, masks, variables, self.max_iter, self.tol
        )


def measures_of(train: RankingData, ranker: Any) -> tuple[Vector, Matrix, Vector]:
    """Return importance s, similarity and costs 1 / s of the features; features without importance cost 0."""
    s = feature_importance(train, ranker.importance)
    cost = np.divide(1.0, s, out=np.zeros_like(s), where=s > 0)
    return s, feature_similarity(train, ranker.similarity, convex=ranker.convex), cost


def weights_of(variables: Matrix) -> Matrix:
    """Return the weights u − v (n_individuals, n_features) of the variables [u; v]."""
    u, v = np.hsplit(variables, 2)
    return u - v
