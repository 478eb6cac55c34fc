"""Passes over preference pairs for the logistic loss; see `moerank.kernels.pair_pass` for how pairs are laid out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["logistic_pass", "weighted_curvature_pass"]

Vector = NDArray[np.float64]


@kernel
def logistic_pass(
    first: NDArray[np.int64],
    winner: NDArray[np.int32],
    worse: NDArray[np.int32],
    scores: Vector,
    residual: Vector,
    curvature: Vector,
) -> float:
    """Return Σ log(1 + exp(u)) over the pairs, u = sᵢ − sⱼ, and write its derivatives.

    `residual` (n_documents,) receives the gradient in the scores, σ(u) of each pair added to i and taken from j, and
    `curvature` (n_pairs,) the second derivative σ(u) (1 − σ(u)) of each pair.
    """
    residual[:] = 0.0
    loss = 0.0
    for w in range(len(winner)):
        i = winner[w]
        total = 0.0
        for k in range(first[w], first[w + 1]):
            j = worse[k]
            u = scores[i] - scores[j]
            tail = np.exp(-abs(u))
            loss += max(u, 0.0) + np.log1p(tail)
            probability = (1.0 if u > 0.0 else tail) / (1.0 + tail)
            curvature[k] = tail / (1.0 + tail) ** 2
            total += probability
            residual[j] -= probability
        residual[i] += total
    return loss


@kernel
def weighted_curvature_pass(
    first: NDArray[np.int64],
    winner: NDArray[np.int32],
    worse: NDArray[np.int32],
    curvature: Vector,
    scores: Vector,
    result: Vector,
) -> None:
    """Multiply by the weighted graph Laplacian: result[i] += c (sᵢ − sⱼ), result[j] −= the same, over the pairs."""
    result[:] = 0.0
    for w in range(len(winner)):
        i = winner[w]
        total = 0.0
        for k in range(first[w], first[w + 1]):
            j = worse[k]
            t = curvature[k] * (scores[i] - scores[j])
            total += t
            result[j] -= t
        result[i] += total
