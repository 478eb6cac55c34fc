"""Gradient steps on the cross entropy of top-one probabilities, one query at a time (ListNet)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["descend", "top_one_probabilities"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]


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

    An epoch takes one step for each query, in order: w ← w − rate Σ (p − target) x over its documents.

    Parameters
    ----------
    X : (n_documents, n_features)
    target : (n_documents,), probabilities inside every query

    Returns
    -------
    W : (n_epochs, n_features), the weights after each epoch

    Notes
    -----
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
