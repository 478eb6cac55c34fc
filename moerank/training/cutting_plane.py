"""Cutting planes for regularised risks: the structural support vector machine (Joachims et al., 2009)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from moerank.arrays import Matrix
from moerank.kernels.algebra import product, square
from moerank.training.smooth import solve_positive_definite

Separation: TypeAlias = Callable[[Matrix], tuple[Matrix, float]]

# The slack of a plane is the difference of numbers up to the largest b, summed over documents.
SLACK_ROUNDING = 1e-12
# Failures of the planes' weights to settle, in a row, after which rounding is held to be the reason.
UNSETTLED_TRIES = 10
# Keeps a step finite where all planes have the same slope, as with features that are next to 0.
LEAST_RIDGE = 1e-200


class CuttingPlanes:
    """Minimises ½ ‖w‖² + C R(w) for a convex risk R(w) = max over constraints (a, b) of b − aᵀw, never negative.

    This is the structural support vector machine with one slack variable: ξ = R(w) at the minimum. The planes found
    stay for the next C, as they bound the same risk. `separate` takes w (n_features,) and returns the most violated
    constraint: a (n_features,) and b with R(w) = b − aᵀw. After `minimise`, `gap_` bounds the distance of the objective
    from the minimum, `n_iter_` counts the separations, and `converged_` says whether the tolerance was reached.

    The dual of the problem with K planes is a quadratic programme over their weights λ ≥ 0, Σ λ = 1, with w = C Aᵀλ.
    `_minimise_on_planes` solves it by an active set: at most n_features + 1 planes have a weight, and a new plane
    changes few of them. Each step is O(K · n_features + n_features³).

    T. Joachims, T. Finley, C.-N. Yu: Cutting-plane training of structural SVMs. Machine Learning 77, 2009.

    >>> absolute = lambda w: (np.sign(1.0 - w), np.sign(1.0 - w[0]))  # R(w) = |1 − w|
    >>> planes = CuttingPlanes(absolute, n_features=1)
    >>> planes.minimise(C=0.25, eps=1e-9, max_iter=100).round(6).tolist()
    [0.25]
    """

    def __init__(self, separate: Separation, n_features: int) -> None:
        self.separate = separate
        self._A = np.zeros((1, n_features))  # the plane 0 says that R is never negative
        self._b = np.zeros(1)
        self._weights = np.ones(1)

    def minimise(self, C: float, eps: float, max_iter: int) -> Matrix:
        """Return w (n_features,) whose objective exceeds the minimum by at most C · eps.

        Ends when no constraint is violated by more than `eps`, which is raised to what rounding allows; after
        `max_iter` separations; or when the problem on the planes found so far could not be solved to the necessary
        precision ten times in a row. `gap_` then bounds the error of the best w seen.
        """
        best, best_value, lower = np.zeros(self._A.shape[1]), np.inf, -np.inf
        self.n_iter_, n_failed = 0, 0
        self.converged_ = False
        while self.n_iter_ < max_iter and n_failed < UNSETTLED_TRIES:
            w, xi, settled = self._minimise_on_planes(C, 1e-3 * eps)
            n_failed = 0 if settled else n_failed + 1
            a, b = self.separate(w)
            self.n_iter_ += 1
            regularised = 0.5 * float(product(w, w))
            value = regularised + C * float(b - product(a, w))
            lower = max(lower, regularised + C * xi)
            if value < best_value:
                best, best_value = w, value
            if best_value - lower <= C * max(eps, SLACK_ROUNDING * float(np.abs(self._b).max())):
                self.converged_ = True
                break
            self._A = np.vstack([self._A, a])
            self._b = np.append(self._b, b)
            self._weights = np.append(self._weights, 0.0)
        self.gap_ = best_value - lower
        return best

    def _minimise_on_planes(self, C: float, tolerance: float) -> tuple[Matrix, float, bool]:
        """Return w for the planes so far, its ξ (the dual of the objective is ½ ‖w‖² + C ξ), and whether it settled.

        It settles when all planes agree on ξ up to the tolerance, and planes with a weight to half of it.
        """
        A, b, weights = self._A, self._b, self._weights
        active = np.flatnonzero(weights)
        tolerance = max(tolerance, 0.1 * SLACK_ROUNDING * float(np.abs(b).max()))
        for _ in range(100 + 10 * len(b)):
            w = C * product(A[active].T, weights[active])
            slack = b - product(A, w)
            xi = float(product(weights[active], slack[active]))
            worst = int(slack.argmax())
            if slack[worst] - xi <= tolerance:
                return w, xi, True
            if np.ptp(slack[active]) <= 0.5 * tolerance:
                active = np.append(active, worst)
            step = _equalising_step(A[active], slack[active], C, int(weights[active].argmax()))
            if not np.isfinite(step).all():
                break
            shrinking = np.flatnonzero(step < 0)
            lengths = -weights[active[shrinking]] / step[shrinking]
            blocked = bool(len(lengths)) and lengths.min() <= 1.0
            weights[active] += (lengths.min() if blocked else 1.0) * step
            if blocked:
                weights[active[shrinking[lengths.argmin()]]] = 0.0
                active = active[weights[active] > 0]
            weights[active] /= weights[active].sum()
        return w, xi, False


def _equalising_step(A: Matrix, slack: Matrix, C: float, anchor: int) -> Matrix:
    """Return the change of the planes' weights, with sum 0, after which all of them have the same slack."""
    D = np.delete(A - A[anchor], anchor, axis=0)
    M = C * square(D)
    # The ridge gives the step a direction where planes depend on each other.
    M[np.diag_indices_from(M)] += 1e-13 * np.trace(M) + LEAST_RIDGE
    step = solve_positive_definite(M, np.delete(slack - slack[anchor], anchor))
    return np.insert(step, anchor, -step.sum())
