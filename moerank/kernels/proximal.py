"""Gradient methods for a vector of sparse pair rankers at once: FSMRank's Algorithm 1 and projected sub-gradients.

Each lane minimises its own objective over 2 n_features non-negative variables w = [u; v],

    F(w) = ℓ(w) + λ₂ Σ cᵢ (uᵢ + vᵢ),   ℓ(w) = (1 / p) Σ max(0, 1 − (u − v)ᵀ(xᵢ − xⱼ))² + ½ λ₁ (u + v)ᵀA(u + v),

over its own p pairs and its own features; FSMRank has costs cᵢ = 1 / sᵢ.

Lanes go from step to step together and share nothing else: one that has found its L waits for the others', one that
is finished stands still, so an individual's weights do not depend on its company.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel
from moerank.kernels.pair_pass import hinge_pass, project, pull_back, used_features

__all__ = ["proximal_lanes", "subgradient_lanes"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

# Relative rounding error of ℓ. Close to the solution both sides of the line search's test agree to more digits than
# they have; without this allowance L would then be doubled for ever.
ROUNDING = 1e-13


@kernel
def proximal_lanes(
    X: Matrix,
    first: NDArray[np.int64],
    winner: NDArray[np.int32],
    worse: NDArray[np.int32],
    kept: NDArray[np.uint8],
    n_kept: NDArray[np.int64],
    feature_mask: NDArray[np.bool_],
    A: Matrix,
    cost: Matrix,
    lambda1: Vector,
    lambda2: Vector,
    start: Matrix,
    max_iter: int,
    tol: float,
    history: Matrix,
) -> tuple[Matrix, NDArray[np.int64]]:
    """Return each lane's variables (lanes, 2 n_features) and its number of steps (lanes,), by accelerated steps.

    The listing is kept. What makes a step cheap is that scores are linear in w: those of the extrapolated point z
    come from those of the last two w, so a step takes one product with X for w, one back from the documents for the
    gradient at z, and two passes over the pairs.

    Parameters
    ----------
    X : (n_documents, n_features)
    first, winner, worse : the pairs, see `moerank.kernels.pair_pass`
    kept : (n_pairs,) words; bit l keeps the pair for lane l. ``n_kept`` (lanes,) counts them; a lane with none is idle.
    feature_mask : (lanes, n_features)
    A : (n_features, n_features), symmetric, preferably positive semidefinite; not read where all lambda1 are 0
    cost : (lanes, n_features), cᵢ; finite where the lane uses the feature
    lambda1, lambda2 : (lanes,), not negative
    start : (lanes, 2 n_features), not negative, and 0 off the lane's features
    max_iter, tol : a lane ends after `max_iter` steps or when F changes by at most ``tol · F`` in one
    history : (max_iter + 1, lanes), receives F at the start and after each step of a lane; without rows it is not asked
    """
    lanes, n_features = feature_mask.shape
    every = np.arange(n_features)
    cost = np.ascontiguousarray(cost.T)
    w = np.ascontiguousarray(start.T)  # (2 n_features, lanes), like all arrays of variables
    w_before, z, trial, gradient = w.copy(), w.copy(), w.copy(), w.copy()
    weights = np.empty((n_features, lanes))  # u − v
    sizes = np.empty((n_features, lanes))  # u + v
    similar = np.zeros((n_features, lanes))  # A (u + v), which nobody looks at where λ₁ is 0
    sums = np.empty((n_features, lanes))
    partial = np.empty((n_features, lanes))
    scores = np.empty((len(X), lanes))
    documents = np.empty((len(X), lanes))
    slack_sum = np.empty(lanes)
    active = np.empty_like(kept)

    L = np.empty(lanes)
    share = np.empty(lanes)  # of a pair in the mean
    finished = np.empty(lanes, np.bool_)
    alike, n_going = False, 0
    for lane in range(lanes):
        size = 0
        for f in range(n_features):
            size += feature_mask[lane, f]
        L[lane] = (4.0 + 2.0 * lambda1[lane]) * max(1, size) / 2.0**10
        share[lane] = 1.0 / max(1, n_kept[lane])
        finished[lane] = n_kept[lane] == 0
        n_going += not finished[lane]
        alike = alike or lambda1[lane] > 0.0
    alpha = np.ones(lanes)
    momentum = np.zeros(lanes)
    objective, reached = np.zeros(lanes), np.empty(lanes)
    searching = np.empty(lanes, np.bool_)
    n_iter = np.zeros(lanes, np.int64)

    _split(w, weights, sizes)
    project(X, weights, every, scores)
    scores_w, scores_before = scores.copy(), scores.copy()

    for step in range(max_iter):
        # ℓ and its gradient at z.
        _extrapolate(w, w_before, momentum, z)
        _extrapolate(scores_w, scores_before, momentum, scores)
        hinge_pass(first, winner, worse, kept, scores, 1.0, True, active, documents, slack_sum)
        pull_back(X, documents, every, partial, sums)
        _split(z, weights, sizes)
        if alike:
            project(A, sizes, every, similar)
        smooth_z = _smooth(scores, documents, slack_sum, share, sizes, similar, lambda1)
        _gradient(sums, similar, share, lambda1, gradient)
        if step == 0:  # z is w here
            _add_cost(smooth_z, lambda2, sizes, cost, objective)
            for lane in range(lanes if len(history) else 0):
                history[0, lane] = objective[lane]

        # The proximal step to `trial`, with L doubled until the quadratic model at z is not below ℓ.
        for lane in range(lanes):
            searching[lane] = not finished[lane]
        n_searching = n_going
        while n_searching:
            for lane in range(lanes):
                if searching[lane]:
                    _proximal_step(z, gradient, L[lane], lambda2[lane], cost, feature_mask[lane], lane, trial)
            _split(trial, weights, sizes)
            project(X, weights, used_features(weights), scores)
            hinge_pass(first, winner, worse, kept, scores, 1.0, True, active, documents, slack_sum)
            if alike:
                project(A, sizes, every, similar)
            smooth = _smooth(scores, documents, slack_sum, share, sizes, similar, lambda1)
            for lane in range(lanes):
                if searching[lane]:
                    model = smooth_z[lane] + _model_step(z, gradient, L[lane], lane, trial)
                    searching[lane] = smooth[lane] > model + ROUNDING * smooth_z[lane]
                    if searching[lane]:
                        L[lane] *= 2.0
                    else:
                        n_searching -= 1

        _add_cost(smooth, lambda2, sizes, cost, reached)
        for lane in range(lanes):
            if not finished[lane]:
                for i in range(2 * n_features):
                    w_before[i, lane] = w[i, lane]
                    w[i, lane] = trial[i, lane]
                n_iter[lane] = step + 1
                finished[lane] = abs(reached[lane] - objective[lane]) <= tol * abs(objective[lane])
                n_going -= finished[lane]
                objective[lane] = reached[lane]
                if len(history):
                    history[step + 1, lane] = reached[lane]
                following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * alpha[lane] ** 2))
                momentum[lane] = (alpha[lane] - 1.0) / following
                alpha[lane] = following
        if n_going == 0:
            break
        scores_before, scores_w, scores = scores_w, scores, scores_before
    return w.T.copy(), n_iter


@kernel
def subgradient_lanes(
    X: Matrix,
    first: NDArray[np.int64],
    winner: NDArray[np.int32],
    worse: NDArray[np.int32],
    feature_mask: NDArray[np.bool_],
    A: Matrix,
    cost: Matrix,
    lambda1: Vector,
    lambda2: Vector,
    eta0: Vector,
    max_iter: int,
    history: Matrix,
) -> Matrix:
    """Return the best point of each lane (lanes, 2 n_features) among w ← max(0, w − η₀ / √t ∇F(w)), t = 1 … max_iter.

    All pairs count. A step takes a product with X, one back, and a pass over the pairs.

    Parameters
    ----------
    eta0 : (lanes,), η₀, positive
    history : (max_iter + 1, lanes), receives F at w = 0 and after each step

    The others are those of `proximal_lanes`.
    """
    lanes, n_features = feature_mask.shape
    every = np.arange(n_features)
    cost = np.ascontiguousarray(cost.T)
    w = np.zeros((2 * n_features, lanes))
    best, gradient = w.copy(), w.copy()
    weights, sizes = np.empty((n_features, lanes)), np.empty((n_features, lanes))
    similar, sums, partial = np.empty_like(sizes), np.empty_like(sizes), np.empty_like(sizes)
    scores, documents = np.empty((len(X), lanes)), np.empty((len(X), lanes))
    kept = np.full(len(worse), 255, np.uint8)
    active = np.empty_like(kept)
    slack_sum, least = np.empty(lanes), np.full(lanes, np.inf)
    share = np.full(lanes, 1.0 / len(worse))
    for step in range(max_iter + 1):
        _split(w, weights, sizes)
        project(X, weights, used_features(weights), scores)
        hinge_pass(first, winner, worse, kept, scores, 1.0, True, active, documents, slack_sum)
        project(A, sizes, every, similar)
        smooth = _smooth(scores, documents, slack_sum, share, sizes, similar, lambda1)
        _add_cost(smooth, lambda2, sizes, cost, history[step])
        for lane in range(lanes):
            if history[step, lane] < least[lane]:
                least[lane] = history[step, lane]
                for i in range(2 * n_features):
                    best[i, lane] = w[i, lane]
        if step < max_iter:
            pull_back(X, documents, every, partial, sums)
            _gradient(sums, similar, share, lambda1, gradient)
            for lane in range(lanes):
                L = np.sqrt(step + 1.0) / eta0[lane]
                _proximal_step(w, gradient, L, lambda2[lane], cost, feature_mask[lane], lane, w)
    return best.T.copy()


@kernel
def _gradient(sums: Matrix, similar: Matrix, share: Vector, lambda1: Vector, gradient: Matrix) -> None:
    """Write the gradient of ℓ in [u; v], from Σ d (xᵢ − xⱼ) of the pairs and A (u + v)."""
    n_features = len(sums)
    for f in range(n_features):
        for lane in range(sums.shape[1]):
            loss = -2.0 * share[lane] * sums[f, lane]
            gradient[f, lane] = lambda1[lane] * similar[f, lane] + loss
            gradient[n_features + f, lane] = lambda1[lane] * similar[f, lane] - loss


@kernel
def _split(variables: Matrix, weights: Matrix, sizes: Matrix) -> None:
    """Read weights u − v and sizes u + v off the variables [u; v]."""
    n_features = len(weights)
    for f in range(n_features):
        for lane in range(weights.shape[1]):
            weights[f, lane] = variables[f, lane] - variables[n_features + f, lane]
            sizes[f, lane] = variables[f, lane] + variables[n_features + f, lane]


@kernel
def _extrapolate(now: Matrix, before: Matrix, momentum: Vector, result: Matrix) -> None:
    """Go on from `now` by the last change times each lane's momentum."""
    for i in range(now.shape[0]):
        for lane in range(now.shape[1]):
            result[i, lane] = now[i, lane] + momentum[lane] * (now[i, lane] - before[i, lane])


