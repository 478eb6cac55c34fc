"""One pass over the preference pairs of some documents, counted and not listed: what it adds up for a population.

The problem of all pairs (`moerank.training.counted`) asks for such sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Floats, FloatType, Integers, Mask, Matrix, Vector
from moerank.checks import check_square
from moerank.data import RankingData
from moerank.data.ranking_data import n_pairs_of_documents, n_pairs_of_queries
from moerank.kernels import newton
from moerank.kernels.cholesky import factorise, solve
from moerank.kernels.lanes import lanes, word_type
from moerank.kernels.products import product
from moerank.kernels.proximal import VALUE, Terms, advance, begin
from moerank.kernels.run_pass import CURVATURE, IDLE, RESIDUALS, centres, rows_by_run, run_pass
from moerank.kernels.tiles import places_of
from moerank.training.losses import EXACT, SQUARED_HINGE, UNIT, PairLoss, Target
from moerank.training.moments import PairMoments
from moerank.training.newton import MAX_STEPS, QuadraticModel

NOBODY_CHOOSES: Mask = np.zeros((0, 0), np.bool_)

LONGEST_LIST = 2_000_000
"""Number of pairs up to which they are listed unless an individual has pairs of its own."""

ROUNDING: dict[FloatType, float] = {np.float32: 1e-5, np.float64: 1e-13}
"""Relative rounding of an objective that a pass of the precision sums."""


def sums_of_pass(
    data: RankingData,
    loss: PairLoss,
    target: Target,
    task: Integers,
    feature_mask: Mask,
    w: Floats,
    v: Floats,
    documents: Mask | None,
    queries: Mask | None,
) -> tuple[Matrix, Matrix]:
    """Return the sums of vectors (n_places,) and of slacks (n_individuals,) of a pass by `moerank.kernels.run_pass`.

    Arguments are as there, with a `feature_mask` (n_individuals, n_features) whose true places `w` and `v` follow.
    """
    sorted_rows, runs = _Rows.of(data), data.label_runs
    used = np.flatnonzero(feature_mask.any(axis=0))
    begin, place = places_of(feature_mask[:, used])
    width = lanes(w.dtype.type)
    prefix = np.array([2**lane - 1 for lane in range(width)], word_type(width))
    sums, slack = np.zeros(len(place)), np.zeros(len(feature_mask))
    shift = np.asarray(target.per_label * data.y, np.float64) if target.per_label else np.empty(0)
    if len(sorted_rows.counted):
        run_pass(
            data.columns, sorted_rows.centres, data.offsets, sorted_rows.counted, runs.first, sorted_rows.start,
            sorted_rows.row, used, begin, place, w, v, task,
            NOBODY_CHOOSES if documents is None else documents, NOBODY_CHOOSES if queries is None else queries,
            target.margin, shift, loss.one_sided, prefix, sums, slack,
        )  # fmt: skip
    return sums, slack


class _Rows(NamedTuple):
    """The order of the documents for passes."""

    counted: Integers  # the queries with pairs
    row: NDArray[np.int32]  # the documents by run
    start: Integers  # where each run begins
    centres: Matrix  # (n_features, n_queries), means

    @classmethod
    def of(cls, data: RankingData) -> _Rows:
        def make() -> _Rows:
            runs = data.label_runs
            sorted_rows = rows_by_run(runs.run, len(runs.n_worse))
            return cls(np.flatnonzero(runs.n_pairs_of), *sorted_rows, centres(data.columns, data.offsets))

        return data.remember("rows of a pass", make)


class CountedProblem:
    """All preference pairs of a data set, counted in passes over the documents.

    Features of any precision are neither copied nor converted: beyond them a block is held, and their mean in each
    query. A pass takes O(k · n_documents) for an individual with k features, and O(Σ_q n_q²) at worst for the pairs of
    queries with n_q documents.
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
        """Return the minima (n_Cs, n_features) for some C on all features, and whether each was reached; remembered."""
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

        It takes a product with the second derivative for each feature, in single precision, as neighbouring problems
        only start from the model and are preconditioned with it.
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
            self._models[C] = QuadraticModel(B, product(B, w) - (w - scale * pulled), w)
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
        """Return the minimum for the features and pairs of each individual, and whether it was found.

        Shapes (n_individuals, n_features) and (n_individuals,); the solver stops after `newton.MAX_STEPS` steps. It
        begins at the minimum of the model on these features unless `start` is given, and `tolerance` bounds the
        relative error of each objective. `documents` (n_individuals, n_documents) and `queries` (n_individuals,
        n_queries), or one row for all, choose an individual's pairs; a row that keeps no pair is a ValueError.
        """
        model = self.model(C)
        check_square(*feature_mask.shape[::-1])
        factors = factorise(model.B, feature_mask)
        W = np.where(feature_mask, 0.0 if start is None else start, 0.0)
        if start is None:
            for factor, chosen, w in zip(factors, feature_mask, W, strict=True):
                solve(factor, chosen, model.rhs, w)
        scale = C / self.counts(len(W), documents, queries)
        found = self._newton(
            np.float32, feature_mask, factors, W, scale, tolerance, newton.MAX_STEPS, documents, queries
        )
        return W, found

    def counts(self, n_individuals: int, documents: Mask | None, queries: Mask | None) -> Matrix:
        """Return the number of pairs of each individual, shape (n_individuals,); a row without any is a ValueError."""
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
        precision: FloatType,
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
        state = newton.begin(W)
        while (going := state.task != IDLE).any():
            sums = self._sums(precision, state.task, feature_mask, W, state.direction, documents, queries)
            newton.advance(
                state, going, *sums, feature_mask, factors, scale, self._loss.one_sided, True, tolerance,
                ROUNDING[precision], most_steps,
            )  # fmt: skip
        return state.n_steps <= most_steps

    def _sums(
        self,
        precision: FloatType,
        task: Integers,
        feature_mask: Mask,
        W: Matrix,
        V: Matrix,
        documents: Mask | None = None,
        queries: Mask | None = None,
    ) -> tuple[Matrix, Matrix]:
        """Return the sums of one pass at W with the directions V, shapes of W and (n_individuals,)."""
        found, slack = sums_of_pass(
            self._data,
            self._loss,
            self._target,
            task,
            feature_mask,
            W[feature_mask].astype(precision),
            V[feature_mask].astype(precision),
            documents,
            queries,
        )
        sums = np.zeros(W.shape)
        sums[feature_mask] = found
        return sums, slack


