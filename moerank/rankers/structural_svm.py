"""Structural support vector machines: RankSVMStruct and SVMMAP, trained by cutting planes (Joachims et al., 2009)."""

from collections.abc import Callable
from typing import Self, TypeAlias

import numpy as np

from moerank.arrays import Matrix
from moerank.checks import Count, Positive
from moerank.data import RankingData
from moerank.kernels.algebra import product, square
from moerank.kernels.counted_ranks import most_violated_rankings
from moerank.kernels.counted_sums import MarginPairs
from moerank.kernels.scores import linear_scores
from moerank.rankers.arguments import varying_in_queries
from moerank.rankers.base import Grid, LinearRanker
from moerank.training.pair_moments import solve_positive_definite

Separation: TypeAlias = Callable[[Matrix], tuple[Matrix, float]]

# The slack of a plane is the difference of numbers up to the largest b, summed over documents.
SLACK_ROUNDING = 1e-12
# Number of failures in a row after which training ends, because rounding keeps the planes' weights from settling.
MAX_FAILURES = 10
# Keeps a step finite if all planes have the same slope, for example with features close to 0.
MIN_RIDGE = 1e-200


class CuttingPlanes:
    """Minimises ½ ‖w‖² + C R(w) for a convex risk R(w) = max over constraints (a, b) of b − aᵀw, never negative.

    This is the structural support vector machine with one slack variable: ξ = R(w) at the minimum. The planes are kept
    for the next C, because they bound the same risk. `separate` takes w (n_features,) and returns the most violated
    constraint: a (n_features,) and b with R(w) = b − aᵀw. After `minimise`, `gap_` bounds the distance of the objective
    from the minimum, `n_iter_` counts the separations, and `converged_` says whether the tolerance was reached.

    The dual of the problem with K planes is a quadratic programme over their weights λ ≥ 0, Σ λ = 1, with w = C Aᵀλ.
    `_minimise_on_planes` solves it by an active set: at most n_features + 1 planes have a weight, and a new plane
    changes few of them. Each step is O(K · n_features + n_features³).

    T. Joachims, T. Finley, C.-N. Yu: Cutting-plane training of structural SVMs. Machine Learning 77, 2009.

    >>> absolute = lambda w: (np.sign(1.0 - w), np.sign(1.0 - w[0]))  # R(w) = |1 − w|
    >>> planes = CuttingPlanes(absolute, n_features=1)
    >>> planes.minimise(C=0.25, eps=1e-9, max_iter=100).round(6).tolist()
    [0.25]
    """

    def __init__(self, separate: Separation, n_features: int) -> None:
        self.separate = separate
        self._A = np.zeros((1, n_features))  # the plane 0 says that R is never negative
        self._b = np.zeros(1)
        self._weights = np.ones(1)

    def minimise(self, C: float, eps: float, max_iter: int) -> Matrix:
        """Return w (n_features,) whose objective exceeds the minimum by at most C · eps.

        Ends when no constraint is violated by more than `eps`, which is raised to what rounding allows; after
        `max_iter` separations; or when the problem on the planes found so far could not be solved to the necessary
        precision ten times in a row. `gap_` then bounds the error of the best w seen.
        """
        best, best_value, lower = np.zeros(self._A.shape[1]), np.inf, -np.inf
        self.n_iter_, n_failed = 0, 0
        self.converged_ = False
        while self.n_iter_ < max_iter and n_failed < MAX_FAILURES:
            w, xi, settled = self._minimise_on_planes(C, 1e-3 * eps)
            n_failed = 0 if settled else n_failed + 1
            a, b = self.separate(w)
            self.n_iter_ += 1
            regularised = 0.5 * float(product(w, w))
            value = regularised + C * float(b - product(a, w))
            lower = max(lower, regularised + C * xi)
            if value < best_value:
                best, best_value = w, value
            if best_value - lower <= C * max(eps, SLACK_ROUNDING * float(np.abs(self._b).max())):
                self.converged_ = True
                break
            self._A = np.vstack([self._A, a])
            self._b = np.append(self._b, b)
            self._weights = np.append(self._weights, 0.0)
        self.gap_ = best_value - lower
        return best

    def _minimise_on_planes(self, C: float, tolerance: float) -> tuple[Matrix, float, bool]:
        """Return w for the planes so far, its ξ (the dual of the objective is ½ ‖w‖² + C ξ), and whether it settled.

        It settles when all planes agree on ξ up to the tolerance, and planes with a weight to half of it.
        """
        A, b, weights = self._A, self._b, self._weights
        active = np.flatnonzero(weights)
        tolerance = max(tolerance, 0.1 * SLACK_ROUNDING * float(np.abs(b).max()))
        for _ in range(100 + 10 * len(b)):
            w = C * product(A[active].T, weights[active])
            slack = b - product(A, w)
            xi = float(product(weights[active], slack[active]))
            worst = int(slack.argmax())
            if slack[worst] - xi <= tolerance:
                return w, xi, True
            if np.ptp(slack[active]) <= 0.5 * tolerance:
                active = np.append(active, worst)
            step = _equalising_step(A[active], slack[active], C, int(weights[active].argmax()))
            if not np.isfinite(step).all():
                break
            shrinking = np.flatnonzero(step < 0)
            lengths = -weights[active[shrinking]] / step[shrinking]
            blocked = bool(len(lengths)) and lengths.min() <= 1.0
            weights[active] += (lengths.min() if blocked else 1.0) * step
            if blocked:
                weights[active[shrinking[lengths.argmin()]]] = 0.0
                active = active[weights[active] > 0]
            weights[active] /= weights[active].sum()
        return w, xi, False


