"""The preference pairs that a population trains on, listed or counted, their losses, and the solvers for them.

A pair problem is ½ ‖w‖² + (C / p) Σ ℓ(dₖ) over p pairs (i, j), with the slack dₖ = tₖ − wᵀ(xᵢ − xⱼ). Compiled passes
compute the sums of a loss ℓ for many individuals at once.

Listed pairs train groups of individuals, each in a lane of a vector; counted pairs use passes over the documents. The
result of an individual does not depend on the others.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import FloatType, Integers, Mask, Matrix, Vector, Words
from moerank.checks import check_room, check_square
from moerank.data import RankingData, centre_in_queries, remembered
from moerank.data.ranking_data import PreferencePairs, n_pairs_of_documents
from moerank.kernels import newton, proximal
from moerank.kernels.algebra import factorise, plus_ridge, product, solve, square
from moerank.kernels.lanes import lanes, word_type
from moerank.kernels.pair_pass import curvature_pass, hinge_pass, pack_lanes, project, pull_back
from moerank.kernels.run_pass import CURVATURE, IDLE, RESIDUALS, centres, run_pass
from moerank.kernels.tiles import feature_lists
from moerank.training.masks import Masks, Unit, n_ones
from moerank.training.pair_moments import UNIT, PairMoments, Target, solve_positive_definite

MAX_HALVINGS, EXACT_STEPS = 29, 500

# Relative error of the objective, bounded by the Newton decrement, of a problem that is solved exactly.
EXACT_TOLERANCE = 1e-13

Element = TypeVar("Element", bound=np.generic)

# Maximum number of pairs that are listed if individuals do not choose among them.
LONGEST_LIST = 2_000_000

NO_UNIT_MASK: Mask = np.zeros((0, 0), bool)

# Relative rounding error of an objective that a pass in this precision sums up.
PASS_ROUNDING: dict[FloatType, float] = {np.float32: 1e-5, np.float64: 1e-13}


_SINGLE, _DOUBLE = lanes(np.float32), lanes(np.float64)


@dataclass(frozen=True)
class PairLoss:
    """A loss of the form ℓ(d) = d² on the pairs that are active at their slack d, and 0 on the others."""

    # Whether a pair is active only where d > 0.
    one_sided: bool

    # An individual is solved alone, exactly, if its pairs span fewer dimensions than this multiple of its features. The
    # curvature of all pairs, which preconditions a population, is then larger than that of its own pairs, and an error
    # that is measured in it too small. With the hinge only active pairs have a curvature.
    min_dimensions: int


# ℓ(d) = d², the loss of RankRLS.
SQUARED = PairLoss(one_sided=False, min_dimensions=4)
# ℓ(d) = max(0, d)², the loss of RankSVM.
SQUARED_HINGE = PairLoss(one_sided=True, min_dimensions=10)


@dataclass(frozen=True, eq=False)
class PairModel:
    """½ wᵀBw − rhsᵀw, the second-order model of a pair problem with all features around its minimum `w`.

    Shapes: B (n_features, n_features) positive definite, rhs and w (n_features,).
    """

    loss: PairLoss
    C: float
    B: Matrix
    rhs: Matrix
    w: Matrix


class Penalties(NamedTuple):
    """Penalties that `moerank.kernels.proximal` adds to the loss of each of n_individuals individuals."""

    similarity: Matrix  # (n_features, n_features), A, the same for all; empty if every λ₁ is 0
    costs: Matrix  # (n_individuals, n_features), finite where the individual uses the feature
    lambda1: Vector
    lambda2: Vector


def _fill_up(values: NDArray[Element], n_lanes: int) -> NDArray[Element]:
    """Return the values (n, …) of a group of individuals as (n_lanes, …), with zeros in the unused lanes."""
    if len(values) == n_lanes:
        return values
    return np.concatenate(
        (values, np.zeros((n_lanes - len(values), *values.shape[1:]), values.dtype))
    )


class Expanded(NamedTuple):
    """Value, gradient (n,) and positive definite (generalised) Hessian (n, n) of a function at a point."""

    value: float
    gradient: Matrix
    hessian: Matrix

    def newton_step(self) -> Matrix:
        """Return −H⁻¹g."""
        return -solve_positive_definite(self.hessian, self.gradient)


class ExpandedRidge(NamedTuple):
    """Value and gradient (n,) of ½ ‖w‖² + ½ ‖max(0, t − A w)‖² at w, and the rows of A and t whose slack is above 0."""

    value: float
    gradient: Matrix
    w: Matrix
    A: Matrix
    t: Matrix

    @classmethod
    def at(cls, w: Matrix, A: Matrix, t: Matrix) -> Self:
        """Expand the function at w."""
        slack = t - product(A, w)
        active = slack > 0.0
        A, d = A[active], slack[active]
        value = float(0.5 * (product(w, w) + product(d, d)))
        return cls(value, w - product(A.T, d), w, A, t[active])

    def newton_step(self) -> Matrix:
        """Return −H⁻¹g, from as many equations as there are rows or columns, whichever are fewer."""
        return ridge_regression(self.A, self.t) - self.w


AtPoint = TypeVar("AtPoint", Expanded, ExpandedRidge)


def ridge_regression(A: Matrix, t: Matrix) -> Matrix:
    """Return w (n,) that minimises ‖w‖² + ‖t − A w‖², for A (m, n), from min(m, n) equations.

    >>> ridge_regression(np.array([[1.0, 0.0]]), np.array([2.0])).round(12).tolist()
    [1.0, 0.0]
    """
    if 0 < len(A) < A.shape[1]:
        return product(A.T, solve_positive_definite(plus_ridge(square(A), 1.0), t))
    return solve_positive_definite(plus_ridge(square(A.T), 1.0), product(A.T, t))


def dense_newton(
    expand: Callable[[Matrix], AtPoint], start: Matrix, tolerance: float
) -> tuple[Matrix, AtPoint]:
    """Minimise a smooth convex function by Newton steps, each halved until the function falls.

    `expand` returns the function at a point (n,). Return the last point and the function there. It ends when the
    squared Newton decrement gᵀH⁻¹g, twice the decrease that the quadratic model predicts, is at most the share
    `tolerance` of the value, which is positive; when no step lowers the value; or after 500 steps. O(n³) per step.

    >>> def expand(w):  # eʷ + e⁻ʷ
    ...     return Expanded(2.0 * np.cosh(w[0]), 2.0 * np.sinh(w), np.diag(2.0 * np.cosh(w)))
    >>> dense_newton(expand, np.array([3.0]), tolerance=1e-12)[0].round(6).tolist()
    [0.0]
    """
    w, expansion = start, expand(start)
    for _ in range(EXACT_STEPS):
        step = expansion.newton_step()
        if -product(expansion.gradient, step) <= tolerance * expansion.value:
            break
        for n_halvings in range(MAX_HALVINGS + 1):
            point = w + 0.5**n_halvings * step
            candidate = expand(point)
            if candidate.value < expansion.value:
                break
        else:
            break
        w, expansion = point, candidate
    return w, expansion


class ListedPairs:
    """The preference pairs `keep` (n_pairs,) of a data set, by default all, and their documents."""

    def __init__(self, data: RankingData, keep: Mask | None = None, target: Target = UNIT) -> None:
        self.data, self.target, self.has_all_pairs = data, target, keep is None
        pairs = data.pairs if keep is None else data.pairs.subset(keep)
        rows, ends = np.unique(np.concatenate([pairs.winner, pairs.worse]), return_inverse=True)
        winner, worse = np.split(ends.astype(np.int32), [len(pairs.winner)])
        self.pairs = PreferencePairs(
            np.repeat(winner, np.diff(pairs.first)), worse, pairs.first, winner
        )
        # Only differences within a query matter, so centring per query changes the rounding only.
        self.X = np.ascontiguousarray(centre_in_queries(data.X, data.offsets)[rows])
        self.X_lanes = self.X.astype(np.float32)  # in the precision of the passes of a population
        self._varies: Mask = np.any(self.X, axis=0)  # features that are not constant in every query
        self._models: dict[tuple[PairLoss, float], PairModel] = {}
        self.shift: Matrix = target.per_label * data.y[rows]

    @classmethod
    def of(cls, data: RankingData, keep: Mask | None = None, target: Target = UNIT) -> Self:
        """Return the pairs of a subset, remembered with the data."""
        subset = None if keep is None else np.packbits(keep).tobytes()
        return data.remember(("listed pairs", target, subset), lambda: cls(data, keep, target))

    def __len__(self) -> int:
        return len(self.pairs)

    @cached_property
    def gram(self) -> Matrix:
        """Mean of (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ over the pairs, shape (n_features, n_features)."""
        return self._scatter(np.full(len(self), 255, np.uint8)) / len(self)

    @cached_property
    def moment(self) -> Matrix:
        """Mean of tₖ (xᵢ − xⱼ) over the pairs, shape (n_features,)."""
        return self.residuals(np.zeros(self.X.shape[1]), SQUARED)[1] / len(self)

    def model(self, loss: PairLoss, C: float) -> PairModel:
        """Return the model of the objective at its minimum with all features, remembered.

        With the squared loss the problem is its own model: normal equations, O(n_features³) besides the Gram
        matrix. From their solution, about eight Newton steps lead to the solution for the squared hinge loss, exact to
        rounding.
        """
        if (loss, C) not in self._models:
            B, rhs = np.eye(len(self.gram)) + 2.0 * C * self.gram, 2.0 * C * self.moment
            w = solve_positive_definite(B, rhs)
            if loss.one_sided:
                w, expansion = dense_newton(
                    lambda w: self.expand(w, C, loss), w, 2.0 * EXACT_TOLERANCE
                )
                B, rhs = expansion.hessian, product(expansion.hessian, w) - expansion.gradient
            self._models[loss, C] = PairModel(loss, C, B, rhs, w)
        return self._models[loss, C]

    def expand(self, w: Matrix, C: float, loss: PairLoss) -> Expanded:
        """Return ½ ‖w‖² + (C / p) Σ ℓ at `w`, with its gradient and its Hessian."""
        scale = C / len(self)
        total, pull, active = self.residuals(w, loss)
        hessian = np.eye(len(w)) + 2.0 * scale * self._scatter(active)
        return Expanded(float(0.5 * product(w, w) + scale * total), w - 2.0 * scale * pull, hessian)

    def solve_population(
        self, model: PairModel, masks: Masks, *, tolerance: float, start: Matrix | None = None
    ) -> tuple[Matrix, Mask]:
        """Return the minima as `solve_pairs` does, from a `model` close to all individuals."""
        W: Matrix = np.empty(masks.features.shape)
        converged: Mask = np.empty(len(W), bool)
        feature_mask = masks.features & self._varies  # the weight of other features is always 0
        shift = self.shift.astype(np.float32) if self.shift.any() else np.empty(0, np.float32)
        for rows, words, counts in self._groups(masks, np.float32):
            origin = np.zeros((0, W.shape[1])) if start is None else _fill_up(start[rows], _SINGLE)
            state = newton.begin_newton(np.zeros((_SINGLE, W.shape[1])))
            lane_mask = _fill_up(feature_mask[rows], _SINGLE)
            newton.newton_lanes(
                tuple(state), self.X_lanes, self.pairs.groups, words, counts, lane_mask,
                model.B, model.rhs, origin, model.C,
                self.target.margin, shift, model.loss.one_sided, tolerance,
            )  # fmt: skip
            n = len(W[rows])
            W[rows], converged[rows] = state.W[:n], state.n_steps[:n] <= newton.MAX_STEPS
        return W, converged

    def n_spanned(self, masks: Masks) -> Matrix | Integers:
        """Return bounds on the dimensions that the pairs of individuals span, infinite if all have the same pairs."""
        if masks.unit_rows is None:
            return np.full(len(masks.features), np.inf)
        return n_ones(masks.unit_rows)

    def solve_alone(self, loss: PairLoss, C: float, masks: Masks, i: int) -> tuple[Matrix, bool]:
        """Return the weights of one individual on its features, exact to rounding, and True for converged."""
        better, worse = self.pairs.better, self.pairs.worse
        if masks.unit_rows is not None:
            kept_pairs = np.unpackbits(masks.unit_rows[i], count=len(self)).astype(bool)
            better, worse = better[kept_pairs], worse[kept_pairs]
        X, root = self.X[:, masks.features[i]], np.sqrt(2.0 * C / len(better))
        check_room(
            f"a table of {len(better):,} pairs × {X.shape[1]:,} features",
            8 * len(better) * X.shape[1],
        )
        A = root * (X[better] - X[worse])
        t = root * (self.target.margin + self.shift[better] - self.shift[worse])
        w = ridge_regression(A, t)
        if loss.one_sided:
            w, _ = dense_newton(lambda w: ExpandedRidge.at(w, A, t), w, 2.0 * EXACT_TOLERANCE)
        return w, True

    def minimise_penalised(
        self, penalties: Penalties, masks: Masks, start: Matrix, max_iter: int, tol: float
    ) -> tuple[Matrix, Integers, Matrix]:
        """Minimise the objectives of `moerank.kernels.proximal` with the squared hinge loss, in groups of lanes.

        `start` (n_individuals, 2 n_features) is not negative, and 0 off the features. Return the variables [u; v], the
        steps (n_individuals,), and the objectives (max_iter + 1, n_individuals) at the start and after each step.
        """
        variables, n_iter = np.empty_like(start), np.empty(len(start), np.int64)
        history = np.empty((max_iter + 1, len(start)))
        similarity = np.ascontiguousarray(penalties.similarity.T)
        for rows, words, counts in self._groups(masks, np.float64):
            group_history = np.empty((max_iter + 1, _DOUBLE))
            costs, lambda1, lambda2, group_start = (
                _fill_up(values[rows], _DOUBLE)
                for values in (penalties.costs, penalties.lambda1, penalties.lambda2, start)
            )
            features = _fill_up(masks.features[rows], _DOUBLE)
            terms = proximal.Terms(
                features, 1.0 / np.maximum(1, counts), similarity, costs, lambda1, lambda2
            )
            state = proximal.begin(terms, group_start)
            state.task[counts == 0] = IDLE
            proximal.proximal_lanes(
                self.X,
                self.pairs.groups,
                words,
                tuple(terms),
                tuple(state),
                max_iter,
                tol,
                group_history,
            )
            n = len(start[rows])
            variables[rows] = state.w[:n]
            n_iter[rows] = state.n_iter[:n]
            history[:, rows] = group_history[:, :n]
        return variables, n_iter, history

    def _groups(
        self, masks: Masks, precision: FloatType
    ) -> Iterator[tuple[slice, Words, Integers]]:
        """Yield groups of individuals, one word per pair, bit l for lane l, and the number of pairs of each lane.

        A lane without an individual has no pair and is idle. The words are valid until the next group.
        """
        n_lanes = lanes(precision)
        words = np.full(-(-len(self) // 8) * 8, 2**n_lanes - 1, word_type(n_lanes))
        for begin in range(0, len(masks.features), n_lanes):
            rows = slice(begin, begin + n_lanes)
            counts = np.where(np.arange(n_lanes) < len(masks.features) - begin, len(self), 0)
            if masks.unit_rows is not None:
                packed = _fill_up(masks.unit_rows[rows], n_lanes)
                counts = n_ones(packed)
                pack_lanes(packed, words)
            yield rows, words[: len(self)], counts

    def residuals(self, w: Matrix, loss: PairLoss) -> tuple[float, Matrix, NDArray[np.uint8]]:
        """Return Σ ℓ, Σ ½ ℓ′ (xᵢ − xⱼ) and the active pairs (all bits of a word set or none) at `w`."""
        weights = np.repeat(w[:, None], _DOUBLE, axis=1)
        scores = np.empty((len(self.X), _DOUBLE))
        documents = np.empty_like(scores)
        active = np.empty(len(self), np.uint8)
        slack = np.empty(_DOUBLE)
        sums = np.empty_like(weights)
        project(self.X, weights, np.arange(len(w)), scores)
        scores -= self.shift[:, None]
        all_pairs = np.full(len(self), 255, np.uint8)
        hinge_pass(
            self.pairs.groups,
            all_pairs,
            scores,
            self.target.margin,
            loss.one_sided,
            active,
            documents,
            slack,
        )
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


class CountedPairs:
    """All preference pairs of a data set; individuals may choose the pairs among some documents or queries.

    Features of any precision are neither copied nor converted: memory holds a block of them, and their means in each
    query. A pass takes O(k · n_documents) for an individual with k features, and O(Σ_q n_q²) at worst for the
    pairs of queries with n_q documents.
    """

    has_all_pairs = True

    def __init__(self, data: RankingData, target: Target = UNIT) -> None:
        self.data, self.target = data, target
        self._minima: dict[tuple[PairLoss, float], list[Matrix]] = {}
        self._models: dict[tuple[PairLoss, float], PairModel] = {}

    @classmethod
    @remembered
    def of(cls, data: RankingData, target: Target = UNIT) -> Self:
        """Return the pairs of a data set, remembered with it."""
        return cls(data, target)

    def minima(self, loss: PairLoss, Cs: Sequence[float]) -> tuple[Matrix, Mask]:
        """Return the minima (n_Cs, n_features) for each C on all features, and whether each was reached; remembered.

        Newton steps begin at the solutions for the squared loss.
        """
        if new := [C for C in dict.fromkeys(Cs) if (loss, C) not in self._minima]:
            moments = PairMoments.of(self.data)
            masks = Masks(np.ones((len(new), self.data.n_features), bool))
            factors, W = np.empty((len(new), *moments.gram.shape)), np.empty(masks.features.shape)
            for C, factor, w in zip(new, factors, W, strict=True):
                system = np.eye(len(w)) + 2.0 * C * moments.gram
                factor[:] = factorise(system, masks.features[:1])[0]
                solve(factor, masks.features[0], 2.0 * C * self.target.moment(moments), w)
            scale = np.array(new, float) / self.data.n_pairs
            reached = self._newton(loss, np.float64, masks, factors, W, scale, EXACT_TOLERANCE)
            for C, *minimum in zip(new, W, reached, strict=True):
                self._minima[loss, C] = minimum
        W, reached = map(np.array, zip(*(self._minima[loss, C] for C in Cs), strict=True))
        return W, reached

    def model(self, loss: PairLoss, C: float) -> PairModel:
        """Return the model of the objective at its minimum for all features; remembered.

        It takes a product with the second derivative for each feature. Single precision is enough, because similar
        problems only start from the model and are preconditioned with it.
        """
        if (loss, C) not in self._models:
            w = self.minima(loss, [C])[0][0]
            n_features = len(w)
            masks = Masks(np.ones((n_features, n_features), bool))
            tasks, directions = np.full(n_features, CURVATURE), np.eye(n_features)
            W = np.tile(w, (n_features, 1))
            products, _ = self.sums(loss, np.float32, tasks, masks, W, directions)
            tasks, masks = np.array([RESIDUALS]), masks.of_rows(slice(1))
            pulled, _ = self.sums(loss, np.float64, tasks, masks, W[:1], directions[:1])
            scale = 2.0 * C / self.data.n_pairs
            B = np.eye(n_features) + scale * 0.5 * (products + products.T)
            rhs = product(B, w) - (w - scale * pulled[0])
            self._models[loss, C] = PairModel(loss, C, B, rhs, w)
        return self._models[loss, C]

    def solve_population(
        self, model: PairModel, masks: Masks, *, tolerance: float, start: Matrix | None = None
    ) -> tuple[Matrix, Mask]:
        """Return the minima as `solve_pairs` does, from the `model` of all pairs."""
        features = masks.features
        check_square(*features.shape[::-1])
        factors = factorise(model.B, features)
        W = np.where(features, 0.0 if start is None else start, 0.0)
        if start is None:
            for factor, mask, w in zip(factors, features, W, strict=True):
                solve(factor, mask, model.rhs, w)
        scale = model.C / self.counts(masks)
        return W, self._newton(model.loss, np.float32, masks, factors, W, scale, tolerance)

    def n_spanned(self, masks: Masks) -> Matrix:
        """Return bounds on the dimensions that the pairs of individuals span, infinite if all have all pairs.

        The differences of n documents of a query span n − 1 dimensions.
        """
        if not masks.choose_units:
            return np.full(len(masks.features), np.inf)
        if (documents := masks.of_unit("document")) is not None:
            n_kept = np.add.reduceat(documents, self.data.offsets[:-1], axis=1, dtype=np.int64)
        else:
            n_kept = masks.of_unit("query") * np.diff(self.data.offsets)
        return np.minimum(self.counts(masks), np.maximum(n_kept - 1, 0).sum(axis=1))

    def solve_alone(self, loss: PairLoss, C: float, masks: Masks, i: int) -> tuple[Matrix, bool]:
        """Return the weights of one individual with its own documents or queries, and whether it is at its minimum."""
        mask: Any = masks.shared if masks.unit_rows is None else masks.unit_rows[i]
        if masks.unit == "query":
            mask = np.repeat(mask, np.diff(self.data.offsets))
        subset = self.data.with_rows(np.flatnonzero(mask))
        if subset.n_pairs < loss.min_dimensions * subset.n_features:
            pairs = ListedPairs(subset, target=self.target)
            return pairs.solve_alone(loss, C, Masks(masks.features), i)
        counted = CountedPairs(subset.with_features(masks.features[i]), self.target)
        W, reached = counted.minima(loss, [C])
        return W[0], bool(reached[0])

    def counts(self, masks: Masks) -> Matrix:
        """Return the number of pairs of each individual, shape (n_individuals,); a ValueError if a row has none."""
        counts = np.array([self.data.n_pairs])
        if (documents := masks.of_unit("document")) is not None:
            counts = n_pairs_of_documents(self.data, documents)
        elif (queries := masks.of_unit("query")) is not None:
            counts = queries @ self.data.label_runs.n_pairs_of
        if not counts.all():
            raise ValueError(
                f"row {int(np.argmin(counts))} of the mask keeps no preference pair to train on"
            )
        return np.broadcast_to(counts, len(masks.features)).astype(float)

    def _newton(
        self,
        loss: PairLoss,
        precision: FloatType,
        masks: Masks,
        factors: Matrix,
        W: Matrix,
        scale: Matrix,
        tol: float,
    ) -> Mask:
        """Bring W to the minima in place, each within a relative error `tol`, and return whether it was reached."""
        max_steps = EXACT_STEPS if precision is np.float64 else newton.MAX_STEPS
        state = newton.begin_newton(W)
        while (is_active := state.task != IDLE).any():
            sums = self.sums(loss, precision, state.task, masks, W, state.direction)
            newton.advance_newton(
                state, is_active, *sums, masks.features, factors, scale, loss.one_sided, True, tol,
                PASS_ROUNDING[precision], max_steps,
            )  # fmt: skip
        return state.n_steps <= max_steps

    def minimise_penalised(
        self, penalties: Penalties, masks: Masks, start: Matrix, max_iter: int, tol: float
    ) -> tuple[Matrix, Integers, Matrix]:
        """Minimise as `ListedPairs.minimise_penalised` does, by a pass for each sum of FSMRank's Algorithm 1.

        A step takes a pass for the gradient, and one for each trial of the line search. A finished individual takes
        none, and no individual depends on the others.
        """
        n = len(masks.features)
        similarity, costs, *lambdas = (np.ascontiguousarray(array) for array in penalties)
        terms = proximal.Terms(
            masks.features,
            1.0 / self.counts(masks),
            np.ascontiguousarray(similarity.T),
            costs,
            *lambdas,
        )
        state = proximal.begin(terms, start)
        history = np.zeros((max_iter + 1, n))
        while (is_active := state.task != IDLE).any():
            is_trial = (state.task == proximal.VALUE)[:, None]
            u, v = np.hsplit(np.where(is_trial, state.trial, state.z), 2)
            features = np.where(is_trial, u != v, masks.features & is_active[:, None])
            pass_masks = replace(masks, features=features)
            W, task = u - v, np.where(is_active, RESIDUALS, IDLE)
            V = np.zeros_like(W)
            sums, slack = self.sums(SQUARED_HINGE, np.float64, task, pass_masks, W, V)
            squares = slack - (W * sums).sum(axis=1)
            proximal.advance(state, is_active, terms, sums, squares, max_iter, tol)
            history[state.n_iter, np.arange(n)] = state.objective
        return state.w, state.n_iter, history

    def sums(
        self,
        loss: PairLoss,
        precision: FloatType,
        task: Integers,
        masks: Masks,
        W: Matrix,
        V: Matrix,
    ) -> tuple[Matrix, Matrix]:
        """Return the sums of vectors (shape of W) and of slacks (n_individuals,) of a pass at W with the directions V.

        They are those of `moerank.kernels.run_pass`, for the tasks of the individuals.
        """
        data, features = self.data, masks.features
        runs = data.label_runs
        means = data.remember("centres", lambda: centres(data.columns, data.offsets))
        order = np.flatnonzero(runs.n_pairs_of), runs.query_begin, runs.begin, runs.row
        width = lanes(precision)
        prefix = np.array([2**lane - 1 for lane in range(width)], word_type(width))
        pulled, slack = np.zeros(np.count_nonzero(features)), np.zeros(len(features))
        shift = np.empty(0)
        if self.target.per_label:
            shift = np.asarray(self.target.per_label * data.y, float)
        if len(order[0]):
            columns = data.columns.reshape(-1).view(np.uint8)
            w, v = W[features].astype(precision), V[features].astype(precision)
            unit_masks = _unit_mask(masks, "document"), _unit_mask(masks, "query")
            run_pass(
                columns, data.columns.dtype == np.float32, means, data.offsets, order,
                feature_lists(features), w, v, task, unit_masks,
                self.target.margin, shift, loss.one_sided, prefix, pulled, slack,
            )  # fmt: skip
        sums = np.zeros(W.shape)
        sums[features] = pulled
        return sums, slack


def _unit_mask(masks: Masks, unit: Unit) -> Mask:
    """Return the mask of these units for a pass, without rows if it chooses none."""
    mask = masks.of_unit(unit)
    return NO_UNIT_MASK if mask is None else mask


Pairs: TypeAlias = ListedPairs | CountedPairs


def pairs_for(
    train: RankingData, masks: Masks, target: Target = UNIT, longest_list: int = LONGEST_LIST
) -> Pairs:
    """Return the pairs of a data set that individuals share, or from which they choose.

    They are listed if individuals choose single pairs, or if there are at most `longest_list`, and counted otherwise.
    """
    if masks.unit == "pair" and (masks.choose_units or train.n_pairs <= longest_list):
        return ListedPairs.of(train, masks.shared, target)
    return CountedPairs.of(train, target)


def solve_pairs(
    loss: PairLoss,
    pairs: Pairs,
    masks: Masks,
    C: float,
    *,
    tolerance: float,
    start: Matrix | None = None,
) -> tuple[Matrix, Mask]:
    """Minimise ½ ‖w‖² + (C / p) Σ ℓ for the features and pairs of each individual; return weights and convergence.

    Shapes (n_individuals, n_features) and (n_individuals,). `tolerance` bounds the relative error of each objective.
    Every individual begins at the minimum of a quadratic model for all features and the pairs that all share, unless
    `start` is given. The squared loss is its own model; the model of the hinge is found by counting, except for listed
    subsets. Individuals with few pairs of their own are solved alone, exact to rounding; see `PairLoss`.
    """
    features = masks.features
    n_dimensions = np.minimum(features.sum(axis=1), pairs.data.n_documents - pairs.data.n_queries)
    alone = pairs.n_spanned(masks) < loss.min_dimensions * n_dimensions
    W, reached = np.zeros(features.shape), np.ones(len(features), bool)
    for i in np.flatnonzero(alone).tolist():
        W[i, features[i]], reached[i] = pairs.solve_alone(loss, C, masks, i)
    if not alone.all():
        counted = loss.one_sided and pairs.has_all_pairs
        model = (CountedPairs.of(pairs.data, pairs.target) if counted else pairs).model(loss, C)
        rows = ~alone if alone.any() else slice(None)  # which copies nothing
        start = None if start is None else start[rows]
        W[rows], reached[rows] = pairs.solve_population(
            model, masks.of_rows(rows), tolerance=tolerance, start=start
        )
    return W, reached
