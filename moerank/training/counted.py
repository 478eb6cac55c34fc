"""All preference pairs of a data set, counted in passes over the documents and not listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import FloatType, Integers, Mask, Matrix
from moerank.checks import check_square
from moerank.data import RankingData
from moerank.data.ranking_data import n_pairs_of_documents, n_pairs_of_queries
from moerank.kernels import newton
from moerank.kernels.algebra import factorise, product, solve
from moerank.kernels.lanes import lanes, word_type
from moerank.kernels.proximal import VALUE, Terms, advance, begin
from moerank.kernels.run_pass import CURVATURE, IDLE, RESIDUALS, centres, rows_by_run, run_pass
from moerank.kernels.tiles import own_features
from moerank.training.masks import Masks
from moerank.training.pair_loss import EXACT_TOLERANCE, SQUARED_HINGE, UNIT, PairLoss, Penalties, Target
from moerank.training.pair_moments import PairMoments
from moerank.training.smooth import EXACT_STEPS, QuadraticModel

NOBODY_CHOOSES: Mask = np.zeros((0, 0), np.bool_)

PASS_ROUNDING: dict[FloatType, float] = {np.float32: 1e-5, np.float64: 1e-13}
"""Relative rounding of an objective that a pass of the precision sums."""


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


class CountedPairs:
    """All preference pairs of a data set, of which individuals may choose those among some documents or queries.

    Features of any precision are neither copied nor converted: beyond them a block is held, and their mean in each
    query. A pass takes O(k · n_documents) for an individual with k features, and O(Σ_q n_q²) at worst for the pairs of
    queries with n_q documents.
    """

    everything = True

    def __init__(self, data: RankingData, target: Target = UNIT) -> None:
        self.data, self.target = data, target
        self._minima: dict[tuple[PairLoss, float], tuple[Matrix, np.bool_]] = {}
        self._models: dict[tuple[PairLoss, float], QuadraticModel] = {}

    @classmethod
    def of(cls, data: RankingData, target: Target = UNIT) -> CountedPairs:
        """Return the pairs of a data set, remembered with it."""
        return data.remember(("counted pairs", target), lambda: cls(data, target))

    def minima(self, loss: PairLoss, Cs: Sequence[float]) -> tuple[Matrix, Mask]:
        """Return the minima (n_Cs, n_features) for some C on all features, and whether each was reached; remembered."""
        new = [C for C in dict.fromkeys(Cs) if (loss, C) not in self._minima]
        if new:
            minima = zip(*self._minimise(loss, new), strict=True)
            self._minima.update({(loss, C): minimum for C, minimum in zip(new, minima, strict=True)})
        W, reached = zip(*(self._minima[loss, C] for C in Cs), strict=True)
        return np.array(W), np.array(reached)

    def _minimise(self, loss: PairLoss, Cs: Sequence[float]) -> tuple[Matrix, Mask]:
        """Take Newton steps from the solutions for the squared loss."""
        moments = PairMoments.of(self.data)
        masks = Masks(np.ones((len(Cs), self.data.n_features), bool))
        factors, W = np.empty((len(Cs), *moments.gram.shape)), np.empty(masks.features.shape)
        for C, factor, w in zip(Cs, factors, W, strict=True):
            factor[:] = factorise(np.eye(len(w)) + 2.0 * C * moments.gram, masks.features[:1])[0]
            solve(factor, masks.features[0], 2.0 * C * moments.moment(self.target), w)
        scale = np.array(Cs, np.float64) / self.data.n_pairs
        return W, self._newton(loss, np.float64, masks, factors, W, scale, EXACT_TOLERANCE, EXACT_STEPS)

    def model(self, loss: PairLoss, C: float) -> QuadraticModel:
        """Return the model of the objective at its minimum for all features; remembered.

        It takes a product with the second derivative for each feature, in single precision, as neighbouring problems
        only start from the model and are preconditioned with it.
        """
        if (loss, C) not in self._models:
            w = self.minima(loss, [C])[0][0]
            n_features = len(w)
            every, once = (Masks(np.ones((n, n_features), bool)) for n in (n_features, 1))
            tasks, directions = np.full(n_features, CURVATURE), np.eye(n_features)
            products, _ = self._sums(loss, np.float32, tasks, every, np.tile(w, (n_features, 1)), directions)
            pulled = self._sums(loss, np.float64, np.array([RESIDUALS]), once, w[None], directions[:1])[0][0]
            scale = 2.0 * C / self.data.n_pairs
            B = np.eye(n_features) + scale * 0.5 * (products + products.T)
            self._models[loss, C] = QuadraticModel(B, product(B, w) - (w - scale * pulled), w)
        return self._models[loss, C]

    def solve_population(
        self,
        loss: PairLoss,
        C: float,
        model: QuadraticModel,
        masks: Masks,
        *,
        tolerance: float,
        start: Matrix | None = None,
    ) -> tuple[Matrix, Mask]:
        """Return the minima as `moerank.training.pairs.solve_pairs` does, from the `model` of all pairs."""
        features = masks.features
        check_square(*features.shape[::-1])
        factors = factorise(model.B, features)
        W = np.where(features, 0.0 if start is None else start, 0.0)
        if start is None:
            for factor, chosen, w in zip(factors, features, W, strict=True):
                solve(factor, chosen, model.rhs, w)
        scale = C / self.counts(masks)
        return W, self._newton(loss, np.float32, masks, factors, W, scale, tolerance, newton.MAX_STEPS)

    def counts(self, masks: Masks) -> Matrix:
        """Return the number of pairs of each individual, shape (n_individuals,); a row without any is a ValueError."""
        counts = np.array([self.data.n_pairs])
        if (documents := masks.of_unit("document")) is not None:
            counts = n_pairs_of_documents(self.data, documents)
        elif (queries := masks.of_unit("query")) is not None:
            counts = n_pairs_of_queries(self.data, queries)
        if not counts.all():
            raise ValueError(f"row {int(np.argmin(counts))} of the mask keeps no preference pair to train on")
        return np.broadcast_to(counts, len(masks.features)).astype(np.float64)

    def _newton(
        self,
        loss: PairLoss,
        precision: FloatType,
        masks: Masks,
        factors: Matrix,
        W: Matrix,
        scale: Matrix,
        tolerance: float,
        most_steps: int,
    ) -> Mask:
        """Bring W to the minima in place, and return whether each was reached."""
        state = newton.begin_newton(W)
        while (going := state.task != IDLE).any():
            sums = self._sums(loss, precision, state.task, masks, W, state.direction)
            newton.advance_newton(
                state, going, *sums, masks.features, factors, scale, loss.one_sided, True, tolerance,
                PASS_ROUNDING[precision], most_steps,
            )  # fmt: skip
        return state.n_steps <= most_steps

    def minimise_penalised(
        self, penalties: Penalties, masks: Masks, start: Matrix, max_iter: int, tol: float
    ) -> tuple[Matrix, Integers, Matrix]:
        """Minimise as `ListedPairs.minimise_penalised` does, by a pass for each sum of FSMRank's Algorithm 1.

        A step takes a pass for the gradient, and one for each trial of the line search. An individual that has ended
        takes none, and no individual depends on its company.
        """
        n = len(masks.features)
        similarity, costs, *lambdas = (np.ascontiguousarray(array) for array in penalties)
        terms = Terms(masks.features, 1.0 / self.counts(masks), np.ascontiguousarray(similarity.T), costs, *lambdas)
        state = begin(terms, start)
        history = np.zeros((max_iter + 1, n))
        while (going := state.task != IDLE).any():
            at_trial = (state.task == VALUE)[:, None]
            u, v = np.hsplit(np.where(at_trial, state.trial, state.z), 2)
            used = replace(masks, features=np.where(at_trial, u != v, masks.features & going[:, None]))
            W, task = u - v, np.where(going, RESIDUALS, IDLE)
            sums, slack = self._sums(SQUARED_HINGE, np.float64, task, used, W, np.zeros_like(W))
            advance(state, going, terms, sums, slack - (W * sums).sum(axis=1), max_iter, tol)
            history[state.n_iter, np.arange(n)] = state.objective
        return state.w, state.n_iter, history

    def _sums(
        self, loss: PairLoss, precision: FloatType, task: Integers, masks: Masks, W: Matrix, V: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Return the sums of vectors (shape of W) and of slacks (n_individuals,) of a pass at W with the directions V.

        They are those of `moerank.kernels.run_pass`, for the tasks of the individuals.
        """
        data, rows, features = self.data, _Rows.of(self.data), masks.features
        own = own_features(features)
        width = lanes(precision)
        prefix = np.array([2**lane - 1 for lane in range(width)], word_type(width))
        pulled, slack = np.zeros(np.count_nonzero(features)), np.zeros(len(features))
        shift = np.asarray(self.target.per_label * data.y, np.float64) if self.target.per_label else np.empty(0)
        documents, queries = (
            NOBODY_CHOOSES if (chosen := masks.of_unit(unit)) is None else chosen for unit in ("document", "query")
        )
        order = rows.counted, data.label_runs.first, rows.start, rows.row
        if len(rows.counted):
            run_pass(
                data.columns, rows.centres, data.offsets, order, own, W[features].astype(precision),
                V[features].astype(precision), task, (documents, queries), self.target.margin, shift, loss.one_sided,
                prefix, pulled, slack,
            )  # fmt: skip
        sums = np.zeros(W.shape)
        sums[features] = pulled
        return sums, slack
