"""Newton's method for a vector of linear pair rankers at once, without ever forming a Hessian.

Each lane minimises its own objective

    f(w) = ½ ‖w‖² + (C / p) Σ ℓ(margin − wᵀ(xᵢ − xⱼ) + shiftᵢ − shiftⱼ)

over its own p pairs and its own features, with ℓ(d) = max(0, d)² (RankSVM) or d² (RankRLS). Lanes are close to one
problem that was solved before (all pairs, or all features), so one dense quadratic model of that problem,
½ wᵀBw − rhsᵀw, gives every lane its start and the preconditioner of its conjugate gradients: two Newton steps with
one product each are then enough as a rule. Lanes never influence each other: one that is finished stands still
while the others go on, so an individual's weights do not depend on its company.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.cholesky import factorise, solve
from moerank.kernels.compiled import kernel
from moerank.kernels.pair_pass import curvature_pass, hinge_pass, project, pull_back, used_features
from moerank.kernels.run_pass import CURVATURE, IDLE, RESIDUALS

__all__ = ["MAX_STEPS", "newton_lanes", "advance"]

Floats = NDArray[np.floating[Any]]
Words = NDArray[np.unsignedinteger[Any]]

MAX_STEPS = 60
"""Newton steps after which a lane stands where it is; a few are usual."""

# An inexact Newton step ends its conjugate gradients when the residual, in the preconditioner's norm, fell tenfold …
FORCING = 0.1
# … but once the Newton decrement is within this factor of the tolerance, the step is the last: what the change of
# the active pairs can spoil is then of second order in the decrement, and no further pass checks it.
LAST_STEP = 100.0
# Rounding of a single-precision objective; a larger increase is taken for an overlong step, which is halved.
NOISE = 1e-5


@kernel
def newton_lanes(
    X: Floats,
    first: NDArray[np.int64],
    winner: NDArray[np.int32],
    worse: NDArray[np.int32],
    kept: Words,
    n_kept: NDArray[np.int64],
    feature_mask: NDArray[np.bool_],
    B: NDArray[np.float64],
    rhs: NDArray[np.float64],
    start: NDArray[np.float64],
    start_scores: Floats,
    C: float,
    margin: float,
    shift: Floats,
    hinge: bool,
    tolerance: float,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the weights (lanes, n_features) that minimise each lane's objective, and whether each (lanes,) got there.

    A lane that did not stopped at `MAX_STEPS`.

    Parameters
    ----------
    X : (n_documents, n_features), the precision of the passes
    kept : (n_pairs,) words; bit l keeps the pair for lane l. ``n_kept`` (lanes,) counts them.
    feature_mask : (lanes, n_features); at least one feature per lane
    B, rhs : (n_features, n_features) and (n_features,), the quadratic model
    start : (lanes, n_features) to start from, or with no rows to start from the model's minimum
    start_scores : (n_documents,), the scores before the shift that all lanes start with, or empty to compute them
    shift : (n_documents,), or empty for 0
    tolerance : bound on the relative error of each objective, as far as the model's curvature can tell
    """
    lanes, n_features = feature_mask.shape
    dtype = X.dtype
    scores = np.empty((len(X), lanes), dtype)
    documents = np.empty((len(X), lanes), dtype)
    active = np.empty_like(kept)
    lane_weights = np.zeros((n_features, lanes), dtype)
    partial = np.empty((n_features, lanes), dtype)
    sums = np.empty((n_features, lanes), np.float64)
    slack_sum = np.empty(lanes, np.float64)

    used = used_features(feature_mask.T)
    factors = factorise(B, feature_mask)
    W = np.zeros((lanes, n_features))
    for lane in range(lanes):
        if len(start):
            for f in range(n_features):
                W[lane, f] = start[lane, f] if feature_mask[lane, f] else 0.0
        else:
            solve(factors[lane], feature_mask[lane], rhs, W[lane])
    previous = np.zeros((lanes, n_features))
    best = np.empty(lanes)
    best[:] = np.inf
    scale = C / n_kept
    finished = n_kept == 0

    gradient = np.zeros((lanes, n_features))
    direction = np.zeros((lanes, n_features))
    residual = np.zeros((lanes, n_features))
    z = np.zeros(n_features)
    idle = np.zeros(n_features)
    rho = np.ones(lanes)
    target = np.zeros(lanes)  # of rᵀB⁻¹r, where the lane's conjugate gradients may end
    moving = np.zeros(lanes, np.bool_)
    last_step = np.zeros(lanes, np.bool_)

    for newton_step in range(MAX_STEPS):
        if newton_step == 0 and len(start_scores):
            for i in range(len(X)):
                for lane in range(lanes):
                    scores[i, lane] = start_scores[i]
        else:
            _spread_weights(W, lane_weights)
            project(X, lane_weights, used, scores)
        if len(shift):
            _subtract(scores, shift)
        hinge_pass(first, winner, worse, kept, scores, margin, hinge, active, documents, slack_sum)
        pull_back(X, documents, used, partial, sums)
        objective = _objective(W, sums, documents, slack_sum, margin, shift, scale)

        for lane in range(lanes):
            moving[lane] = False
            if finished[lane]:
                continue
            if objective[lane] > best[lane] + NOISE * abs(best[lane]):
                for f in range(n_features):
                    W[lane, f] = 0.5 * (W[lane, f] + previous[lane, f])
                continue
            best[lane] = objective[lane]
            _copy(W[lane], previous[lane])
            _add_loss(W[lane], -2.0 * scale[lane], sums, lane, feature_mask[lane], gradient[lane])
            solve(factors[lane], feature_mask[lane], gradient[lane], z)
            decrement = _dot(gradient[lane], z)
            if decrement <= 2.0 * tolerance * objective[lane]:
                finished[lane] = True
                continue
            moving[lane] = True
            last_step[lane] = not hinge or decrement <= LAST_STEP * tolerance * objective[lane]
            target[lane] = 0.2 * tolerance * objective[lane] if last_step[lane] else FORCING**2 * decrement
        if finished.all():
            break

        # Conjugate gradients on H s = −gradient, preconditioned with the model, all lanes side by side.
        for lane in range(lanes):
            for f in range(n_features):
                residual[lane, f] = -gradient[lane, f]
                direction[lane, f] = 0.0
        for iteration in range(2 * n_features + 10):
            for lane in range(lanes):
                if moving[lane]:
                    solve(factors[lane], feature_mask[lane], residual[lane], z)
                    new_rho = _dot(residual[lane], z)
                    if new_rho <= target[lane]:
                        moving[lane] = False
                        finished[lane] = last_step[lane]
                        _copy(idle, direction[lane])
                    else:
                        ratio = new_rho / rho[lane] if iteration else 0.0
                        rho[lane] = new_rho
                        for f in range(n_features):
                            direction[lane, f] = z[f] + ratio * direction[lane, f]
            if not moving.any():
                break
            _spread_weights(direction, lane_weights)
            project(X, lane_weights, used, scores)
            curvature_pass(first, winner, worse, active, scores, documents)
            pull_back(X, documents, used, partial, sums)
            for lane in range(lanes):
                if moving[lane]:
                    _add_loss(direction[lane], 2.0 * scale[lane], sums, lane, feature_mask[lane], z)
                    curvature = _dot(direction[lane], z)
                    length = rho[lane] / curvature if curvature > 0.0 else 0.0  # 0 where it is too small to square
                    for f in range(n_features):
                        W[lane, f] += length * direction[lane, f]
                        residual[lane, f] -= length * z[f]
        if finished.all():
            break
    return W, finished


