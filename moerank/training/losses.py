"""Losses of preference pairs, and the targets that their slacks are measured from.

A pair problem is ½ ‖w‖² + (C / p) Σ ℓ(dₖ) over p pairs (i, j), with the slack dₖ = tₖ − wᵀ(xᵢ − xⱼ). A loss ℓ is an
object that solves the problem with all features. Compiled passes compute its sums for many individuals at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol

import numpy as np

from moerank.arrays import Matrix
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
class PairLoss(ABC):
    """A loss of the form ℓ(d) = d² on the pairs that are active at their slack d, and 0 on the others."""

    one_sided: ClassVar[bool]
    """Whether a pair is active only where d > 0."""

    @abstractmethod
    def solve(self, problem: SolvableProblem, C: float) -> QuadraticModel:
        """Solve the problem with all features, and return the model of its objective at the solution."""


class SquaredLoss(PairLoss):
    """ℓ(d) = d², the loss of RankRLS."""

    one_sided = False

    def solve(self, problem: SolvableProblem, C: float) -> QuadraticModel:
        """Solve the normal equations: the problem is its own model. O(n_features³) beside the Gram matrix."""
        B: Matrix = np.eye(len(problem.gram)) + 2.0 * C * problem.gram
        rhs = 2.0 * C * problem.moment
        return QuadraticModel(B, rhs, solve_positive_definite(B, rhs))


class SquaredHingeLoss(PairLoss):
    """ℓ(d) = max(0, d)², the loss of RankSVM."""

    one_sided = True

    def solve(self, problem: SolvableProblem, C: float) -> QuadraticModel:
        """Take Newton steps from the solution for the squared loss, to rounding: about eight."""
        start = SQUARED.solve(problem, C).w
        end = dense_newton(partial(problem.expand, C=C, loss=self), start, 2.0 * EXACT)
        return QuadraticModel.around(end.w, end.at)


SQUARED = SquaredLoss()
SQUARED_HINGE = SquaredHingeLoss()
