"""One pass over the preference pairs of some documents, counted and not listed: what it adds up for a population.

The problem of all pairs (`moerank.training.counted`) asks for such sums, shard by shard where the documents are
in shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.data.blocks import ByDocument, ByQuery
from moerank.data.pairs import n_pairs_of_documents, n_pairs_of_queries
from moerank.kernels.cholesky import factorise, solve
from moerank.kernels.lanes import lanes, word_type
from moerank.kernels.newton import MAX_STEPS as POPULATION_STEPS
from moerank.kernels.newton import advance
from moerank.kernels.run_pass import CURVATURE, RESIDUALS, centres, rows_by_run, run_pass
from moerank.kernels.square import in_order
from moerank.kernels.tiles import places_of
from moerank.training.losses import EXACT, SQUARED_HINGE, UNIT, PairLoss, Target
from moerank.training.moments import PairMoments
from moerank.training.newton import MAX_STEPS, QuadraticModel

__all__ = ["sums_of_pass", "LONGEST_LIST", "CountedProblem", "minimise_by_passes"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

NOBODY_CHOOSES: Mask = np.zeros((0, 0), np.bool_)


def sums_of_pass(
    data: RankingData,
    loss: PairLoss,
    target: Target,
    task: NDArray[np.int64],
    feature_mask: Mask,
    w: NDArray[np.floating[Any]],
    v: NDArray[np.floating[Any]],
    documents: Mask | None,
    queries: Mask | None,
) -> tuple[Matrix, Matrix]:
    """Return the sums of vectors and of slacks of a pass, as `moerank.kernels.run_pass` defines them.

    Parameters
    ----------
    data : RankingData
    loss : PairLoss
    target : Target
        The margin of a pair.
    task : ndarray of int64, shape (n_individuals,)
    feature_mask : ndarray of bool, shape (n_individuals, n_features)
    w, v : ndarray, shape (n_places,)
        Weights and directions of the features of each individual, one individual after the other, in the precision of
        the pass.
    documents, queries : ndarray of bool, optional
        Whose pairs count, shapes (n_individuals, n_documents) and (n_individuals, n_queries), or one row for all.

    Returns
    -------
    sums : ndarray, shape (n_places,)
    slack : ndarray, shape (n_individuals,)
    """
    sorted_rows, runs = _Rows.of(data), data.label_runs
    used, begin, place = _places(feature_mask)
    sums, slack = np.zeros(len(place)), np.zeros(len(feature_mask))
    shift = np.asarray(target.per_label * data.y, np.float64) if target.per_label else np.empty(0)
    if len(sorted_rows.counted):
        run_pass(
            data.columns, sorted_rows.centres, data.offsets, sorted_rows.counted, runs.first, sorted_rows.start,
            sorted_rows.row, used, begin, place, w, v, task,
            NOBODY_CHOOSES if documents is None else documents, NOBODY_CHOOSES if queries is None else queries,
            target.margin, shift, loss.one_sided, _prefixes(w.dtype.type), sums, slack,
        )  # fmt: skip
    return sums, slack


class _Rows(NamedTuple):
    """What passes need of the documents beside their features and labels.

    Attributes
    ----------
    counted : ndarray of int64
        The queries with pairs.
    row, start : ndarray
        The documents by run, and where each run begins.
    centres : ndarray, shape (n_features, n_queries)
    """

    counted: NDArray[np.int64]
    row: NDArray[np.int32]
    start: NDArray[np.int64]
    centres: Matrix

    @classmethod
    def of(cls, data: RankingData) -> _Rows:
        def make() -> _Rows:
            runs = data.label_runs
            sorted_rows = rows_by_run(runs.run, len(runs.n_worse))
            return cls(np.flatnonzero(runs.n_pairs_of), *sorted_rows, centres(data.columns, data.offsets))

        return data.remember("rows of a pass", make)


def _places(feature_mask: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return where a pass finds the features of each individual: `used`, `begin` and `place` of `run_pass`."""
    used = np.flatnonzero(feature_mask.any(axis=0))
    return used, *places_of(feature_mask[:, used])


def _prefixes(precision: type[np.floating[Any]]) -> NDArray[np.unsignedinteger[Any]]:
    """Return the words of which number l has the bits of the lanes before lane l."""
    width = lanes(precision)
    return np.array([2**lane - 1 for lane in range(width)], word_type(width))


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


Vector = NDArray[np.float64]

ROUNDING_OF_COUNTED_PROXIMAL = 1e-13
"""Relative rounding error of ℓ, which the test of the line search has to allow for."""