@kernel
def _add_loss(
    w: NDArray[np.float64],
    factor: float,
    sums: NDArray[np.float64],
    lane: int,
    chosen: NDArray[np.bool_],
    result: NDArray[np.float64],
) -> None:
    """Set result to w + factor · (the lane's sums) on the chosen features, 0 elsewhere."""
    for f in range(len(w)):
        result[f] = w[f] + factor * sums[f, lane] if chosen[f] else 0.0


@kernel
def _copy(source: NDArray[np.float64], target: NDArray[np.float64]) -> None:
    for f in range(len(source)):
        target[f] = source[f]


@kernel
def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    total = 0.0
    for f in range(len(a)):
        total += a[f] * b[f]
    return total


@kernel
def _subtract(scores: Floats, shift: Floats) -> None:
    """Subtract each document's shift from its scores in every lane."""
    for i in range(scores.shape[0]):
        for lane in range(scores.shape[1]):
            scores[i, lane] -= shift[i]


@kernel
def _spread_weights(W: NDArray[np.float64], lane_weights: Floats) -> None:
    """Turn one row per lane into one column per lane, in the precision of the passes."""
    for lane in range(W.shape[0]):
        for f in range(W.shape[1]):
            lane_weights[f, lane] = W[lane, f]


@kernel
def _objective(
    W: NDArray[np.float64],
    sums: NDArray[np.float64],
    documents: Floats,
    slack_sum: NDArray[np.float64],
    margin: float,
    shift: Floats,
    scale: NDArray[np.float64],
) -> NDArray[np.float64]:
    """½ ‖w‖² + (C / p) Σ d² of every lane, from the sums of one hinge pass: Σ d² = margin · Σ d − Σ s · residual."""
    objective = margin * slack_sum
    for i in range(len(shift)):
        for lane in range(len(objective)):
            objective[lane] += np.float64(shift[i]) * documents[i, lane]
    for lane in range(len(objective)):
        for f in range(W.shape[1]):
            objective[lane] -= W[lane, f] * sums[f, lane]
        objective[lane] = 0.5 * _dot(W[lane], W[lane]) + scale[lane] * objective[lane]
    return objective


Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]