def _equalising_step(A: Matrix, slack: Matrix, C: float, anchor: int) -> Matrix:
    """Return the change of the planes' weights, with sum 0, after which all of them have the same slack."""
    D = np.delete(A - A[anchor], anchor, axis=0)
    M = C * square(D)
    # The ridge gives the step a direction where planes depend on each other.
    M[np.diag_indices_from(M)] += 1e-13 * np.trace(M) + MIN_RIDGE
    step = solve_positive_definite(M, np.delete(slack - slack[anchor], anchor))
    return np.insert(step, anchor, -step.sum())


class CuttingPlaneRanker(LinearRanker):
    """Base of the linear rankers that minimise ½ ‖w‖² + C R(w) by the cutting planes of `_separation`."""

    C: Positive = 0.01
    eps: Positive = 1e-3
    max_iter: Count = 5000

    _trained_together = None

    def _separation(self, train: RankingData) -> Separation:
        """Return the function that finds the most violated constraint; see `CuttingPlanes`."""
        raise NotImplementedError

    def _weights(self, train: RankingData) -> Matrix:
        planes = CuttingPlanes(self._separation(train), train.n_features)
        w = planes.minimise(self.C, self.eps, self.max_iter)
        self.gap_, self.n_iter_ = planes.gap_, planes.n_iter_
        self._reached = planes.converged_
        return w

    def _fit_warning(self) -> str:
        if self._reached:
            return ""
        if self.n_iter_ == self.max_iter:
            reason = f"max_iter={self.max_iter} cutting planes; raise max_iter or eps, or lower C"
        else:
            reason = (
                f"{self.n_iter_} cutting planes, because rounding allows no better with features "
                "of such scales; scale them, for instance by query_level_norm, or lower C"
            )
        return f"stopped within {self.gap_:.3g} of the minimum after {reason}"

    def _candidate_scores(
        self, train: RankingData, validation: RankingData, candidates: list[Self]
    ) -> Matrix:
        """Train the entries of a grid on the same planes, from the smallest C up."""
        varying = varying_in_queries(train)
        data = train.with_features(varying)
        planes = CuttingPlanes(self._separation(data), data.n_features)
        W = np.zeros((len(candidates), train.n_features))
        for index in np.argsort([candidate.C for candidate in candidates], kind="stable"):
            ranker = candidates[index]
            W[index, varying] = planes.minimise(ranker.C, ranker.eps, ranker.max_iter)
        return linear_scores(validation.X, W)


