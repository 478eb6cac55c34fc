"""The problem behind the pairwise linear rankers on pairs that are counted: all, or among some documents or queries.

Minimise ½ ‖w‖² + (C / p) Σ ℓ(tₖ − wᵀ(xᵢ − xⱼ)) over the p pairs. Where individuals have pairs of their own, one by one,
`moerank.training.pair_problem` lists them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.data.pair_counts import n_pairs_of_documents, n_pairs_of_queries
from moerank.data.shares import ByDocument, ByQuery
from moerank.kernels.cholesky import factorise, solve
from moerank.kernels.newton import MAX_STEPS as POPULATION_STEPS
from moerank.kernels.run_newton import advance
from moerank.kernels.run_pass import CURVATURE, RESIDUALS
from moerank.kernels.square import in_order
from moerank.training.counted_pass import sums_of_pass
from moerank.training.dense_newton import MAX_STEPS, QuadraticModel
from moerank.training.losses import EXACT, SQUARED_HINGE, UNIT, PairLoss, Target
from moerank.training.pair_moments import PairMoments

__all__ = ["LONGEST_LIST", "CountedProblem"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

LONGEST_LIST = 2_000_000
"""Pairs that are listed at most unless an individual has pairs of its own."""

ROUNDING = {np.float32: 1e-5, np.float64: 1e-13}
"""Of an objective, relative, as a pass of that precision sums it."""


class CountedProblem:
    """All preference pairs of a data set.

    Parameters
    ----------
    data : RankingData
        In any precision; it is neither copied nor converted.
    loss : PairLoss, default SQUARED_HINGE
    target : Target, default UNIT
        The margin tₖ of a pair.

    Notes
    -----
    A pass over the data takes O(k · n_documents) for an individual with k features, and O(Σ_q n_q²) at worst for the
    pairs of queries with n_q documents. Beyond the features a block of them is held, and their mean in each query.
    """

    def __init__(self, data: RankingData, loss: PairLoss = SQUARED_HINGE, target: Target = UNIT) -> None:
        self.n_pairs = data.n_pairs
        self._data, self._loss, self._target = data, loss, target
        self._minima: dict[float, tuple[Matrix, np.bool_]] = {}
        self._models: dict[float, QuadraticModel] = {}

    @classmethod
    def of(cls, data: RankingData, loss: PairLoss = SQUARED_HINGE, target: Target = UNIT) -> CountedProblem:
        """Return the problem of a data set, remembered with it."""
        return data.remember(("counted problem", loss, target), lambda: cls(data, loss, target))

    def minima(self, Cs: Sequence[float]) -> tuple[Matrix, Mask]:
        """Return the minima for some C, on all features, shape (n_Cs, n_features); and whether each was reached.

        They are exact to rounding, solved side by side, and remembered.
        """
        new = [C for C in dict.fromkeys(Cs) if C not in self._minima]
        if new:
            self._minima.update(zip(new, zip(*self._minimise(new), strict=True), strict=True))
        W, reached = zip(*(self._minima[C] for C in Cs), strict=True)
        return np.array(W), np.array(reached)

    def _minimise(self, Cs: Sequence[float]) -> tuple[Matrix, Mask]:
        """Take Newton steps from the solutions for the squared loss."""
        moments = PairMoments.of(self._data)
        everything = np.ones((len(Cs), self._data.n_features), bool)
        factors, W = np.empty((len(Cs), *moments.gram.shape)), np.empty(everything.shape)
        for C, factor, w in zip(Cs, factors, W, strict=True):
            factor[:] = factorise(np.eye(len(w)) + 2.0 * C * moments.gram, everything[:1])[0]
            solve(factor, everything[0], 2.0 * C * moments.moment(self._target), w)
        scale = np.array(Cs, np.float64) / self.n_pairs
        return W, self._newton(np.float64, everything, factors, W, scale, EXACT, MAX_STEPS)

    def model(self, C: float) -> QuadraticModel:
        """Return the model of this problem at its minimum for all features; remembered.

        As many products with the second derivative as there are features, in single precision: the model is where
        neighbouring problems start, and what they are preconditioned with.
        """
        if C not in self._models:
            w = self.minima([C])[0][0]
            n_features = len(w)
            every, once = (np.ones((n, n_features), bool) for n in (n_features, 1))
            tasks, directions = np.full(n_features, CURVATURE), np.eye(n_features)
            products, _ = self._sums(np.float32, tasks, every, np.tile(w, (n_features, 1)), directions)
            pulled = self._sums(np.float64, np.array([RESIDUALS]), once, w[None], directions[:1])[0][0]
            scale = 2.0 * C / self.n_pairs
            B = np.eye(n_features) + scale * 0.5 * (products + products.T)
            self._models[C] = QuadraticModel(B, in_order(B, w) - (w - scale * pulled), w)
        return self._models[C]

    def solve_population(
        self,
        C: float,
        feature_mask: Mask,
        *,
        tolerance: float,
        start: Matrix | None = None,
        documents: Mask | None = None,
        queries: Mask | None = None,
    ) -> tuple[Matrix, Mask]:
        """Return W (n_individuals, n_features), each row the minimum for its features and its pairs.

        Beside it stands whether each row was found before the solver stopped at its bound, shape (n_individuals,).

        Parameters
        ----------
        feature_mask : (n_individuals, n_features)
        tolerance : bound on the relative error of each objective
        start : (n_individuals, n_features), optional
            Where to start instead of at the minimum of the model on these features.
        documents : (n_individuals, n_documents) or (1, n_documents), optional
            An individual's pairs are those among its documents; one row is shared by all.
        queries : (n_individuals, n_queries) or (1, n_queries), optional
            An individual's pairs are those of its queries.

        Raises
        ------
        ValueError
            If a row of these masks keeps no pair.
        """
        model = self.model(C)
        factors = factorise(model.B, feature_mask)
        W = np.where(feature_mask, 0.0 if start is None else start, 0.0)
        if start is None:
            for factor, chosen, w in zip(factors, feature_mask, W, strict=True):
                solve(factor, chosen, model.rhs, w)
        scale = C / self.counts(len(W), documents, queries)
        found = self._newton(
            np.float32, feature_mask, factors, W, scale, tolerance, POPULATION_STEPS, documents, queries
        )
        return W, found

    def squared_residuals(
        self, W: Matrix, feature_mask: Mask, documents: Mask | None = None, queries: Mask | None = None
    ) -> tuple[Matrix, Matrix]:
        """Return Σ d (xᵢ − xⱼ) and Σ d² over the pairs of each row, shapes (n, n_features) and (n,), by one pass.

        d are the residuals at W, which is 0 off the features; the first sum is 0 there. Parameters as in
        `solve_population`.
        """
        task, none = np.full(len(W), RESIDUALS), np.zeros_like(W)
        sums, slack = self._sums(np.float64, task, feature_mask, W, none, documents, queries)
        return sums, slack - (W * sums).sum(axis=1)

    def counts(self, n_individuals: int, documents: Mask | None, queries: Mask | None) -> Matrix:
        """Return the number of pairs of each individual, shape (n_individuals,).

        Raises
        ------
        ValueError
            If a row of a mask keeps none.
        """
        counts = np.array([self.n_pairs])
        if documents is not None:
            counts = n_pairs_of_documents(self._data, documents)
        elif queries is not None:
            counts = n_pairs_of_queries(self._data, queries)
        if not counts.all():
            raise ValueError(f"row {int(np.argmin(counts))} of the mask keeps no preference pair to train on")
        return np.broadcast_to(counts, n_individuals).astype(np.float64)

    def _newton(
        self,
        precision: type[np.floating[Any]],
        feature_mask: Mask,
        factors: Matrix,
        W: Matrix,
        scale: Matrix,
        tolerance: float,
        most_steps: int,
        documents: Mask | None = None,
        queries: Mask | None = None,
    ) -> Mask:
        """Bring W to the minima in place, and return whether each was reached."""
        previous, direction, residual = np.zeros((3, *W.shape))
        rho, target = np.zeros((2, len(W)))
        n_steps, n_products = np.zeros((2, len(W)), np.int64)
        best, is_last, task = np.full(len(W), np.inf), np.zeros(len(W), np.bool_), np.full(len(W), RESIDUALS)
        while task.any():  # until all are idle
            sums, slack = self._sums(precision, task, feature_mask, W, direction, documents, queries)
            advance(
                task, sums, slack, feature_mask, factors, scale, self._loss.one_sided, tolerance, ROUNDING[precision],
                most_steps, W, previous, direction, residual, best, rho, target, is_last, n_steps, n_products,
            )  # fmt: skip
        return n_steps <= most_steps

    def _sums(
        self,
        precision: type[np.floating[Any]],
        task: NDArray[np.int64],
        feature_mask: Mask,
        W: Matrix,
        V: Matrix,
        documents: Mask | None = None,
        queries: Mask | None = None,
    ) -> tuple[Matrix, Matrix]:
        """Return what one pass sums up at W with the directions V: shape of these, and (n_individuals,)."""
        found, slack = self._data.total(
            sums_of_pass,
            self._loss,
            self._target,
            task,
            feature_mask,
            W[feature_mask].astype(precision),
            V[feature_mask].astype(precision),
            None if documents is None else ByDocument(documents),
            None if queries is None else ByQuery(queries),
        )
        sums = np.zeros(W.shape)
        sums[feature_mask] = found
        return sums, slack
