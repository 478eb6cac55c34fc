"""ListNet: cross entropy of top-one probabilities, with a linear score (Cao et al., 2007)."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moerank.data import RankingData, centre_in_queries
from moerank.kernels.blas import one_blas_thread
from moerank.kernels.list_net import descend_by_query
from moerank.kernels.scores import linear_scores
from moerank.rankers.base import LinearRanker, Matrix
from moerank.rankers.hinge_problem import PairedDocuments, check_positive
from moerank.rankers.trust_region import trust_region_newton

__all__ = ["ListNet", "list_net_loss"]

RATES = (1e-3, 1e-2, 1e-1)
# Newton's method ends when the gradient is this share of what it is at w = 0.
EXACT = 1e-10


class ListNet(LinearRanker):
    """Linear ranker whose softmax over the documents of a query follows that of the labels.

    The loss of a query is the cross entropy of two distributions over its documents, of which each gives the
    probability that a document stands first:

        − Σⱼ P(y)ⱼ log P(Xw)ⱼ,   P(s)ⱼ = exp(sⱼ) / Σₖ exp(sₖ)

    and the objective is the mean over the queries that have different labels. It is convex in w, and without
    regularisation.

    Parameters
    ----------
    rate : float, default 0.01
        Length of a gradient step, > 0.
    n_epochs : int, default 100
        Passes over the training data, ≥ 1. Few passes regularise.
    solver : {"descent", "newton"}, default "descent"
        The paper's gradient descent, or the minimum itself by a Newton method, which looks at neither of the above.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
    epoch_coef_ : ndarray, shape (n_epochs, n_features)
        The weights after each pass; the minimum alone with ``solver="newton"``.

    Notes
    -----
    Like the paper, descent takes a step for one query after the other, here always in the order of the rows and from
    w = 0, so that nothing is drawn. It comes to a stand near the minimum, the closer the smaller the rate. Both are
    chosen by validation; all numbers of passes up to the largest cost one run. The paper says nothing about queries
    whose labels are all equal. Their target is the uniform distribution, which knows no order and draws w to 0; without
    them the validation MAP of LETOR's sets is higher.
    O(n_documents · n_features) a pass, a step of Newton, or a product with the Hessian.

    References
    ----------
    Z. Cao, T. Qin, T.-Y. Liu, M.-F. Tsai, H. Li: Learning to rank: from pairwise approach to listwise approach.
    ICML 2007.

    Examples
    --------
    >>> from moerank.rankers.list_net import ListNet
    >>> X = [[0.0, 0.3], [0.5, 0.1], [1.0, 0.2]]
    >>> ListNet(rate=0.1).fit(X, y=[0, 1, 2]).predict(X).argsort().tolist()
    [0, 1, 2]
    """

    _size = "n_epochs"

    def __init__(self, rate: float = 0.01, n_epochs: int = 100, solver: str = "descent") -> None:
        self.rate = rate
        self.n_epochs = n_epochs
        self.solver = solver

    def _weights(self, train: RankingData) -> Matrix:
        check_positive(rate=self.rate)
        if not isinstance(self.n_epochs, int | np.integer) or self.n_epochs < 1:
            raise ValueError(f"n_epochs must be an integer from 1, not {self.n_epochs!r}")
        problem = _TopOneProblem(train)
        if self.solver == "descent":
            path = descend_by_query(problem.X, problem.target, problem.offsets, self.rate, self.n_epochs)
        elif self.solver == "newton":
            with one_blas_thread():
                minimum = trust_region_newton(partial(_Expansion, problem), np.zeros(train.n_features), tol=EXACT)
            path = minimum.x[None]
        else:
            raise ValueError(f"solver must be one of ('descent', 'newton'), not {self.solver!r}")
        self.epoch_coef_ = self._everywhere(path)
        return path[-1]

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        return linear_scores(X, self.epoch_coef_)

    def default_grid(self, train: RankingData) -> list[dict[str, Any]]:
        """Return rate = 10⁻³, 10⁻² and 10⁻¹, each with 1 … 300 passes; the paper gives no grid."""
        if self.solver == "newton":
            return [{}]
        return [{"rate": rate, "n_epochs": n} for rate in RATES for n in range(1, 301)]


def list_net_loss(data: RankingData, w: ArrayLike) -> tuple[float, Matrix]:
    """Return the mean loss of the queries that have different labels, and its gradient, at w (n_features,)."""
    expansion = _Expansion(_TopOneProblem(data), np.asarray(w, dtype=np.float64))
    return expansion.value, expansion.gradient


class _TopOneProblem:
    """The documents of the queries that have different labels, and the probability of each to stand first."""

    def __init__(self, data: RankingData) -> None:
        documents = PairedDocuments.of(data)
        self.offsets = documents.pairs.offsets
        # Softmax sees only differences inside a query, so centring per query changes nothing but the rounding.
        self.X = centre_in_queries(data.X[documents.rows], self.offsets)
        self.n_queries = len(self.offsets) - 1
        self.query = np.repeat(np.arange(self.n_queries), np.diff(self.offsets))
        self.target, _ = self.softmax(data.y[documents.rows].astype(np.float64))

    def softmax(self, scores: Matrix) -> tuple[Matrix, Matrix]:
        """Return the share of each document, and the logarithm of the divisor of each query."""
        largest = np.maximum.reduceat(scores, self.offsets[:-1])
        share = np.exp(scores - largest[self.query])
        total = self.sums(share)
        return share / total[self.query], np.log(total) + largest

    def sums(self, values: Matrix) -> Matrix:
        return np.add.reduceat(values, self.offsets[:-1])


class _Expansion:
    """The objective at w: value, gradient and products with the Hessian."""

    def __init__(self, problem: _TopOneProblem, w: Matrix) -> None:
        self._problem = problem
        scores = problem.X @ w
        self._share, log_total = problem.softmax(scores)
        self.value = float(log_total.sum() - problem.target @ scores) / problem.n_queries

    @cached_property
    def gradient(self) -> Matrix:
        problem = self._problem
        return (self._share - problem.target) @ problem.X / problem.n_queries

    def product(self, s: Matrix) -> Matrix:
        problem = self._problem
        change = problem.X @ s
        mean = problem.sums(self._share * change)
        return (self._share * (change - mean[problem.query])) @ problem.X / problem.n_queries
