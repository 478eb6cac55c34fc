"""Newton's method for many linear pair rankers on counted pairs, each at its own pace, without ever forming a Hessian.

Each individual minimises its own objective

    f(w) = ½ ‖w‖² + (C / p) Σ ℓ(margin − wᵀ(xᵢ − xⱼ) + shiftᵢ − shiftⱼ)

over its own features and the p pairs among its own documents or queries, with ℓ(d) = max(0, d)² (RankSVM) or d²
(RankRLS). The steps are those of
`moerank.kernels.newton`: conjugate gradients, preconditioned with the Hessian of a problem close by. But a pass over
the data (`moerank.kernels.run_pass`) serves some individuals with a gradient and others with a product, so that nobody
waits for the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.cholesky import solve
from moerank.kernels.compiled import kernel
from moerank.kernels.newton import FORCING, LAST_STEP, MAX_STEPS
from moerank.kernels.run_pass import CURVATURE, IDLE, RESIDUALS, run_pass

__all__ = ["newton_by_runs"]

Floats = NDArray[np.floating[Any]]
Matrix = NDArray[np.float64]
Words = NDArray[np.unsignedinteger[Any]]


@kernel
def newton_by_runs(
    columns: Floats,
    centre: Matrix,
    offsets: NDArray[np.int64],
    query: NDArray[np.int64],
    first: NDArray[np.int64],
    start: NDArray[np.int64],
    row: NDArray[np.int32],
    documents: NDArray[np.bool_],
    queries: NDArray[np.bool_],
    feature_mask: NDArray[np.bool_],
    factors: Matrix,
    W: Matrix,
    scale: NDArray[np.float64],
    margin: float,
    shift: NDArray[np.float64],
    hinge: bool,
    tolerance: float,
    noise: float,
    prefix: Words,
    zero: Floats,
) -> NDArray[np.bool_]:
    """Bring the weights W (n_individuals, n_features) to the minimum of each individual's objective, in place.

    Returns whether each got there (n_individuals,) before it stopped at `MAX_STEPS`.

    Parameters
    ----------
    columns, centre, offsets, query, first, start, row, documents, queries, margin, shift, hinge, prefix
        As in `run_pass`.
    feature_mask : (n_individuals, n_features); W is 0 elsewhere
    factors : (n_individuals, n_features, n_features), of the preconditioners, as `factorise` gives them
    scale : (n_individuals,), C / p
    tolerance : bound on the relative error of each objective, as far as the preconditioner's curvature can tell
    noise : relative rounding of an objective; a larger increase is taken for an overlong step, which is halved
    zero : an array (0,) in the precision of the passes
    """
    n_individuals, n_features = feature_mask.shape
    used, begin, place = _own_features(feature_mask)
    w, v = np.zeros(len(place), zero.dtype), np.zeros(len(place), zero.dtype)
    sums, slack = np.empty(len(place)), np.empty(n_individuals)
    pulled = np.zeros(n_features)
    previous, direction, residual = np.zeros_like(W), np.zeros_like(W), np.zeros_like(W)
    z = np.zeros(n_features)
    best = np.full(n_individuals, np.inf)
    rho, target = np.zeros(n_individuals), np.zeros(n_individuals)  # rᵀB⁻¹r, and where it may end
    n_steps, n_products = np.zeros(n_individuals, np.int64), np.zeros(n_individuals, np.int64)
    last_step, finished = np.zeros(n_individuals, np.bool_), np.zeros(n_individuals, np.bool_)
    task = np.full(n_individuals, RESIDUALS)

    while (task != IDLE).any():
        for i in range(n_individuals):
            for k in range(begin[i], begin[i + 1]):
                w[k] = W[i, used[place[k]]]
                v[k] = direction[i, used[place[k]]]
        run_pass(
            columns, centre, offsets, query, first, start, row, used, begin, place, w, v, task, documents, queries,
            margin, shift, hinge, prefix, sums, slack,
        )  # fmt: skip
        for i in range(n_individuals):
            if task[i] == IDLE:
                continue
            for k in range(begin[i], begin[i + 1]):
                pulled[used[place[k]]] = sums[k]
            chosen = feature_mask[i]
            if task[i] == RESIDUALS:
                # Σ d² = Σ t d − wᵀ Σ d (xᵢ − xⱼ)
                squares = slack[i] - _dot(W[i], pulled, chosen)
                objective = 0.5 * _dot(W[i], W[i], chosen) + scale[i] * squares
                n_steps[i] += 1
                if n_steps[i] > MAX_STEPS:
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
                rho[i] = _dot(residual[i], z, chosen)  # the decrement
                if rho[i] <= 2.0 * tolerance * objective:
                    finished[i] = True
                    task[i] = IDLE
                    continue
                last_step[i] = not hinge or rho[i] <= LAST_STEP * tolerance * objective
                # The nearer the end, the fewer pairs change sides in a step, and the more exact it may be.
                share = min(FORCING**2, np.sqrt(rho[i] / objective))
                target[i] = 0.2 * tolerance * objective if last_step[i] else share * rho[i]
                n_products[i] = 0
                for f in range(n_features):
                    direction[i, f] = z[f]
                task[i] = CURVATURE
            else:
                for f in range(n_features):
                    z[f] = direction[i, f] + 2.0 * scale[i] * pulled[f] if chosen[f] else 0.0
                curvature = _dot(direction[i], z, chosen)
                length = rho[i] / curvature if curvature > 0.0 else 0.0  # 0 where it is too small to square
                for f in range(n_features):
                    W[i, f] += length * direction[i, f]
                    residual[i, f] -= length * z[f]
                n_products[i] += 1
                solve(factors[i], chosen, residual[i], z)
                before, rho[i] = rho[i], _dot(residual[i], z, chosen)
                if rho[i] <= target[i]:
                    finished[i] = last_step[i]
                    task[i] = IDLE if last_step[i] else RESIDUALS
                elif n_products[i] == 2 * n_features + 10:
                    task[i] = RESIDUALS
                for f in range(n_features):
                    direction[i, f] = z[f] + rho[i] / before * direction[i, f]
    return finished


@kernel
def _own_features(
    feature_mask: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the features that anybody uses, and where among them those of each individual are; see `run_pass`."""
    n_individuals, n_features = feature_mask.shape
    number = np.full(n_features, -1)
    used = np.empty(n_features, np.int64)
    begin = np.zeros(n_individuals + 1, np.int64)
    n_used = 0
    for f in range(n_features):
        if feature_mask[:, f].any():
            number[f] = n_used
            used[n_used] = f
            n_used += 1
    place = np.empty(feature_mask.sum(), np.int64)
    n = 0
    for i in range(n_individuals):
        for f in range(n_features):
            if feature_mask[i, f]:
                place[n] = number[f]
                n += 1
        begin[i + 1] = n
    return used[:n_used].copy(), begin, place


@kernel
def _dot(a: NDArray[np.float64], b: NDArray[np.float64], chosen: NDArray[np.bool_]) -> float:
    total = 0.0
    for f in range(len(a)):
        if chosen[f]:
            total += a[f] * b[f]
    return total
