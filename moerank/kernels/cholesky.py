"""Small positive definite systems restricted to feature subsets, one subset an individual."""

from __future__ import annotations

import numpy as np

from moerank.arrays import Integers, Mask, Matrix, Vector
from moerank.kernels.compiled import kernel

# Share of a diagonal entry that replaces a pivot lost in rounding, as with two equal features of large scale.
LEAST_PIVOT = 1e-15


@kernel
def dot(a: Vector, b: Vector) -> float:
    """Return Σ aᵢ bᵢ, summed in order."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@kernel
def factorise(B: Matrix, feature_mask: Mask) -> Matrix:
    """Return the Cholesky factors (lanes, n_features, n_features) of B on each row of the mask, packed top left.

    Equal neighbouring rows share the work. Complexity: O(k³ / 3) for a row with k features.
    """
    lanes, n_features = feature_mask.shape
    factors = np.zeros((lanes, n_features, n_features))
    for lane in range(lanes):
        same = lane > 0
        for f in range(n_features):
            same = same and feature_mask[lane, f] == feature_mask[lane - 1, f]
        if same:
            for i in range(n_features):
                for j in range(i + 1):
                    factors[lane, i, j] = factors[lane - 1, i, j]
        else:
            _factor_one(B, np.flatnonzero(feature_mask[lane]), factors[lane])
    return factors


@kernel
def _factor_one(B: Matrix, chosen: Integers, L: Matrix) -> None:
    for i in range(len(chosen)):
        for j in range(i + 1):
            total = B[chosen[i], chosen[j]]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j and total <= 0.0:  # lost in rounding
                total = LEAST_PIVOT * B[chosen[i], chosen[i]]
            L[i, j] = np.sqrt(total) if i == j else total / L[j, j]


@kernel
def solve(L: Matrix, chosen: Mask, b: Vector, x: Vector) -> None:
    """Solve B x = b on the chosen features, given the factor of B there; x is set to 0 elsewhere. O(k²)."""
    index = np.flatnonzero(chosen)
    x[:] = 0.0
    for i in range(len(index)):
        total = b[index[i]]
        for k in range(i):
            total -= L[i, k] * x[index[k]]
        x[index[i]] = total / L[i, i]
    for i in range(len(index) - 1, -1, -1):
        total = x[index[i]]
        for k in range(i + 1, len(index)):
            total -= L[k, i] * x[index[k]]
        x[index[i]] = total / L[i, i]


@kernel
def ridge_subsets(B: Matrix, rhs: Vector, feature_mask: Mask) -> Matrix:
    """Return the solutions W (n_individuals, n_features) of B w = rhs on each feature subset, 0 off it.

    O(n_individuals · k³ / 3).
    """
    W = np.zeros(feature_mask.shape)
    L = np.empty(B.shape)
    for row in range(len(feature_mask)):
        _factor_one(B, np.flatnonzero(feature_mask[row]), L)
        solve(L, feature_mask[row], rhs, W[row])
    return W