class RankSVMStruct(CuttingPlaneRanker):
    """Linear RankSVM with hinge loss, as a structural support vector machine with one slack variable.

    Minimises, over the preference pairs (i, j) of Q queries,

        ½ ‖w‖² + (C / Q) Σ max(0, 1 − wᵀ(xᵢ − xⱼ))

    This is the objective of SVM-rank with its ``-c`` for C: a pair costs C / Q, where Q counts the queries without
    pairs, too. With p pairs, the C of `RankSVM`, whose loss is a mean over pairs, is p / Q times this C.

    Parameters
    ----------
    C : float, default 0.01
        Weight of the loss, > 0. The default is that of SVM-rank.
    eps : float, default 1e-3
        Training ends when no constraint is violated by more than this; the objective is then within C · eps of its
        minimum.
    max_iter : int, default 5000
        Largest number of cutting planes.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    gap_ : float
        How much the objective exceeds that of the dual: at most C · eps, unless `fit` warns of an early end.
    n_iter_ : int
        Number of cutting planes.

    Notes
    -----
    The most violated constraint consists of the pairs with wᵀ(xᵢ − xⱼ) < 1, counted by sorting:
    O(m log m + m · n_features) for m documents, whatever the number of pairs. O(1 / (C eps)) planes at worst; about
    40 for OHSUMED at the default.

    References
    ----------
    T. Joachims: Training linear SVMs in linear time. KDD 2006.

    Examples
    --------
    >>> from moerank.rankers.structural_svm import RankSVMStruct
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> RankSVMStruct(C=1.0).fit(X, y=[0, 1, 2], qid=0).predict(X).argsort().tolist()
    [0, 1, 2]
    """

    def default_grid(self, train: RankingData) -> Grid:
        """Return C = 10⁻⁵ · 2ᵏ up to 10, k = 0 … 19: the grid of Gupta and Rosso (2012) for this method."""
        return [{"C": 1e-5 * 2.0**k} for k in range(20)]

    def _separation(self, train: RankingData) -> Separation:
        def separate(w: Matrix) -> tuple[Matrix, float]:
            near = MarginPairs(train.label_runs, product(train.X64, w))
            surplus = (near.n_worse - near.n_better).astype(float)
            return product(train.X64.T, surplus) / train.n_queries, near.n_pairs / train.n_queries

        return separate


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
        Training ends when no constraint, in units of average precision, is violated by more than this; the objective is
        then within C · eps of its minimum.
    max_iter : int, default 5000
        Largest number of cutting planes.

    Attributes
    ----------
    coef_, gap_, n_iter_
        As in `RankSVMStruct`.

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
    >>> from moerank.rankers.structural_svm import SVMMAP
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> SVMMAP().fit(X, y=[0, 0, 1], qid=0).predict(X).argsort().tolist()[-1]
    2
    """

    C: Positive = 10.0

    def default_grid(self, train: RankingData) -> Grid:
        """Return C = 2ᵏ, k = −7 … 10."""
        return [{"C": 2.0**k} for k in range(-7, 11)]

    def _separation(self, train: RankingData) -> Separation:
        relevant = train.y > 0
        n_relevant = np.add.reduceat(relevant, train.offsets[:-1], dtype=np.int64)
        n_used = np.count_nonzero((n_relevant > 0) & (n_relevant < np.diff(train.offsets)))
        if n_used == 0:
            raise ValueError(
                f"{train.name}: no query has both relevant documents (label > 0) and others"
            )
        coefficients, losses = np.empty(train.n_documents), np.empty(train.n_queries)

        def separate(w: Matrix) -> tuple[Matrix, float]:
            most_violated_rankings(
                product(train.X64, w), relevant, train.offsets, coefficients, losses
            )
            return product(train.X64.T, coefficients) / n_used, float(losses.sum() / n_used)

        return separate
