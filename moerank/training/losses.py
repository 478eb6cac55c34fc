"""Losses of preference pairs, and the targets that their slacks are measured from.

A pair problem is ½ ‖w‖² + (C / p) Σ ℓ(dₖ) over p pairs (i, j), with the slack dₖ = tₖ − wᵀ(xᵢ − xⱼ). Compiled passes
compute the sums of a loss ℓ for many individuals at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from moerank.arrays import Matrix
from moerank.kernels.products import product
from moerank.training.newton import DenseExpansion, QuadraticModel, dense_newton, solve_positive_definite

# Relative error of the objective, as the Newton decrement bounds it, where a problem is solved exactly.
EXACT = 1e-13


@dataclass(frozen=True)
class Target:
    """The score difference that a pair (i, j) should have: t = margin + per_label · (yᵢ − yⱼ)."""

    margin: float
    per_label: float


UNIT = Target(margin=1.0, per_label=0.0)
"""The same margin for every pair."""
DIFFERENCE = Target(margin=0.0, per_label=1.0)
"""The difference of the labels."""


class SolvableProblem(Protocol):
    """A problem with all features that a loss can solve, such as `PairProblem`."""

    @property
    def gram(self) -> Matrix:
        """Mean of (xᵢ − xⱼ)(xᵢ − xⱼ)ᵀ over the pairs, shape (n_features, n_features)."""

    @property
    def moment(self) -> Matrix:
        """Mean of tₖ (xᵢ − xⱼ) over the pairs, shape (n_features,)."""

    def expand(self, w: Matrix, C: float, loss: PairLoss) -> DenseExpansion:
        """Return the objective at `w`."""


@dataclass(frozen=True)
class PairLoss:
    """A loss of the form ℓ(d) = d² on the pairs that are active at their slack d, and 0 on the others."""

    one_sided: bool
    """Whether a pair is active only where d > 0."""

    def solve(self, problem: SolvableProblem, C: float) -> QuadraticModel:
        """Solve the problem with all features, and return the model of its objective at the solution.

        With the squared loss the problem is its own model: normal equations, O(n_features³) beside the Gram matrix.
        From their solution about eight Newton steps lead to that of the squared hinge loss, to rounding.
        """
        B: Matrix = np.eye(len(problem.gram)) + 2.0 * C * problem.gram
        rhs = 2.0 * C * problem.moment
        squared = QuadraticModel(B, rhs, solve_positive_definite(B, rhs))
        if not self.one_sided:
            return squared
        end = dense_newton(partial(problem.expand, C=C, loss=self), squared.w, 2.0 * EXACT)
        hessian = end.at.hessian
        return QuadraticModel(hessian, product(hessian, end.w) - end.at.gradient, end.w)


SQUARED = PairLoss(one_sided=False)
"""ℓ(d) = d², the loss of RankRLS."""
SQUARED_HINGE = PairLoss(one_sided=True)
"""ℓ(d) = max(0, d)², the loss of RankSVM."""
