"""FSMRank's Algorithm 1 on pairs that are counted, not listed, by the steps of `moerank.kernels.proximal`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.square import in_order
from moerank.training.counted_problem import CountedProblem

__all__ = ["minimise_by_passes"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROUNDING = 1e-13
"""Relative rounding error of ℓ, which the test of the line search has to allow for."""


def minimise_by_passes(
    problem: CountedProblem,
    feature_mask: Mask,
    A: Matrix,
    cost: Vector,
    lambdas: Matrix,
    start: Matrix,
    max_iter: int,
    tol: float,
    documents: Mask | None = None,
    queries: Mask | None = None,
) -> tuple[Matrix, NDArray[np.int64], Matrix]:
    """Return the variables [u; v] (n, 2 n_features), the numbers of steps (n,), and F at the start and after each step.

    The last has shape (max_iter + 1, n). F(w) = (1 / p) Σ max(0, 1 − (u − v)ᵀ(xᵢ − xⱼ))² + ½ λ₁ (u + v)ᵀA(u + v)
    + λ₂ Σ cᵢ (uᵢ + vᵢ), over the p pairs of each individual. A step takes a pass for the gradient, and one for each
    trial of the line search; an individual that has ended takes none, and none depends on its company.

    Parameters
    ----------
    problem : CountedProblem
        With the squared hinge loss.
    feature_mask : (n, n_features)
    A : (n_features, n_features), symmetric
    cost : (n_features,), cᵢ; finite
    lambdas : (n, 2), λ₁ and λ₂
    start : (n, 2 n_features), not negative, and 0 off the features
    max_iter, tol : an individual ends after `max_iter` steps or when F changes by at most ``tol · F`` in one
    documents, queries : as in `CountedProblem.solve_population`
    """
    n = len(feature_mask)
    lambda1, lambda2 = lambdas.T
    share = 1.0 / problem.counts(n, documents, queries)
    allowed = np.hstack([feature_mask, feature_mask])
    costs = np.tile(cost, 2) * lambda2[:, None]

    def smooth(w: Matrix, mask: Mask, rows: NDArray[np.int64]) -> tuple[Vector, Matrix]:
        """Return ℓ of some individuals at their rows of w, and its gradient on the features of the mask."""
        u, v = np.hsplit(w, 2)
        pulled, squares = problem.squared_residuals(u - v, mask, _of(documents, rows), _of(queries, rows))
        similar = np.array([in_order(A, size) for size in u + v]) * lambda1[rows, None]
        loss = -2.0 * share[rows, None] * pulled
        value = share[rows] * squares + 0.5 * ((u + v) * similar).sum(axis=1)
        return value, np.hstack([similar + loss, similar - loss])

    w, before = start.copy(), start.copy()
    L = (4.0 + 2.0 * lambda1) * np.maximum(1, feature_mask.sum(axis=1)) / 2.0**10
    alpha, momentum = np.ones(n), np.zeros(n)
    n_iter, history = np.zeros(n, np.int64), np.zeros((max_iter + 1, n))
    rows = np.arange(n)
    for step in range(max_iter):
        z = w[rows] + momentum[rows, None] * (w[rows] - before[rows])
        value, gradient = smooth(z, feature_mask[rows], rows)
        if step == 0:  # z is w here
            history[0] = value + (costs * w).sum(axis=1)
        trial, reached = np.empty_like(z), np.empty(len(rows))
        searching = np.arange(len(rows))
        while len(searching):
            own = rows[searching]
            stepped = z[searching] - (gradient[searching] + costs[own]) / L[own, None]
            trial[searching] = found = np.where(allowed[own], np.maximum(0.0, stepped), 0.0)
            u, v = np.hsplit(found, 2)
            reached[searching] = smooth(found, u != v, own)[0]
            change = found - z[searching]
            model = (gradient[searching] * change + 0.5 * L[own, None] * change * change).sum(axis=1)
            above = reached[searching] > value[searching] + model + ROUNDING * value[searching]
            searching = searching[above]
            L[rows[searching]] *= 2.0
        before[rows], w[rows] = w[rows], trial
        n_iter[rows] = step + 1
        history[step + 1, rows] = reached + (costs[rows] * trial).sum(axis=1)
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * alpha[rows] ** 2))
        momentum[rows], alpha[rows] = (alpha[rows] - 1.0) / following, following
        fall = np.abs(history[step + 1, rows] - history[step, rows])
        rows = rows[fall > tol * np.abs(history[step, rows])]
        if not len(rows):
            break
    return w, n_iter, history


def _of(masks: Mask | None, rows: NDArray[np.int64]) -> Mask | None:
    """Return the masks of some individuals; one row is shared by all."""
    return masks if masks is None or len(masks) == 1 else masks[rows]
