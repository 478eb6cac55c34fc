"""Passes of single rankers: the logistic loss of preference pairs, and the cross entropy of ListNet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Integers, Matrix, Vector
from moerank.kernels.compiled import kernel


@kernel
def logistic_pass(
    first: Integers,
    winner: NDArray[np.int32],
    worse: NDArray[np.int32],
    y: Vector,
    z: Vector,
    X: Matrix,
    gradient: Vector,
    curvature: Matrix,
) -> float:
    """Return Σ log(1 + exp d) − t d over the pairs (i, j), with d = zᵢ − zⱼ and t = (1 + yᵢ − yⱼ) / 2.

    O(n_pairs · n_features), vectorised over the features.

    The pairs are those of `PreferencePairs`, y are labels in [0, 1] and z scores. `gradient` (n_documents,) receives
    the gradient in z, `curvature` (n_documents, n_features) the Hessian in z, a graph Laplacian, times X.
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


@kernel
def top_one_probabilities(z: Vector, offsets: Integers) -> Vector:
    """Return the softmax of the scores z (n_documents,) inside every query: how likely each document is to be first."""
    p = np.empty(len(z))
    for q in range(len(offsets) - 1):
        _softmax(z[offsets[q] : offsets[q + 1]], p[offsets[q] : offsets[q + 1]])
    return p


@kernel
def descend(X: Matrix, target: Vector, offsets: Integers, rate: float, n_epochs: int) -> Matrix:
    """Minimise the cross entropy −Σ target log p, p the top-one probabilities of Xw, from w = 0.

    An epoch takes one step for each query, in order: w ← w − rate Σ (p − target) x over its documents. `target` are
    probabilities inside every query. Return the weights after each epoch, shape (n_epochs, n_features).
    O(n_documents · n_features) an epoch.
    """
    n_features = X.shape[1]
    columns = X.T.copy()  # with documents innermost in the one product, features in the other, both are vectorised
    W = np.empty((n_epochs, n_features))
    w = np.zeros(n_features)
    gradient = np.empty(n_features)
    z, p = np.empty(len(X)), np.empty(len(X))
    for epoch in range(n_epochs):
        for q in range(len(offsets) - 1):
            begin, end = offsets[q], offsets[q + 1]
            z[begin:end] = 0.0
            for f in range(n_features):
                for i in range(begin, end):
                    z[i] += columns[f, i] * w[f]
            _softmax(z[begin:end], p[begin:end])
            gradient[:] = 0.0
            for i in range(begin, end):
                error = p[i] - target[i]
                for f in range(n_features):
                    gradient[f] += error * X[i, f]
            for f in range(n_features):
                w[f] -= rate * gradient[f]
        W[epoch] = w
    return W


@kernel
def _softmax(z: Vector, p: Vector) -> None:
    largest = z.max()
    total = 0.0
    for i in range(len(z)):
        p[i] = np.exp(z[i] - largest)
        total += p[i]
    for i in range(len(z)):
        p[i] /= total
