"""Listed preference pairs, and populations cut into groups that kernels train side by side, one individual a lane.

Lanes do not influence each other, so the result of an individual does not depend on the groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import FloatType, Integers, Mask, Matrix, Words
from moerank.checks import check_square
from moerank.data import PreferencePairs, RankingData, centre_in_queries
from moerank.kernels.algebra import factorise, product, solve
from moerank.kernels.lanes import lanes, word_type
from moerank.kernels.newton import newton_lanes
from moerank.kernels.pair_pass import curvature_pass, hinge_pass, pack_lanes, project, pull_back
from moerank.kernels.proximal import proximal_lanes
from moerank.training.masks import Masks
from moerank.training.pair_loss import EXACT_TOLERANCE, SQUARED, UNIT, PairLoss, Penalties, Target
from moerank.training.smooth import DenseExpansion, QuadraticModel, dense_newton, solve_positive_definite

Element = TypeVar("Element", bound=np.generic)


@dataclass(frozen=True)
class LaneGroup:
    """Neighbouring individuals of a population, in some `rows` of its arrays, at most as many as a vector has lanes."""

    rows: slice
    n_lanes: int

    def __len__(self) -> int:
        return int(self.rows.stop - self.rows.start)

    def fill_up(self, values: NDArray[Element], empty: float = 0.0) -> NDArray[Element]:
        """Return the group's rows of `values` (n_individuals, …) as (n_lanes, …), with `empty` in the lanes left over.

        >>> [group.fill_up(np.arange(1, 11)).tolist() for group in lane_groups(10, np.float64)]
        [[1, 2, 3, 4, 5, 6, 7, 8], [9, 10, 0, 0, 0, 0, 0, 0]]
        """
        filled: NDArray[Element] = np.full((self.n_lanes, *values.shape[1:]), empty, values.dtype)
        filled[: len(self)] = values[self.rows]
        return filled


def lane_groups(n_individuals: int, precision: FloatType) -> Iterator[LaneGroup]:
    """Cut a population into groups that fill the lanes of a vector of `precision`; the last may be smaller.

    >>> [len(group) for group in lane_groups(20, np.float64)]
    [8, 8, 4]
    """
    n_lanes = lanes(precision)
    for begin in range(0, n_individuals, n_lanes):
        yield LaneGroup(slice(begin, min(begin + n_lanes, n_individuals)), n_lanes)


class LanePairs:
    """The pairs that each lane of a group keeps, as the passes read them.

    `pair_mask` (n_individuals, n_pairs) has the pairs of each individual; None means that everybody keeps all.
    """

    def __init__(self, n_pairs: int, precision: FloatType, pair_mask: Mask | None = None) -> None:
        self.n_pairs = n_pairs
        self.pair_mask = pair_mask
        n_lanes = lanes(precision)
        self._words: Words = np.full(n_pairs, 2**n_lanes - 1, word_type(n_lanes))

    def pack(self, group: LaneGroup) -> tuple[Words, Integers]:
        """Return one word per pair, bit l for lane l, and the number of pairs that each lane keeps (n_lanes,).

        A lane without an individual keeps none and is idle. The words are valid until the next call.
        O(n_pairs · n_lanes), or O(1) where everybody keeps all pairs.
        """
        n_kept = np.zeros(group.n_lanes, np.int64)
        if self.pair_mask is None:
            n_kept[: len(group)] = self.n_pairs
        else:
            masks = self.pair_mask[group.rows]
            n_kept[: len(group)] = [np.count_nonzero(row) for row in masks]
            pack_lanes(masks, self._words)
        return self._words, n_kept


_SINGLE, _DOUBLE = lanes(np.float32), lanes(np.float64)


class ListedPairs:
    """The preference pairs `keep` (n_pairs,) of a data set, all by default, and the documents they join."""

    def __init__(self, data: RankingData, keep: Mask | None = None, target: Target = UNIT) -> None:
        self.data, self.target, self.everything = data, target, keep is None
        pairs = data.pairs if keep is None else data.pairs.subset(keep)
        rows, ends = np.unique(np.concatenate([pairs.winner, pairs.worse]), return_inverse=True)
        winner, worse = np.split(ends.astype(np.int32), [len(pairs.winner)])
        self.pairs = PreferencePairs(np.repeat(winner, np.diff(pairs.first)), worse, pairs.first, winner)
        # Only differences inside a query matter, so centring per query changes nothing but the rounding.
        self.X = np.ascontiguousarray(centre_in_queries(data.X, data.offsets)[rows])
        self._models: dict[tuple[PairLoss, float], QuadraticModel] = {}
        self._scores: dict[QuadraticModel, NDArray[np.float32]] = {}
        self.shift: Matrix = target.per_label * data.y[rows]

    @classmethod
    def of(cls, data: RankingData, keep: Mask | None = None, target: Target = UNIT) -> ListedPairs:
        """Return the pairs of a subset, remembered with the data."""
        subset = None if keep is None else np.packbits(keep).tobytes()
        return data.remember(("listed pairs", target, subset), lambda: cls(data, keep, target))

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def _varies(self) -> Mask:
        """Features that are not constant in every query, shape (n_features,)."""
        return np.asarray(self.X.any(axis=0))

    @cached_property
    def X_lanes(self) -> NDArray[np.float32]:
        """X in the precision of the population's passes."""
        return self.X.astype(np.float32)

    @cached_property
    def gram(self) -> Matrix:
        """Mean of (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ over the pairs, shape (n_features, n_features)."""
        return self._scatter(np.full(len(self), 255, np.uint8)) / len(self)

    @cached_property
    def moment(self) -> Matrix:
        """Mean of tₖ (xᵢ − xⱼ) over the pairs, shape (n_features,)."""
        return self._residuals(np.zeros(self.X.shape[1]), SQUARED)[1] / len(self)

    def model(self, loss: PairLoss, C: float) -> QuadraticModel:
        """Return the model of the objective at its minimum with all features, remembered.

        With the squared loss the problem is its own model: normal equations, O(n_features³) beside the Gram matrix.
        From their solution about eight Newton steps lead to that of the squared hinge loss, to rounding.
        """
        if (loss, C) not in self._models:
            self._models[loss, C] = self._model(loss, C)
        return self._models[loss, C]

    def _model(self, loss: PairLoss, C: float) -> QuadraticModel:
        B: Matrix = np.eye(len(self.gram)) + 2.0 * C * self.gram
        rhs = 2.0 * C * self.moment
        squared = QuadraticModel(B, rhs, solve_positive_definite(B, rhs))
        if not loss.one_sided:
            return squared
        end = dense_newton(partial(self.expand, C=C, loss=loss), squared.w, 2.0 * EXACT_TOLERANCE)
        hessian = end.at.hessian
        return QuadraticModel(hessian, product(hessian, end.w) - end.at.gradient, end.w)

    def expand(self, w: Matrix, C: float, loss: PairLoss) -> DenseExpansion:
        """Return ½ ‖w‖² + (C / p) Σ ℓ at `w`; its gradient and Hessian are computed when asked for."""
        return _Expansion(self, w, C / len(self), loss)

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
        """Return the minima as `moerank.training.pairs.solve_pairs` does, from a `model` close to all individuals."""
        W: Matrix = np.empty(masks.features.shape)
        converged: Mask = np.empty(len(W), bool)
        feature_mask = masks.features & self._varies  # the weight of other features is 0 in any case
        alike = start is None and bool((feature_mask == self._varies).all())
        start_scores = self._start_scores(model) if alike else np.empty(0, np.float32)
        shift = self.shift.astype(np.float32) if self.shift.any() else np.empty(0, np.float32)
        pairs = LanePairs(len(self), np.float32, masks.own)
        for group in lane_groups(len(W), np.float32):
            words, n_kept = pairs.pack(group)
            begin = np.zeros((0, W.shape[1])) if start is None else group.fill_up(start)
            weights, finished = newton_lanes(
                self.X_lanes, self.pairs.groups, words, n_kept,
                group.fill_up(feature_mask), model.B, model.rhs, begin, start_scores, C, self.target.margin, shift,
                loss.one_sided, tolerance,
            )  # fmt: skip
            W[group.rows], converged[group.rows] = weights[: len(group)], finished[: len(group)]
        return W, converged

    def minimise_penalised(
        self, penalties: Penalties, masks: Masks, start: Matrix, max_iter: int, tol: float
    ) -> tuple[Matrix, Integers, Matrix]:
        """Minimise the objectives of `moerank.kernels.proximal` with the squared hinge loss, in groups of lanes.

        `start` (n_individuals, 2 n_features) is not negative, and 0 off the features. Returns the variables [u; v], the
        steps (n_individuals,), and the objectives (max_iter + 1, n_individuals) at the start and after each step.
        """
        variables, n_iter = np.empty_like(start), np.empty(len(start), np.int64)
        history = np.empty((max_iter + 1, len(start)))
        pairs = LanePairs(len(self), np.float64, masks.own)
        for group in lane_groups(len(start), np.float64):
            of_group = np.empty((max_iter + 1, group.n_lanes))
            result, steps = proximal_lanes(
                self.X, self.pairs.groups, *pairs.pack(group),
                group.fill_up(masks.features), penalties.similarity, group.fill_up(penalties.costs),
                group.fill_up(penalties.lambda1), group.fill_up(penalties.lambda2), group.fill_up(start),
                max_iter, tol, of_group,
            )  # fmt: skip
            variables[group.rows], n_iter[group.rows] = result[: len(group)], steps[: len(group)]
            history[:, group.rows] = of_group[:, : len(group)]
        return variables, n_iter, history

    def _start_scores(self, model: QuadraticModel) -> NDArray[np.float32]:
        """Return the scores (n_documents,) of the model's minimum with all features, as a population's pass does."""
        if model not in self._scores:
            w = np.empty(len(self._varies))
            solve(factorise(model.B, self._varies[None])[0], self._varies, model.rhs, w)
            scores = np.empty((len(self.X), _SINGLE), np.float32)
            weights = np.repeat(w.astype(np.float32)[:, None], _SINGLE, axis=1)
            project(self.X_lanes, weights, np.flatnonzero(self._varies), scores)
            self._scores[model] = scores[:, 0].copy()
        return self._scores[model]

    def _residuals(self, w: Matrix, loss: PairLoss) -> tuple[float, Matrix, NDArray[np.uint8]]:
        """Return Σ ℓ, Σ ½ ℓ′ (xᵢ − xⱼ) and the active pairs (all bits of a word set or none) at `w`."""
        weights = np.repeat(w[:, None], _DOUBLE, axis=1)
        scores = np.empty((len(self.X), _DOUBLE))
        documents = np.empty_like(scores)
        active = np.empty(len(self), np.uint8)
        slack = np.empty(_DOUBLE)
        sums = np.empty_like(weights)
        project(self.X, weights, np.arange(len(w)), scores)
        scores -= self.shift[:, None]
        every = np.full(len(self), 255, np.uint8)
        hinge_pass(self.pairs.groups, every, scores, self.target.margin, loss.one_sided, active, documents, slack)
        pull_back(self.X, documents, np.arange(len(w)), np.empty_like(weights), sums)
        total = self.target.margin * slack[0] - product(scores[:, 0], documents[:, 0])
        return float(total), sums[:, 0].copy(), active

    def _scatter(self, active: NDArray[np.uint8]) -> Matrix:
        """Return Σ (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ over the active pairs; the features are the lanes of a curvature pass."""
        n_documents, n_features = self.X.shape
        check_square(n_features)
        result = np.empty((n_features, n_features))
        columns = np.zeros((n_documents, _DOUBLE))
        documents = np.empty_like(columns)
        sums = np.empty((n_features, _DOUBLE))
        for begin in range(0, n_features, _DOUBLE):
            size = min(_DOUBLE, n_features - begin)
            columns[:, :size] = self.X[:, begin : begin + size]
            curvature_pass(self.pairs.groups, active, columns, documents)
            pull_back(self.X, documents, np.arange(n_features), np.empty_like(sums), sums)
            result[:, begin : begin + size] = sums[:, :size]
        return 0.5 * (result + result.T)


class _Expansion:
    """The objective of listed pairs at one point."""

    def __init__(self, problem: ListedPairs, w: Matrix, scale: float, loss: PairLoss) -> None:
        self._problem, self._w, self._scale = problem, w, scale
        total, self._pull, self._active = problem._residuals(w, loss)
        self.value = float(0.5 * product(w, w) + scale * total)

    @cached_property
    def gradient(self) -> Matrix:
        return self._w - 2.0 * self._scale * self._pull

    @cached_property
    def hessian(self) -> Matrix:
        return np.eye(len(self._w)) + 2.0 * self._scale * self._problem._scatter(self._active)
