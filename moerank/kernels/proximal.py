"""A gradient method for a population of sparse pair rankers: FSMRank's Algorithm 1.

An individual minimises its own objective over 2 n_features non-negative variables w = [u; v],

    F(w) = ℓ(w) + λ₂ Σ cᵢ (uᵢ + vᵢ),   ℓ(w) = (1 / p) Σ max(0, 1 − (u − v)ᵀ(xᵢ − xⱼ))² + ½ λ₁ (u + v)ᵀA(u + v),

over its own p pairs and its own features; FSMRank has costs cᵢ = 1 / sᵢ.

`advance` continues individuals with the sums of a pass over their pairs, listed or counted, and sets the point where ℓ
is needed next. So the weights of an individual do not depend on the others. `proximal_lanes` drives it for listed
pairs, `CountedPairs` of `moerank.training.pairs` for counted pairs.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.kernels.compiled import kernel
from moerank.kernels.pair_pass import (
    PairGroups,
    hinge_pass,
    project,
    pull_back,
    transpose,
    used_features,
)
from moerank.kernels.run_pass import IDLE

# Tasks of a pass for an individual that is not `IDLE`: ℓ and its gradient at the point z; ℓ at the trial step.
GRADIENT, VALUE = 1, 2

# Relative rounding error of ℓ; if it were ignored, L would be doubled without end close to the solution.
LOSS_ROUNDING = 1e-13


class Terms(NamedTuple):
    """The terms of the objectives of n individuals."""

    feature_mask: Mask  # (n, n_features)
    share: Vector  # (n,), 1 / p
    A: Matrix  # (n_features, n_features), symmetric, preferably positive semidefinite; read for λ₁ > 0 only
    cost: Matrix  # (n, n_features), cᵢ; finite where the individual uses the feature
    lambda1: Vector  # (n,), not negative
    lambda2: Vector  # (n,), not negative


class Proximal(NamedTuple):
    """The state of Algorithm 1 for each of n individuals."""

    task: Integers  # (n,), `IDLE`, `GRADIENT` or `VALUE`
    w: Matrix  # (n, 2 n_features), the variables
    previous: Matrix  # (n, 2 n_features), the variables before the last step
    z: Matrix  # (n, 2 n_features), the extrapolated point
    trial: Matrix  # (n, 2 n_features)
    value: Vector  # (n,), ℓ at z
    gradient: Matrix  # (n, 2 n_features), of ℓ at z
    objective: Vector  # (n,), F at w
    L: Vector  # (n,), the curvature of the model at z
    alpha: Vector  # (n,), from which the next momentum follows
    momentum: Vector  # (n,), the weight of the extrapolation
    n_iter: Integers  # (n,), steps so far


def begin(terms: Terms, start: Matrix) -> Proximal:
    """Return the state at `start` (n, 2 n_features), not negative, and 0 off the features."""
    n = len(start)
    L = (4.0 + 2.0 * terms.lambda1) * np.maximum(1, terms.feature_mask.sum(axis=1)) / 2.0**10
    return Proximal(
        task=np.full(n, GRADIENT),
        w=start.copy(),
        previous=start.copy(),
        z=start.copy(),
        trial=start.copy(),
        value=np.zeros(n),
        gradient=np.zeros_like(start),
        objective=np.zeros(n),
        L=L,
        alpha=np.ones(n),
        momentum=np.zeros(n),
        n_iter=np.zeros(n, np.int64),
    )


@kernel
def advance(
    state: Proximal,
    served: Mask,
    terms: Terms,
    pulled: Matrix,
    squares: Vector,
    max_iter: int,
    tol: float,
) -> None:
    """Continue the individuals that a pass has served with its sums at their points, and set their next points.

    An individual ends after `max_iter` steps or when F changes by at most ``tol · F`` in one.

    served : (n,), none of them idle
    pulled : (n, n_features), Σ d (xᵢ − xⱼ) over the pairs, with d = max(0, 1 − (u − v)ᵀ(xᵢ − xⱼ)); read for `GRADIENT`
    squares : (n,), Σ d²
    """
    w, z, trial, L = state.w, state.z, state.trial, state.L
    n_variables, n_features = w.shape[1], terms.cost.shape[1]
    similar = np.zeros(n_features)
    for i in range(len(w)):
        if not served[i]:
            continue
        if state.task[i] == GRADIENT:
            state.value[i] = _smooth(terms, i, z[i], squares[i], similar)
            for f in range(n_features):  # of ℓ in [u; v], from Σ d (xᵢ − xⱼ) and A (u + v)
                loss = -2.0 * terms.share[i] * pulled[i, f]
                quadratic = terms.lambda1[i] * similar[f] if terms.lambda1[i] > 0.0 else 0.0
                state.gradient[i, f] = quadratic + loss
                state.gradient[i, n_features + f] = quadratic - loss
            if state.n_iter[i] == 0:  # z is w here
                state.objective[i] = state.value[i] + _penalty(terms, i, z[i])
            state.task[i] = VALUE
        else:
            smooth = _smooth(terms, i, trial[i], squares[i], similar)
            model = 0.0  # the change of the quadratic model from z to the trial
            for k in range(n_variables):
                change = trial[i, k] - z[i, k]
                model += state.gradient[i, k] * change + 0.5 * L[i] * change * change
            if not smooth > state.value[i] + model + LOSS_ROUNDING * state.value[i]:
                reached = smooth + _penalty(terms, i, trial[i])
                state.n_iter[i] += 1
                small = abs(reached - state.objective[i]) <= tol * abs(state.objective[i])
                state.task[i] = IDLE if small or state.n_iter[i] == max_iter else GRADIENT
                state.objective[i] = reached
                following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * state.alpha[i] ** 2))
                state.momentum[i] = (state.alpha[i] - 1.0) / following
                state.alpha[i] = following
                for k in range(n_variables):
                    state.previous[i, k], w[i, k] = w[i, k], trial[i, k]
                    z[i, k] = w[i, k] + state.momentum[i] * (w[i, k] - state.previous[i, k])
                continue
            L[i] *= 2.0
        # The minimum of the model at z: max(0, z − (g + λ₂ c) / L), 0 off the features.
        for k in range(n_variables):
            f = k % n_features
            step = (state.gradient[i, k] + terms.lambda2[i] * terms.cost[i, f]) / L[i]
            trial[i, k] = max(0.0, z[i, k] - step) if terms.feature_mask[i, f] else 0.0


@kernel
def proximal_lanes(
    X: Matrix,
    pairs: PairGroups,
    words: NDArray[np.uint8],
    fields_of_terms: tuple[Any, ...],
    fields_of_state: tuple[Any, ...],
    max_iter: int,
    tol: float,
    history: Matrix,
) -> None:
    """Bring a `Proximal`, given as a tuple that `begin` has made, to each lane's minimum, by accelerated steps.

    Lanes go from step to step together: a lane that has found its L waits for the others. Scores are linear in w, so
    those of the extrapolated point z follow from the scores of the last two w. A step takes one product with X for w,
    one with Xᵀ for the gradient at z, and two passes over the pairs.

    X : (n_documents, n_features)
    pairs : see `PairGroups`
    words : (n_pairs,); bit l keeps the pair for lane l
    fields_of_terms : the `Terms`
    max_iter, tol : see `advance`
    history : (max_iter + 1, lanes), receives F at the start and after each step of a lane
    """
    terms, state = Terms(*fields_of_terms), Proximal(*fields_of_state)
    lanes, n_features = terms.feature_mask.shape
    features = np.arange(n_features)
    weights = np.empty((n_features, lanes))
    partial = np.empty((n_features, lanes))
    sums = np.empty((n_features, lanes))
    scores, documents = np.empty((len(X), lanes)), np.empty((len(X), lanes))
    pulled, squares, active = np.empty((lanes, n_features)), np.empty(lanes), np.empty_like(words)
    transpose(state.w[:, :n_features] - state.w[:, n_features:], weights)
    project(X, weights, features, scores)
    scores_w, scores_before = scores.copy(), scores.copy()
    while state.task.any():  # every lane that is not idle begins a step
        for i in range(len(X)):
            for lane in range(lanes):
                change = scores_w[i, lane] - scores_before[i, lane]
                scores[i, lane] = scores_w[i, lane] + state.momentum[lane] * change
        _hinge(pairs, words, scores, active, documents, squares)
        pull_back(X, documents, features, partial, sums)
        transpose(sums, pulled)
        served = state.task == GRADIENT
        while served.any():
            advance(state, served, terms, pulled, squares, max_iter, tol)
            for lane in range(lanes):
                history[state.n_iter[lane], lane] = state.objective[lane]
            served = state.task == VALUE
            if served.any():
                transpose(state.trial[:, :n_features] - state.trial[:, n_features:], weights)
                project(X, weights, used_features(weights), scores)
                _hinge(pairs, words, scores, active, documents, squares)
        scores_before, scores_w, scores = scores_w, scores, scores_before


@kernel
def _hinge(
    pairs: PairGroups,
    words: NDArray[np.uint8],
    scores: Matrix,
    active: NDArray[np.uint8],
    documents: Matrix,
    squares: Vector,
) -> None:
    """Sum d = max(0, 1 − (sᵢ − sⱼ)) over the pairs into the documents, and Σ d² = Σ d − Σ s · documents."""
    one_sided = len(squares) > 0  # True, but no literal, which would be a type of its own
    hinge_pass(pairs, words, scores, 1.0, one_sided, active, documents, squares)
    for i in range(len(scores)):
        for lane in range(len(squares)):
            squares[lane] -= scores[i, lane] * documents[i, lane]


@kernel
def _smooth(terms: Terms, i: int, w: Vector, squares: float, similar: Vector) -> float:
    """Return ℓ of individual i at w = [u; v], and write A (u + v) to `similar` if λ₁ > 0."""
    n_features = len(similar)
    quadratic = 0.0
    if terms.lambda1[i] > 0.0:
        similar[:] = 0.0
        for g in range(n_features):
            size = w[g] + w[n_features + g]
            if size != 0.0:
                for f in range(n_features):
                    similar[f] += terms.A[g, f] * size
        for f in range(n_features):
            quadratic += (w[f] + w[n_features + f]) * similar[f]
    return terms.share[i] * squares + 0.5 * terms.lambda1[i] * quadratic


@kernel
def _penalty(terms: Terms, i: int, w: Vector) -> float:
    """Return λ₂ Σ cᵢ (uᵢ + vᵢ)."""
    n_features = terms.cost.shape[1]
    total = 0.0
    for f in range(n_features):
        total += (w[f] + w[n_features + f]) * terms.cost[i, f]
    return terms.lambda2[i] * total