@kernel
def advance(
    task: Counts,
    sums: Matrix,
    slack: Vector,
    feature_mask: Mask,
    factors: Matrix,
    scale: Vector,
    hinge: bool,
    tolerance: float,
    noise: float,
    most_steps: int,
    W: Matrix,
    previous: Matrix,
    direction: Matrix,
    residual: Matrix,
    best: Vector,
    rho: Vector,
    target: Vector,
    is_last: Mask,
    n_steps: Counts,
    n_products: Counts,
) -> None:
    """Take each individual on from what the last pass has summed for it, and give it the task of the next.

    An individual that has become idle with more than ``most_steps`` Newton steps is not at its minimum.

    Parameters
    ----------
    task : (n_individuals,), that of the last pass; receives that of the next
    sums, slack : (n_individuals, n_features) and (n_individuals,), what the pass has summed
    feature_mask : (n_individuals, n_features); all weights are 0 elsewhere
    factors : (n_individuals, n_features, n_features), of the preconditioners, as `factorise` gives them
    scale : (n_individuals,), C / p
    hinge : bool
        Whether ℓ is one-sided; else one step ends it.
    tolerance : bound on the relative error of each objective, as far as the preconditioner's curvature can tell
    noise : relative rounding of an objective; a larger increase is taken for an overlong step, which is halved
    W, previous, direction, residual : (n_individuals, n_features)
        Weights now and before the step, and direction and residual of the conjugate gradients. All but W begin as 0.
    best : (n_individuals,), the least objective so far; begins as infinity
    rho, target : (n_individuals,), rᵀB⁻¹r, and where it may end
    is_last : (n_individuals,), whether the minimum is reached at the end of these conjugate gradients
    n_steps, n_products : (n_individuals,), Newton steps, and products since the last; begin as 0
    """
    n_features = W.shape[1]
    z = np.zeros(n_features)
    for i in range(len(task)):
        if task[i] == IDLE:
            continue
        chosen, pulled = feature_mask[i], sums[i]
        if task[i] == RESIDUALS:
            # Σ d² = Σ t d − wᵀ Σ d (xᵢ − xⱼ)
            squares = slack[i] - _dot_of_run_newton(W[i], pulled, chosen)
            objective = 0.5 * _dot_of_run_newton(W[i], W[i], chosen) + scale[i] * squares
            n_steps[i] += 1
            if n_steps[i] > most_steps:
                task[i] = IDLE
                continue
            if objective > best[i] + noise * abs(best[i]):
                for f in range(n_features):
                    W[i, f] = 0.5 * (W[i, f] + previous[i, f])
                continue
            best[i] = objective
            for f in range(n_features):
                previous[i, f] = W[i, f]
                residual[i, f] = 2.0 * scale[i] * pulled[f] - W[i, f] if chosen[f] else 0.0
            solve(factors[i], chosen, residual[i], z)
            rho[i] = _dot_of_run_newton(residual[i], z, chosen)  # the decrement
            if rho[i] <= 2.0 * tolerance * objective:
                task[i] = IDLE
                continue
            last_step = not hinge or rho[i] <= LAST_STEP * tolerance * objective
            # The nearer the end, the fewer pairs change sides in a step, and the more exact it may be.
            share = min(FORCING**2, np.sqrt(rho[i] / objective))
            target[i] = 0.2 * tolerance * objective if last_step else share * rho[i]
            is_last[i] = last_step
            n_products[i] = 0
            for f in range(n_features):
                direction[i, f] = z[f]
            task[i] = CURVATURE
        else:
            for f in range(n_features):
                z[f] = direction[i, f] + 2.0 * scale[i] * pulled[f] if chosen[f] else 0.0
            curvature = _dot_of_run_newton(direction[i], z, chosen)
            length = rho[i] / curvature if curvature > 0.0 else 0.0  # 0 where it is too small to square
            for f in range(n_features):
                W[i, f] += length * direction[i, f]
                residual[i, f] -= length * z[f]
            n_products[i] += 1
            solve(factors[i], chosen, residual[i], z)
            before, rho[i] = rho[i], _dot_of_run_newton(residual[i], z, chosen)
            if rho[i] <= target[i]:
                task[i] = IDLE if is_last[i] else RESIDUALS
            elif n_products[i] == 2 * n_features + 10:
                task[i] = RESIDUALS
            for f in range(n_features):
                direction[i, f] = z[f] + rho[i] / before * direction[i, f]


@kernel
def _dot_of_run_newton(a: NDArray[np.float64], b: NDArray[np.float64], chosen: NDArray[np.bool_]) -> float:
    total = 0.0
    for f in range(len(a)):
        if chosen[f]:
            total += a[f] * b[f]
    return total
