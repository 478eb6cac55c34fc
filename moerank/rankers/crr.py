"""Combined regression and ranking: a loss on documents and one on preference pairs, weighed (Sculley, 2010)."""

from __future__ import annotations

from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit

from moerank.data import RankingData
from moerank.kernels.blas import one_blas_thread
from moerank.kernels.logistic_pass import logistic_pass, weighted_curvature_pass
from moerank.rankers.base import LinearRanker, Matrix
from moerank.rankers.hinge_problem import check_positive
from moerank.rankers.pair_problem import PairProblem
from moerank.rankers.trust_region import trust_region_newton

__all__ = ["CombinedRegressionRanking"]

# Newton's method ends when the gradient is this share of what it is at w = 0.
EXACT = 1e-10


class CombinedRegressionRanking(LinearRanker):
    """Linear ranker that estimates the labels of the documents and of the pairs at once (CRR).

    Minimises, over the m documents, the p preference pairs (i, j) and an intercept c,

        (alpha / m) Σ L(yᵢ, wᵀxᵢ + c) + ((1 − alpha) / p) Σ L(t(yᵢ − yⱼ), wᵀ(xᵢ − xⱼ)) + (lam / 2) ‖w‖²

    with L(t, u) = (t − u)² and t(d) = d for the squared loss, L(t, u) = log(1 + eᵘ) − t u and t(d) = (1 + d) / 2 for
    the logistic one. The logistic loss wants labels between 0 and 1: they are divided by the largest of the training.

    Parameters
    ----------
    alpha : float, default 0.5
        Share of the regression, between 0, ranking alone, and 1, regression alone.
    lam : float, default 1e-2
        Regularisation λ, > 0.
    loss : {"squared", "logistic"}, default "squared"

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    intercept_ : float
        c, which is not regularised, and 0 for ``alpha=0``. ``predict(X) + intercept_`` estimates the label, or with
        the logistic loss its log-odds; `predict` leaves it out, as it moves no document.

    Notes
    -----
    The paper minimises this objective by stochastic gradient steps on documents and pairs drawn at random; here it is
    solved to rounding, so alpha and lam alone decide the result. Squared loss: one linear system, after
    O(p · n_features + m · n_features²) for the Gram matrices, which a search over alpha and lam shares. Logistic loss:
    Newton steps by conjugate gradients, O(p + m · n_features) a product with the Hessian, that the Hessian at w = 0
    preconditions. The paper says nothing about an intercept. Features that are constant in every query are left out,
    though the regression could use them.

    References
    ----------
    D. Sculley: Combined regression and ranking. KDD 2010.

    Examples
    --------
    >>> from moerank.rankers.crr import CombinedRegressionRanking
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> ranker = CombinedRegressionRanking(lam=1e-6).fit(X, y=[0, 1, 2])
    >>> (ranker.predict(X) + ranker.intercept_).round(2) + 0.0
    array([0., 1., 2.])
    """

    def __init__(self, alpha: float = 0.5, lam: float = 1e-2, loss: str = "squared") -> None:
        self.alpha = alpha
        self.lam = lam
        self.loss = loss

    def _weights(self, train: RankingData) -> Matrix:
        check_positive(lam=self.lam)
        if not 0.0 <= self.alpha <= 1.0:
            raise ValueError(f"alpha must be between 0 and 1, not {self.alpha}")
        if self.loss not in _MINIMUM:
            raise ValueError(f"loss must be one of {tuple(_MINIMUM)}, not {self.loss!r}")
        with one_blas_thread():
            w, self.intercept_ = _MINIMUM[self.loss](train, self.alpha, self.lam)
        return w

    def default_grid(self, train: RankingData) -> list[dict[str, Any]]:
        """Return lam = 10⁰ … 10⁻⁷ and alpha = 0, 0.1 … 1, 88 entries; the paper gives no grid."""
        return [{"alpha": k / 10, "lam": 10.0**-power} for power, k in product(range(8), range(11))]