def minimise_by_passes(
    problem: CountedProblem,
    feature_mask: Mask,
    A: Matrix,
    cost: Vector,
    lambdas: Matrix,
    start: Matrix,
    max_iter: int,
    tol: float,
    documents: Mask | None = None,
    queries: Mask | None = None,
) -> tuple[Matrix, NDArray[np.int64], Matrix]:
    """Return the variables [u; v] (n, 2 n_features), the numbers of steps (n,), and F at the start and after each step.

    The last has shape (max_iter + 1, n). F(w) = (1 / p) Σ max(0, 1 − (u − v)ᵀ(xᵢ − xⱼ))² + ½ λ₁ (u + v)ᵀA(u + v)
    + λ₂ Σ cᵢ (uᵢ + vᵢ), over the p pairs of each individual. A step takes a pass for the gradient, and one for each
    trial of the line search; an individual that has ended takes none, and none depends on its company.

    Parameters
    ----------
    problem : CountedProblem
        With the squared hinge loss.
    feature_mask : (n, n_features)
    A : (n_features, n_features), symmetric
    cost : (n_features,), cᵢ; finite
    lambdas : (n, 2), λ₁ and λ₂
    start : (n, 2 n_features), not negative, and 0 off the features
    max_iter, tol : an individual ends after `max_iter` steps or when F changes by at most ``tol · F`` in one
    documents, queries : as in `CountedProblem.solve_population`
    """
    n = len(feature_mask)
    lambda1, lambda2 = lambdas.T
    share = 1.0 / problem.counts(n, documents, queries)
    allowed = np.hstack([feature_mask, feature_mask])
    costs = np.tile(cost, 2) * lambda2[:, None]

    def smooth(w: Matrix, mask: Mask, rows: NDArray[np.int64]) -> tuple[Vector, Matrix]:
        """Return ℓ of some individuals at their rows of w, and its gradient on the features of the mask."""
        u, v = np.hsplit(w, 2)
        pulled, squares = problem.squared_residuals(u - v, mask, _of(documents, rows), _of(queries, rows))
        similar = np.array([in_order(A, size) for size in u + v]) * lambda1[rows, None]
        loss = -2.0 * share[rows, None] * pulled
        value = share[rows] * squares + 0.5 * ((u + v) * similar).sum(axis=1)
        return value, np.hstack([similar + loss, similar - loss])

    w, before = start.copy(), start.copy()
    L = (4.0 + 2.0 * lambda1) * np.maximum(1, feature_mask.sum(axis=1)) / 2.0**10
    alpha, momentum = np.ones(n), np.zeros(n)
    n_iter, history = np.zeros(n, np.int64), np.zeros((max_iter + 1, n))
    rows = np.arange(n)
    for step in range(max_iter):
        z = w[rows] + momentum[rows, None] * (w[rows] - before[rows])
        value, gradient = smooth(z, feature_mask[rows], rows)
        if step == 0:  # z is w here
            history[0] = value + (costs * w).sum(axis=1)
        trial, reached = np.empty_like(z), np.empty(len(rows))
        searching = np.arange(len(rows))
        while len(searching):
            own = rows[searching]
            stepped = z[searching] - (gradient[searching] + costs[own]) / L[own, None]
            trial[searching] = found = np.where(allowed[own], np.maximum(0.0, stepped), 0.0)
            u, v = np.hsplit(found, 2)
            reached[searching] = smooth(found, u != v, own)[0]
            change = found - z[searching]
            model = (gradient[searching] * change + 0.5 * L[own, None] * change * change).sum(axis=1)
            above = reached[searching] > value[searching] + model + ROUNDING_OF_COUNTED_PROXIMAL * value[searching]
            searching = searching[above]
            L[rows[searching]] *= 2.0
        before[rows], w[rows] = w[rows], trial
        n_iter[rows] = step + 1
        history[step + 1, rows] = reached + (costs[rows] * trial).sum(axis=1)
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * alpha[rows] ** 2))
        momentum[rows], alpha[rows] = (alpha[rows] - 1.0) / following, following
        fall = np.abs(history[step + 1, rows] - history[step, rows])
        rows = rows[fall > tol * np.abs(history[step, rows])]
        if not len(rows):
            break
    return w, n_iter, history


def _of(masks: Mask | None, rows: NDArray[np.int64]) -> Mask | None:
    """Return the masks of some individuals; one row is shared by all."""
    return masks if masks is None or len(masks) == 1 else masks[rows]
