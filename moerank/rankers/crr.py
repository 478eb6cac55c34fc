"""Combined regression and ranking: one linear model for the labels and for their order (Sculley, 2010)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from moerank.arrays import Matrix
from moerank.checks import Positive, check_share, check_square
from moerank.data import RankingData
from moerank.kernels.algebra import product, square
from moerank.rankers.base import Grid, LinearRanker
from moerank.training.pair_loss import DIFFERENCE
from moerank.training.pair_moments import PairMoments
from moerank.training.pairs import ListedPairs
from moerank.training.smooth import Expanded, dense_newton, solve_positive_definite

CRRLoss = Literal["squared", "logistic"]


@dataclass(eq=False, repr=False)
class CombinedRegressionRanking(LinearRanker):
    """Regression on the labels and on their differences at once.

    Minimises over w and the intercept b, with m documents and p preference pairs (i, j),

        (alpha / m) Σᵢ ℓ(wᵀxᵢ + b, yᵢ) + ((1 − alpha) / p) Σ ℓ(wᵀ(xᵢ − xⱼ), t(yᵢ − yⱼ)) + ½ ridge ‖w‖²

    with ``loss="squared"``, ℓ(z, y) = (z − y)² and t(u) = u, or with ``loss="logistic"``,
    ℓ(z, y) = log(1 + eᶻ) − y z and t(u) = (1 + u) / 2, the labels divided by the largest one, so that they are
    probabilities.

    Parameters
    ----------
    alpha : float, default 0.5
        Share of the regression on labels, from 0 (only pairs) to 1 (only documents).
    ridge : float, default 1e-3
        The paper's λ, > 0.
    loss : {"squared", "logistic"}, default "squared"

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    intercept_ : float
        b; ranking does not depend on it, and `predict` leaves it out. 0 where alpha = 0.

    Notes
    -----
    The paper descends this objective by stochastic gradients, on a random document with probability alpha and a
    random pair otherwise; here it is solved to rounding. Squared loss: one linear system, from Gram matrices that
    all of a grid share, O(p · n_features + m · n_features²) once. Logistic loss: Newton steps with step halving,
    O(p · n_features + m · n_features²) each, about six.

    The paper speaks of no intercept. Without one the regression would have to spend weights on the mean label; it is
    not regularised, and cancels in the pairs. A feature that is constant in every query could only tell queries
    apart, and has no weight. Without a published grid, that of alpha and ridge is this package's.

    References
    ----------
    D. Sculley: Combined regression and ranking. KDD 2010.

    Examples
    --------
    >>> from moerank.rankers.crr import CombinedRegressionRanking
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> CombinedRegressionRanking().fit(X, y=[0, 1, 2]).predict(X).argsort().tolist()
    [0, 1, 2]
    """

    alpha: Annotated[float, partial(check_share, zero=True)] = 0.5
    ridge: Positive = 1e-3
    loss: CRRLoss = "squared"

    def default_grid(self, train: RankingData) -> Grid:
        """Return ridge = 10⁰ … 10⁻⁷, each with alpha = 0, 0.1, … 1."""
        return [{"ridge": 10.0**-k, "alpha": a / 10} for k, a in itertools.product(range(8), range(11))]

    def _weights(self, train: RankingData) -> Matrix:
        w, b = self._squared(train) if self.loss == "squared" else self._logistic(train)
        self.intercept_ = b if self.alpha > 0 else 0.0
        return w

    def _squared(self, train: RankingData) -> tuple[Matrix, float]:
        pairs = PairMoments.of(train)
        gram, moment = _document_moments(train)
        A = self.alpha * gram + (1.0 - self.alpha) * pairs.gram
        rhs = self.alpha * moment + (1.0 - self.alpha) * pairs.moment(DIFFERENCE)
        w = solve_positive_definite(A + 0.5 * self.ridge * np.eye(len(rhs)), rhs)
        return w, float(train.y.mean() - product(train.X64.mean(axis=0), w))

    def _logistic(self, train: RankingData) -> tuple[Matrix, float]:
        objective = _LogisticObjective(train, self.alpha, self.ridge)
        end = dense_newton(objective, np.zeros(train.n_features + 1), 1e-10)
        v = end.w + end.step if end.converged else end.w  # one more step leaves a square of that
        return v[:-1], float(v[-1])


class _LogisticObjective:
    """The objective with the logistic loss, at points v = (w, b)."""

    def __init__(self, train: RankingData, alpha: float, ridge: float) -> None:
        self.alpha, self.ridge = alpha, ridge
        self.pairs = ListedPairs.of(train, None, DIFFERENCE)
        self.X = np.column_stack([train.X64, np.ones(train.n_documents)])
        self.y = train.y / train.y.max()
        self.better, self.worse = self.pairs.pairs.better, self.pairs.pairs.worse
        labels = self.pairs.shift / train.y.max()
        self.pair_labels = 0.5 * (1.0 + labels[self.better] - labels[self.worse])

    def __call__(self, v: Matrix) -> Expanded:
        w = v[:-1]
        check_square(len(v))
        regularised = np.append(np.full(len(w), self.ridge), 0.0)
        value, gradient, hessian = 0.5 * self.ridge * product(w, w), regularised * v, np.diag(regularised)
        if self.alpha > 0:
            share = self.alpha / len(self.y)
            z = product(self.X, v)
            p = expit(z)
            value += share * (np.logaddexp(0.0, z) - self.y * z).sum()
            gradient += share * product(self.X.T, p - self.y)
            hessian += share * square((np.sqrt(p * (1.0 - p))[:, None] * self.X).T)
        else:
            hessian[-1, -1] = 1.0  # no document, no intercept
        if self.alpha < 1:
            X, share = self.pairs.X, (1.0 - self.alpha) / len(self.pairs)
            z, m = product(X, w), len(X)
            d = z[self.better] - z[self.worse]
            p = expit(d)
            value += share * (np.logaddexp(0.0, d) - self.pair_labels * d).sum()
            pull = p - self.pair_labels
            slope = np.asarray(np.bincount(self.better, pull, m) - np.bincount(self.worse, pull, m), np.float64)
            gradient[:-1] += share * product(X.T, slope)
            links = csr_array((p * expit(-d), (self.better, self.worse)), (m, m))
            curvature = (links.sum(axis=0) + links.sum(axis=1))[:, None] * X - links @ X - links.T @ X
            hessian[:-1, :-1] += share * square(X.T, curvature.T)
        return Expanded(float(value), gradient, hessian)


def _document_moments(train: RankingData) -> tuple[Matrix, Matrix]:
    """Covariance of the features, and of the features with the label, over all documents; remembered."""

    def compute() -> tuple[Matrix, Matrix]:
        X = train.X64 - train.X64.mean(axis=0)
        return square(X.T) / len(X), product(X.T, train.y - train.y.mean()) / len(X)

    return train.remember("document moments", compute)
