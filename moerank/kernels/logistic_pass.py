"""One pass over the preference pairs for the logistic loss: value, gradient and Hessian."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["logistic_pass"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@kernel
def logistic_pass(
    first: NDArray[np.int64],
    winner: NDArray[np.int32],
    worse: NDArray[np.int32],
    y: Vector,
    z: Vector,
    X: Matrix,
    gradient: Vector,
    curvature: Matrix,
) -> float:
    """Return Σ log(1 + exp d) − t d over the pairs (i, j), with d = zᵢ − zⱼ and t = (1 + yᵢ − yⱼ) / 2.

    Parameters
    ----------
    first, winner, worse : the pairs, as in `PreferencePairs`
    y : (n_documents,), labels in [0, 1]
    z : (n_documents,), scores
    X : (n_documents, n_features)
    gradient : (n_documents,), written
        The gradient in z.
    curvature : (n_documents, n_features), written
        The Hessian in z, a graph Laplacian, times X.

    Notes
    -----
    O(n_pairs · n_features), vectorised over the features.
    """
    n_features = X.shape[1]
    gradient[:] = 0.0
    curvature[:] = 0.0
    degree = np.zeros(len(z))
    loss = 0.0
    for k in range(len(winner)):
        i = winner[k]
        for pair in range(first[k], first[k + 1]):
            j = worse[pair]
            d = z[i] - z[j]
            small = np.exp(-abs(d))
            p = (1.0 if d >= 0.0 else small) / (1.0 + small)
            t = 0.5 * (1.0 + y[i] - y[j])
            loss += np.log1p(small) + max(d, 0.0) - t * d
            gradient[i] += p - t
            gradient[j] -= p - t
            h = small / (1.0 + small) ** 2
            degree[i] += h
            degree[j] += h
            for f in range(n_features):
                curvature[i, f] -= h * X[j, f]
                curvature[j, f] -= h * X[i, f]
    for i in range(len(z)):
        for f in range(n_features):
            curvature[i, f] += degree[i] * X[i, f]
    return loss
