"""The losses of preference pairs, and the targets that their slacks are measured from.

A pair problem is ½ ‖w‖² + (C / p) Σ ℓ(dₖ) over p pairs (i, j), with the slack dₖ = tₖ − wᵀ(xᵢ − xⱼ). A loss ℓ is an
object that gives its value, residual and active set, knows how the problem with all features is solved, and says what
the compiled passes have to be told. They compute the same sums for many individuals at once, and for no other losses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol

import numpy as np

from moerank.arrays import Mask, Matrix
from moerank.training.newton import DenseExpansion, QuadraticModel, dense_newton, solve_positive_definite

__all__ = ["DIFFERENCE", "SQUARED", "SQUARED_HINGE", "UNIT", "PairLoss", "SquaredHingeLoss", "SquaredLoss", "Target"]


# What the Newton decrement promises of the relative error of the objective, where a problem is solved exactly.
EXACT = 1e-13


@dataclass(frozen=True)
class Target:
    """What the score difference of a pair (i, j) should be: t = margin + per_label · (yᵢ − yⱼ)."""

    margin: float
    per_label: float


UNIT = Target(margin=1.0, per_label=0.0)
"""The same margin for every pair."""
DIFFERENCE = Target(margin=0.0, per_label=1.0)
"""The difference of the labels."""


class SolvableProblem(Protocol):
    """What a loss has to know of the problem with all features; `PairProblem` is one."""

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
    """A loss of the form ℓ(d) = d² on the pairs that are active at their slack d, and 0 on the others.

    Attributes
    ----------
    one_sided : bool
        What the compiled passes are told: whether a pair is active only where d > 0.
    """

    one_sided: ClassVar[bool]

    @abstractmethod
    def active(self, d: Matrix) -> Mask:
        """Return which pairs lose anything when w is moved a little, elementwise."""

    def residual(self, d: Matrix) -> Matrix:
        """Return ½ ℓ′(d), elementwise: the gradient in w is −2 Σ residual · (xᵢ − xⱼ)."""
        return np.where(self.active(d), d, 0.0)

    def value(self, d: Matrix) -> Matrix:
        """Return ℓ(d), elementwise."""
        return self.residual(d) ** 2

    @abstractmethod
    def solve(self, problem: SolvableProblem, C: float) -> QuadraticModel:
        """Solve the problem with all features, and return the model of its objective at the solution."""


class SquaredLoss(PairLoss):
    """ℓ(d) = d², the loss of RankRLS.

    Examples
    --------
    >>> SQUARED.value(np.array([-1.0, 0.0, 2.0])).tolist()
    [1.0, 0.0, 4.0]
    """

    one_sided = False

    def active(self, d: Matrix) -> Mask:
        """Return that all pairs are active."""
        return np.ones(d.shape, np.bool_)

    def solve(self, problem: SolvableProblem, C: float) -> QuadraticModel:
        """Solve the normal equations: the problem is its own model. O(n_features³) beside the Gram matrix."""
        B: Matrix = np.eye(len(problem.gram)) + 2.0 * C * problem.gram
        rhs = 2.0 * C * problem.moment
        return QuadraticModel(B, rhs, solve_positive_definite(B, rhs))


class SquaredHingeLoss(PairLoss):
    """ℓ(d) = max(0, d)², the loss of RankSVM.

    Examples
    --------
    >>> SQUARED_HINGE.value(np.array([-1.0, 0.0, 2.0])).tolist()
    [0.0, 0.0, 4.0]
    """

    one_sided = True

    def active(self, d: Matrix) -> Mask:
        """Return which pairs have a positive slack."""
        return d > 0

    def solve(self, problem: SolvableProblem, C: float) -> QuadraticModel:
        """Take Newton steps from the solution for the squared loss, to rounding: about eight."""
        start = SQUARED.solve(problem, C).w
        end = dense_newton(partial(problem.expand, C=C, loss=self), start, 2.0 * EXACT)
        return QuadraticModel.around(end.w, end.at)


SQUARED = SquaredLoss()
SQUARED_HINGE = SquaredHingeLoss()
