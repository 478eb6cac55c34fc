"""Newton's method for many linear pair rankers on counted pairs, each at its own pace, without ever forming a Hessian.

Each individual minimises its own objective

    f(w) = ½ ‖w‖² + (C / p) Σ ℓ(margin − wᵀ(xᵢ − xⱼ) + shiftᵢ − shiftⱼ)

over its own features and the p pairs among its own documents or queries, with ℓ(d) = max(0, d)² (RankSVM) or d²
(RankRLS). The steps are those of `moerank.kernels.newton`: conjugate gradients, preconditioned with the Hessian of a
problem close by. But a pass over the data (`moerank.kernels.run_pass`) serves some individuals with a gradient and
others with a product, so that nobody waits for the others; and between two passes stands `advance`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.cholesky import solve
from moerank.kernels.compiled import kernel
from moerank.kernels.newton import FORCING, LAST_STEP
from moerank.kernels.run_pass import CURVATURE, IDLE, RESIDUALS

__all__ = ["advance"]

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
            squares = slack[i] - _dot(W[i], pulled, chosen)
            objective = 0.5 * _dot(W[i], W[i], chosen) + scale[i] * squares
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
            rho[i] = _dot(residual[i], z, chosen)  # the decrement
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
            curvature = _dot(direction[i], z, chosen)
            length = rho[i] / curvature if curvature > 0.0 else 0.0  # 0 where it is too small to square
            for f in range(n_features):
                W[i, f] += length * direction[i, f]
                residual[i, f] -= length * z[f]
            n_products[i] += 1
            solve(factors[i], chosen, residual[i], z)
            before, rho[i] = rho[i], _dot(residual[i], z, chosen)
            if rho[i] <= target[i]:
                task[i] = IDLE if is_last[i] else RESIDUALS
            elif n_products[i] == 2 * n_features + 10:
                task[i] = RESIDUALS
            for f in range(n_features):
                direction[i, f] = z[f] + rho[i] / before * direction[i, f]


@kernel
def _dot(a: NDArray[np.float64], b: NDArray[np.float64], chosen: NDArray[np.bool_]) -> float:
    total = 0.0
    for f in range(len(a)):
        if chosen[f]:
            total += a[f] * b[f]
    return total