def minimise_by_passes(
    problem: CountedProblem,
    feature_mask: Mask,
    A: Matrix,
    cost: Vector,
    lambdas: Matrix,
    start: Matrix,
    max_iter: int,
    tol: float,
    documents: Mask | None,
    queries: Mask | None,
) -> tuple[Matrix, Integers, Matrix]:
    """Minimise the objectives of `moerank.kernels.proximal` on counted pairs, by a pass for each sum of Algorithm 1.

    A step takes a pass for the gradient, and one for each trial of the line search. An individual that has ended takes
    none, and no individual depends on its company. The problem has the squared hinge loss. `lambdas` (n, 2) are λ₁ and
    λ₂, `start` (n, 2 n_features) is not negative, and 0 off the features.

    Returns the variables [u; v] (n, 2 n_features), the steps (n,), and F at the start and after each step
    (max_iter + 1, n).
    """
    n = len(feature_mask)
    share, costs = 1.0 / problem.counts(n, documents, queries), np.tile(cost, (n, 1))
    terms = Terms(feature_mask, share, np.ascontiguousarray(A.T), costs, *np.ascontiguousarray(lambdas.T))
    state = begin(terms, start)
    history = np.zeros((max_iter + 1, n))
    while (going := state.task != IDLE).any():
        at_trial = (state.task == VALUE)[:, None]
        u, v = np.hsplit(np.where(at_trial, state.trial, state.z), 2)
        features = np.where(at_trial, u != v, feature_mask & going[:, None])
        W, task = u - v, np.where(going, RESIDUALS, IDLE)
        sums, slack = problem._sums(np.float64, task, features, W, np.zeros_like(W), documents, queries)
        advance(state, going, terms, sums, slack - (W * sums).sum(axis=1), max_iter, tol)
        history[state.n_iter, np.arange(n)] = state.objective
    return state.w, state.n_iter, history