@kernel
def _smooth(
    scores: Matrix,
    documents: Matrix,
    slack_sum: Vector,
    share: Vector,
    sizes: Matrix,
    similar: Matrix,
    lambda1: Vector,
) -> Vector:
    """Return ℓ of every lane, from the sums of one hinge pass (Σ d² = Σ d − Σ s · residual) and A (u + v)."""
    loss = slack_sum.copy()
    for i in range(len(scores)):
        for lane in range(len(loss)):
            loss[lane] -= scores[i, lane] * documents[i, lane]
    quadratic = np.zeros(len(loss))
    for f in range(len(sizes)):
        for lane in range(len(loss)):
            quadratic[lane] += sizes[f, lane] * similar[f, lane]
    for lane in range(len(loss)):
        loss[lane] = share[lane] * loss[lane] + 0.5 * lambda1[lane] * quadratic[lane]
    return loss


@kernel
def _add_cost(smooth: Vector, lambda2: Vector, sizes: Matrix, cost: Matrix, objective: Vector) -> None:
    """Write ℓ + λ₂ Σ cᵢ (uᵢ + vᵢ) of every lane to `objective`."""
    total = np.zeros(len(smooth))
    for f in range(len(sizes)):
        for lane in range(len(total)):
            total[lane] += sizes[f, lane] * cost[f, lane]
    for lane in range(len(total)):
        objective[lane] = smooth[lane] + lambda2[lane] * total[lane]


@kernel
def _proximal_step(
    z: Matrix,
    gradient: Matrix,
    L: float,
    lambda2: float,
    cost: Matrix,
    chosen: NDArray[np.bool_],
    lane: int,
    trial: Matrix,
) -> None:
    """Minimise the model at z over the non-negative variables: max(0, z − (g + λ₂ c) / L), 0 off the features."""
    n_features = len(cost)
    for i in range(len(z)):
        f = i % n_features
        step = (gradient[i, lane] + lambda2 * cost[f, lane]) / L
        trial[i, lane] = max(0.0, z[i, lane] - step) if chosen[f] else 0.0


@kernel
def _model_step(z: Matrix, gradient: Matrix, L: float, lane: int, trial: Matrix) -> float:
    """Return what the quadratic model at z adds to ℓ(z) up to w, the `trial`: gᵀ(w − z) + ½ L ‖w − z‖²."""
    total = 0.0
    for i in range(len(z)):
        change = trial[i, lane] - z[i, lane]
        total += gradient[i, lane] * change + 0.5 * L * change * change
    return total