def _least_squares(train: RankingData, alpha: float, lam: float) -> tuple[Matrix, float]:
    """Solve the normal equations."""
    X_mean, y_mean = train.X.mean(axis=0), float(train.y.mean())

    def document_moments() -> tuple[Matrix, Matrix]:
        X, y = train.X - X_mean, train.y - y_mean
        return X.T @ X / len(y), X.T @ y / len(y)

    gram, moment = train.remember("document moments", document_moments)
    pairs = PairProblem.of(train, target="difference")
    A = alpha * gram + (1.0 - alpha) * pairs.gram + 0.5 * lam * np.eye(len(gram))
    w: Matrix = np.asarray(np.linalg.solve(A, alpha * moment + (1.0 - alpha) * pairs.moment), np.float64)
    return w, y_mean - float(X_mean @ w) if alpha > 0 else 0.0


def _logistic_regression(train: RankingData, alpha: float, lam: float) -> tuple[Matrix, float]:
    """Take Newton steps in the inner product of the Hessian at w = 0."""
    problem = _LogisticProblem(train, alpha, lam)
    start = np.zeros(problem.Z.shape[1])
    v = trust_region_newton(partial(_Expansion, problem), start, tol=EXACT, inner=problem.inner).x
    w = v[: train.n_features]
    return w, float(v[-1] - problem.X_mean @ w) if alpha > 0 else 0.0


_MINIMUM = {"squared": _least_squares, "logistic": _logistic_regression}


class _LogisticProblem:
    """The logistic objective ℓ(Zv) + ½ Σ ridge · v², and the Hessian at 0 as an inner product.

    Z holds the features, centred, and a column of ones for the intercept, if there is a regression. Pairs do not see
    that column.
    """

    def __init__(self, train: RankingData, alpha: float, lam: float) -> None:
        m, n = train.X.shape
        intercept = int(alpha > 0)
        self.X_mean = train.X.mean(axis=0)
        self.Z = np.hstack([train.X - self.X_mean, np.ones((m, intercept))])
        self.ridge = np.append(np.full(n, lam), np.zeros(intercept))
        self.pairs = train.pairs
        self.document_weight, self.pair_weight = alpha / m, (1.0 - alpha) / len(self.pairs)
        # −t u is linear, so the targets of documents and pairs come down to one number a document.
        y = train.y / train.y.max()
        better, worse = self.pairs.better, self.pairs.worse
        t = 0.5 * (1.0 + y[better] - y[worse])
        pull = np.bincount(better, t, m) - np.bincount(worse, t, m)
        self.target = self.document_weight * y + self.pair_weight * pull
        pair_gram = np.pad(PairProblem.of(train, target="difference").gram, (0, intercept))
        self.metric = 0.25 * (self.document_weight * self.Z.T @ self.Z + (1.0 - alpha) * pair_gram) + np.diag(
            self.ridge
        )

    def inner(self, a: Matrix, b: Matrix) -> float:
        return float(a @ self.metric @ b)


class _Expansion:
    """The logistic objective at one point: value, gradient and products with the Hessian."""

    def __init__(self, problem: _LogisticProblem, v: Matrix) -> None:
        self._problem, self._v = problem, v
        z, pairs = problem.Z @ v, problem.pairs
        self._residual, self._curvature = np.empty(len(z)), np.empty(len(pairs))
        ranking = logistic_pass(pairs.first, pairs.winner, pairs.worse, z, self._residual, self._curvature)
        self._probability = expit(z)
        regression = np.logaddexp(0.0, z).sum()
        loss = problem.document_weight * regression + problem.pair_weight * ranking - problem.target @ z
        self.value = float(loss + 0.5 * problem.ridge @ v**2)

    @cached_property
    def gradient(self) -> Matrix:
        problem = self._problem
        slope = problem.document_weight * self._probability + problem.pair_weight * self._residual - problem.target
        return self._in_metric(slope, self._v)

    def product(self, s: Matrix) -> Matrix:
        problem, pairs = self._problem, self._problem.pairs
        u = problem.Z @ s
        bend = np.empty(len(u))
        weighted_curvature_pass(pairs.first, pairs.winner, pairs.worse, self._curvature, u, bend)
        regression = self._probability * (1.0 - self._probability) * u
        return self._in_metric(problem.document_weight * regression + problem.pair_weight * bend, s)

    def _in_metric(self, documents: Matrix, point: Matrix) -> Matrix:
        """Return the vector that has the inner products of the sum over documents and the ridge's share."""
        problem = self._problem
        return np.linalg.solve(problem.metric, documents @ problem.Z + problem.ridge * point)
