"""Losses of preference pairs, the targets that their slacks are measured from, and penalties of sparse rankers.

A pair problem is ½ ‖w‖² + (C / p) Σ ℓ(dₖ) over p pairs (i, j), with the slack dₖ = tₖ − wᵀ(xᵢ − xⱼ). Compiled passes
compute the sums of a loss ℓ for many individuals at once.
"""

from dataclasses import dataclass
from typing import NamedTuple

from moerank.arrays import Matrix, Vector

# Relative error of the objective, bounded by the Newton decrement, of a problem that is solved exactly.
EXACT_TOLERANCE = 1e-13


@dataclass(frozen=True)
class Target:
    """The score difference that a pair (i, j) should have: t = margin + per_label · (yᵢ − yⱼ)."""

    margin: float
    per_label: float


# The same margin for every pair.
UNIT = Target(margin=1.0, per_label=0.0)
# The difference of the labels.
DIFFERENCE = Target(margin=0.0, per_label=1.0)


@dataclass(frozen=True)
class PairLoss:
    """A loss of the form ℓ(d) = d² on the pairs that are active at their slack d, and 0 on the others."""

    # Whether a pair is active only where d > 0.
    one_sided: bool


# ℓ(d) = d², the loss of RankRLS.
SQUARED = PairLoss(one_sided=False)
# ℓ(d) = max(0, d)², the loss of RankSVM.
SQUARED_HINGE = PairLoss(one_sided=True)


@dataclass(frozen=True, eq=False)
class PairModel:
    """½ wᵀBw − rhsᵀw, the second-order model of a pair problem with all features around its minimum `w`.

    Shapes: B (n_features, n_features) positive definite, rhs and w (n_features,).
    """

    loss: PairLoss
    C: float
    B: Matrix
    rhs: Matrix
    w: Matrix


class Penalties(NamedTuple):
    """Penalties that `moerank.kernels.proximal` adds to the loss of each of n_individuals individuals."""

    similarity: Matrix  # (n_features, n_features), A, the same for all; empty if every λ₁ is 0
    costs: Matrix  # (n_individuals, n_features), finite where the individual uses the feature
    lambda1: Vector
    lambda2: Vector
