"""Newton's method for a population of linear pair rankers, without forming a Hessian.

An individual minimises its own objective

    f(w) = ½ ‖w‖² + (C / p) Σ ℓ(d),   d = margin − wᵀ(xᵢ − xⱼ) + shiftᵢ − shiftⱼ,

over its own p pairs and its own features, with ℓ(d) = max(0, d)² (RankSVM) or d² (RankRLS). Individuals are close to
one problem that has been solved on all pairs or all features. A dense quadratic model of that problem, ½ wᵀBw − rhsᵀw,
gives each individual its start and the preconditioner of its conjugate gradients. Two Newton steps with one product
each are usual.

`advance_newton` continues individuals with the sums of a pass over their pairs, listed or counted, and sets the sums
that they need next. So the weights of an individual do not depend on the others. `newton_lanes` drives it for listed
pairs, `CountedPairs` of `moerank.training.pairs` for counted pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from moerank.arrays import Floats, Integers, Mask, Matrix, Vector, Words
from moerank.kernels import pair_pass
from moerank.kernels.algebra import dot, factorise, solve
from moerank.kernels.compiled import kernel
from moerank.kernels.run_pass import CURVATURE, IDLE, RESIDUALS

# Maximum number of Newton steps of an individual of a population; a few are usual.
MAX_STEPS = 60

# Conjugate gradients of a step end when the residual, in the preconditioner's norm, has fallen to this share.
FORCING = 0.1

# A step is the last one if the Newton decrement is within this factor of the tolerance. The error from changes of the
# active pairs is then of second order in the decrement, and no further pass checks it.
LAST_STEP = 100.0

# Relative rounding of an objective in single precision.
SINGLE_NOISE = 1e-5


class Newton(NamedTuple):
    """The state of the minimisation for each of n individuals."""

    task: Integers  # (n,), `IDLE`, `RESIDUALS` or `CURVATURE`, the sums that the next pass computes
    W: Matrix  # (n, n_features), weights
    previous: Matrix  # (n, n_features), weights before the step
    direction: Matrix  # (n, n_features), of the conjugate gradients
    residual: Matrix  # (n, n_features), of the conjugate gradients
    best: Vector  # (n,), the least objective so far
    rho: Vector  # (n,), rᵀB⁻¹r of the residual r
    target: Vector  # (n,), the value of rho at which the conjugate gradients end
    is_last: Mask  # (n,), whether the minimum is reached at the end of these conjugate gradients
    n_steps: Integers  # (n,), Newton steps
    n_products: Integers  # (n,), products since the last Newton step


def begin_newton(W: Matrix) -> Newton:
    """Return the state at the weights W (n, n_features), which are brought to the minima in place."""
    n = len(W)
    return Newton(
        task=np.full(n, RESIDUALS),
        W=W,
        previous=np.zeros_like(W),
        direction=np.zeros_like(W),
        residual=np.zeros_like(W),
        best=np.full(n, np.inf),
        rho=np.zeros(n),
        target=np.zeros(n),
        is_last=np.zeros(n, np.bool_),
        n_steps=np.zeros(n, np.int64),
        n_products=np.zeros(n, np.int64),
    )


@kernel
def advance_newton(
    state: Newton,
    served: Mask,
    pulled: Matrix,
    slack: Vector,
    feature_mask: Mask,
    factors: Matrix,
    scale: Vector,
    hinge: bool,
    adaptive: bool,
    tolerance: float,
    noise: float,
    max_steps: int,
) -> None:
    """Continue the individuals that a pass has served with its sums, and set their tasks for the next pass.

    An individual that becomes idle with more than ``max_steps`` Newton steps is not at its minimum.

    served : (n,), none of them idle
    pulled : (n, n_features), the sums of the pass over differences of documents
    slack : (n,), Σ t d of the pairs with targets t; read for `RESIDUALS`
    feature_mask : (n, n_features); all weights are 0 elsewhere
    factors : (n, n_features, n_features), of the preconditioners, as `factorise` gives them
    scale : (n,), C / p
    hinge : whether ℓ is one-sided; else one step is enough
    adaptive : whether conjugate gradients become more exact towards the end, where fewer pairs change sides in a step
    tolerance : bound on the relative error of each objective, measured in the preconditioner's curvature
    noise : relative rounding of an objective; a step with a larger increase is too long and is halved
    """
    W, direction, residual, rho = state.W, state.direction, state.residual, state.rho
    n_features = W.shape[1]
    z = np.zeros(n_features)
    for i in range(len(W)):
        if not served[i]:
            continue
        mask = feature_mask[i]
        if state.task[i] == RESIDUALS:
            squares = slack[i] - dot(W[i], pulled[i])  # Σ d² = Σ t d − wᵀ Σ d (xᵢ − xⱼ)
            objective = 0.5 * dot(W[i], W[i]) + scale[i] * squares
            state.n_steps[i] += 1
            if state.n_steps[i] > max_steps:
                state.task[i] = IDLE
                continue
            if objective > state.best[i] + noise * abs(state.best[i]):
                for f in range(n_features):
                    W[i, f] = 0.5 * (W[i, f] + state.previous[i, f])
                continue
            state.best[i] = objective
            for f in range(n_features):
                state.previous[i, f] = W[i, f]
                residual[i, f] = 2.0 * scale[i] * pulled[i, f] - W[i, f] if mask[f] else 0.0
            solve(factors[i], mask, residual[i], z)
            rho[i] = dot(residual[i], z)  # the Newton decrement
            if rho[i] <= 2.0 * tolerance * objective:
                state.task[i] = IDLE
                continue
            share = FORCING**2
            if adaptive:
                share = min(share, np.sqrt(rho[i] / objective))
            state.is_last[i] = not hinge or rho[i] <= LAST_STEP * tolerance * objective
            state.target[i] = 0.2 * tolerance * objective if state.is_last[i] else share * rho[i]
            state.n_products[i] = 0
            for f in range(n_features):
                direction[i, f] = z[f]
            state.task[i] = CURVATURE
        else:
            for f in range(n_features):
                z[f] = direction[i, f] + 2.0 * scale[i] * pulled[i, f] if mask[f] else 0.0
            curvature = dot(direction[i], z)
            length = rho[i] / curvature if curvature > 0.0 else 0.0  # 0 where squares underflow
            for f in range(n_features):
                W[i, f] += length * direction[i, f]
                residual[i, f] -= length * z[f]
            state.n_products[i] += 1
            solve(factors[i], mask, residual[i], z)
            previous_rho, rho[i] = rho[i], dot(residual[i], z)
            if rho[i] <= state.target[i]:
                state.task[i] = IDLE if state.is_last[i] else RESIDUALS
            elif state.n_products[i] == 2 * n_features + 10:
                state.task[i] = RESIDUALS
            for f in range(n_features):
                direction[i, f] = z[f] + rho[i] / previous_rho * direction[i, f]


@kernel
def newton_lanes(
    fields: tuple[Any, ...],
    X: Floats,
    pairs: pair_pass.PairGroups,
    words: Words,
    n_kept: Integers,
    feature_mask: Mask,
    B: Matrix,
    rhs: Vector,
    start: Matrix,
    C: float,
    margin: float,
    shift: Floats,
    hinge: bool,
    tolerance: float,
) -> None:
    """Bring a `Newton`, given as a tuple that `begin_newton` has made, to the minimum of each lane's objective.

    Lanes go from pass to pass together: lanes that need residuals wait for the conjugate gradients of the others. A
    lane that did not converge has more than `MAX_STEPS` steps. The caller makes the arrays of the state, because that
    takes a second to compile here.

    X : (n_documents, n_features), the precision of the passes
    pairs : see `PairGroups`
    words : (n_pairs,); bit l keeps the pair for lane l. ``n_kept`` (lanes,) counts them; a lane with none is idle.
    feature_mask : (lanes, n_features); at least one feature per lane
    B, rhs : (n_features, n_features) and (n_features,), the quadratic model
    start : (lanes, n_features), or no rows to start from the minimum of the model
    shift : (n_documents,), or empty for 0
    tolerance : see `advance_newton`
    """
    lanes, n_features = feature_mask.shape
    features = pair_pass.used_features(feature_mask.T)
    factors = factorise(B, feature_mask)
    state = Newton(*fields)
    W = state.W
    for lane in range(lanes):
        if len(start):
            for f in range(n_features):
                W[lane, f] = start[lane, f] if feature_mask[lane, f] else 0.0
        else:
            solve(factors[lane], feature_mask[lane], rhs, W[lane])
    for lane in range(lanes):
        if n_kept[lane] == 0:
            state.task[lane] = IDLE
    scale = C / n_kept
    scores, documents = np.empty((len(X), lanes), X.dtype), np.empty((len(X), lanes), X.dtype)
    weights = np.zeros((n_features, lanes), X.dtype)
    partial = np.empty((n_features, lanes), X.dtype)
    sums, pulled = np.empty((n_features, lanes)), np.empty((lanes, n_features))
    slack_sum, active = np.empty(lanes), np.empty_like(words)
    slack = np.empty(lanes)
    while state.task.any():
        served = state.task == CURVATURE
        curving = served.any()
        if not curving:  # every lane that is not idle begins a Newton step
            served = state.task == RESIDUALS
        pair_pass.transpose(state.direction if curving else W, weights)
        pair_pass.project(X, weights, features, scores)
        if curving:
            pair_pass.curvature_pass(pairs, active, scores, documents)
        else:
            for i in range(len(shift)):
                for lane in range(lanes):
                    scores[i, lane] -= shift[i]
            pair_pass.hinge_pass(pairs, words, scores, margin, hinge, active, documents, slack_sum)
            slack = margin * slack_sum
            for i in range(len(shift)):
                for lane in range(lanes):
                    slack[lane] += np.float64(shift[i]) * documents[i, lane]
        pair_pass.pull_back(X, documents, features, partial, sums)
        pair_pass.transpose(sums, pulled)
        advance_newton(
            state,
            served,
            pulled,
            slack,
            feature_mask,
            factors,
            scale,
            hinge,
            False,
            tolerance,
            SINGLE_NOISE,
            MAX_STEPS,
        )
