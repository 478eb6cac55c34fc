"""The optimisation problem behind the pairwise linear rankers: some preference pairs, ready to be solved.

RankSVM and RankRLS minimise ½ ‖w‖² + (C / p) Σ ℓ(tₖ − wᵀ(xᵢ − xⱼ)) over p pairs, with ℓ(d) = max(0, d)² and ℓ(d) = d².
`PairProblem` holds the pairs of one subset and solves that problem with all features exactly, by dense Newton steps;
what it finds is the quadratic model from which populations of neighbouring problems are solved.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from moerank.data import PreferencePairs, RankingData, centre_in_queries
from moerank.kernels.cholesky import factorise, solve
from moerank.kernels.lanes import lanes
from moerank.kernels.newton import newton_lanes
from moerank.kernels.pair_pass import curvature_pass, hinge_pass, pack_lanes, project, pull_back

__all__ = ["PairProblem", "QuadraticModel"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

GROUP = lanes(np.float32)
_DOUBLE = lanes(np.float64)


@dataclass(frozen=True, eq=False)
class QuadraticModel:
    """½ wᵀBw − rhsᵀw, a pair problem's second-order model around its solution `w`.

    Shapes: B (n_features, n_features) positive definite, rhs and w (n_features,).
    """

    B: Matrix
    rhs: Matrix
    w: Matrix


class PairProblem:
    """The preference pairs of a subset and the documents they join.

    Parameters
    ----------
    data : RankingData
    keep : ndarray of bool, shape (n_pairs,), optional
        The pairs of the subset; None means all.
    target : {"unit", "difference"}, default "unit"
        The margin tₖ of a pair: 1, or the difference of its labels.
    """

    def __init__(self, data: RankingData, keep: Mask | None = None, target: str = "unit") -> None:
        pairs = data.pairs if keep is None else data.pairs.subset(keep)
        rows, ends = np.unique(np.concatenate([pairs.winner, pairs.worse]), return_inverse=True)
        winner, worse = np.split(ends.astype(np.int32), [len(pairs.winner)])
        self.pairs = PreferencePairs(np.repeat(winner, np.diff(pairs.first)), worse, pairs.first.copy(), winner)
        # Only differences inside a query matter, so centring per query changes nothing but the rounding.
        self.X = np.ascontiguousarray(centre_in_queries(data.X, data.offsets)[rows])
        self._models: dict[tuple[float, bool], QuadraticModel] = {}
        self._scores: dict[QuadraticModel, NDArray[np.float32]] = {}
        self.margin = 1.0 if target == "unit" else 0.0
        self.shift: Matrix = np.zeros(len(rows)) if target == "unit" else data.y[rows].astype(float)

    @classmethod
    def of(cls, data: RankingData, keep: Mask | None = None, target: str = "unit") -> PairProblem:
        """Return the problem of a subset, remembered with the data."""
        digest = None if keep is None else hashlib.blake2b(np.packbits(keep).tobytes(), digest_size=16).digest()
        return data.remember(("pair problem", target, digest), lambda: cls(data, keep, target))

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
        return self._residuals(np.zeros(self.X.shape[1]), hinge=False)[1] / len(self)

    def model(self, C: float, *, hinge: bool) -> QuadraticModel:
        """Return the solved model of this problem for one C, remembered."""
        key = (C, hinge)
        if key not in self._models:
            self._models[key] = self.hinge_model(C) if hinge else self.squared_model(C)
        return self._models[key]

    def squared_model(self, C: float) -> QuadraticModel:
        """Return the squared-loss problem itself: it is quadratic. O(n_pairs · n_features + n_features³) once."""
        B: Matrix = np.eye(len(self.gram)) + 2.0 * C * self.gram
        rhs = 2.0 * C * self.moment
        w: Matrix = np.asarray(np.linalg.solve(B, rhs), np.float64)
        return QuadraticModel(B, rhs, w)

    def hinge_model(self, C: float, tolerance: float = 1e-13) -> QuadraticModel:
        """Solve the squared-hinge problem with all features and return the model at its solution.

        Dense Newton steps with step halving; ends when the Newton decrement promises a relative error of the
        objective below `tolerance`, or when rounding allows no further decrease.
        Complexity: O(n_pairs · n_features + n_documents · n_features²) a step, about eight steps.
        """
        scale = C / len(self)
        w = self.squared_model(C).w
        f, pull, active = self._residuals(w, hinge=True, scale=scale)
        while True:
            gradient = w - 2.0 * scale * pull
            B = np.eye(len(w)) + 2.0 * scale * self._scatter(active)
            model = QuadraticModel(B, B @ w - gradient, w)
            step = -np.linalg.solve(B, gradient)
            if -gradient @ step <= 2.0 * tolerance * f:
                return model
            for length in 0.5 ** np.arange(30):
                candidate = self._residuals(w + length * step, hinge=True, scale=scale)
                if candidate[0] < f:
                    break
            else:
                return model
            w, (f, pull, active) = w + length * step, candidate

    def objective(self, w: Matrix, C: float, *, hinge: bool) -> tuple[float, Matrix]:
        """Return ½ ‖w‖² + (C / p) Σ ℓ and its gradient at `w`, in double precision."""
        w = np.asarray(w, dtype=float)
        f, pull, _ = self._residuals(w, hinge=hinge, scale=C / len(self))
        return f, w - 2.0 * C / len(self) * pull

    def solve_population(
        self,
        C: float,
        model: QuadraticModel,
        pair_mask: Mask | None,
        feature_mask: Mask,
        *,
        hinge: bool,
        tolerance: float,
        start: Matrix | None = None,
    ) -> Matrix:
        """Return W (n_individuals, n_features), each row the minimum for its pairs and its features.

        Parameters
        ----------
        model : the solved model of a problem that all individuals are close to, at the same C
        pair_mask : (n_individuals, n_pairs), or None for all pairs of this problem
        feature_mask : (n_individuals, n_features)
        start : (n_individuals, n_features), optional
        """
        W: Matrix = np.empty(feature_mask.shape)
        feature_mask = feature_mask & self._varies  # the others get weight 0 in any case
        alike = start is None and bool((feature_mask == self._varies).all())
        start_scores = self._start_scores(model) if alike else np.empty(0, np.float32)
        words = np.full(len(self), 2**GROUP - 1, np.uint16)
        shift = self.shift.astype(np.float32) if self.shift.any() else np.empty(0, np.float32)
        for begin in range(0, len(W), GROUP):
            rows = slice(begin, min(begin + GROUP, len(W)))
            size = rows.stop - begin
            features = np.zeros((GROUP, W.shape[1]), np.bool_)
            features[:size] = feature_mask[rows]
            n_kept = np.zeros(GROUP, np.int64)  # a lane without pairs stands idle
            if pair_mask is None:
                n_kept[:size] = len(self)
            else:
                n_kept[:size] = [np.count_nonzero(row) for row in pair_mask[rows]]
                pack_lanes(pair_mask[rows], words)
            lane_start = np.zeros((0 if start is None else GROUP, W.shape[1]))
            if start is not None:
                lane_start[:size] = start[rows]
            W[rows] = newton_lanes(
                self.X_lanes,
                self.pairs.first,
                self.pairs.winner,
                self.pairs.worse,
                words,
                n_kept,
                features,
                model.B,
                model.rhs,
                lane_start,
                start_scores,
                C,
                self.margin,
                shift,
                hinge,
                tolerance,
            )[:size]
        return W

    def _start_scores(self, model: QuadraticModel) -> NDArray[np.float32]:
        """Scores (n_documents,) of the model's minimum with all features, the bits that a population's pass gives."""
        if model not in self._scores:
            w = np.empty(len(self._varies))
            solve(factorise(model.B, self._varies[None])[0], self._varies, model.rhs, w)
            scores = np.empty((len(self.X), GROUP), np.float32)
            weights = np.repeat(w.astype(np.float32)[:, None], GROUP, axis=1)
            project(self.X_lanes, weights, np.flatnonzero(self._varies), scores)
            self._scores[model] = scores[:, 0].copy()
        return self._scores[model]

    def _residuals(self, w: Matrix, *, hinge: bool, scale: float = 0.0) -> tuple[float, Matrix, NDArray[np.uint8]]:
        """Objective, Σ d (xᵢ − xⱼ) and the active pairs (all bits of a word set or none) at `w`."""
        weights = np.repeat(w[:, None], _DOUBLE, axis=1)
        scores = np.empty((len(self.X), _DOUBLE))
        documents = np.empty_like(scores)
        active = np.empty(len(self), np.uint8)
        slack = np.empty(_DOUBLE)
        sums = np.empty_like(weights)
        project(self.X, weights, np.arange(len(w)), scores)
        scores -= self.shift[:, None]
        kept = np.full(len(self), 255, np.uint8)
        pairs = self.pairs
        hinge_pass(pairs.first, pairs.winner, pairs.worse, kept, scores, self.margin, hinge, active, documents, slack)
        pull_back(self.X, documents, np.arange(len(w)), np.empty_like(weights), sums)
        loss = self.margin * slack[0] - scores[:, 0] @ documents[:, 0]
        return float(0.5 * w @ w + scale * loss), sums[:, 0].copy(), active

    def _scatter(self, active: NDArray[np.uint8]) -> Matrix:
        """Σ (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ over the active pairs: the features are the lanes of a curvature pass."""
        n_documents, n_features = self.X.shape
        result = np.empty((n_features, n_features))
        columns = np.zeros((n_documents, _DOUBLE))
        documents = np.empty_like(columns)
        sums = np.empty((n_features, _DOUBLE))
        for begin in range(0, n_features, _DOUBLE):
            size = min(_DOUBLE, n_features - begin)
            columns[:, :size] = self.X[:, begin : begin + size]
            curvature_pass(self.pairs.first, self.pairs.winner, self.pairs.worse, active, columns, documents)
            pull_back(self.X, documents, np.arange(n_features), np.empty_like(sums), sums)
            result[:, begin : begin + size] = sums[:, :size]
        return 0.5 * (result + result.T)
