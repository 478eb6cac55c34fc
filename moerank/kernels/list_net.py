"""Gradient descent on ListNet's loss, one query a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["descend_by_query"]


@kernel
def descend_by_query(
    X: NDArray[np.float64],
    target: NDArray[np.float64],
    offsets: NDArray[np.int64],
    rate: float,
    n_epochs: int,
) -> NDArray[np.float64]:
    """Start at w = 0 and take the step w += rate · Σⱼ (target − softmax(Xw))ⱼ xⱼ for one query after the other.

    Parameters
    ----------
    X : ndarray, shape (n_documents, n_features)
    target : ndarray, shape (n_documents,)
        Sums to 1 in every query.
    offsets : ndarray of int64, shape (n_queries + 1,)
        Query q holds the rows ``offsets[q]`` to ``offsets[q + 1]``.
    rate : float
    n_epochs : int
        Passes over the queries, in the order of the rows.

    Returns
    -------
    ndarray, shape (n_epochs, n_features)
        The weights after every pass. O(n_documents · n_features) a pass.
    """
    n_features = X.shape[1]
    path = np.empty((n_epochs, n_features))
    w = np.zeros(n_features)
    share = np.empty(len(X))
    for epoch in range(n_epochs):
        for q in range(len(offsets) - 1):
            begin, end = offsets[q], offsets[q + 1]
            largest = -np.inf
            for i in range(begin, end):
                score = 0.0
                for f in range(n_features):
                    score += X[i, f] * w[f]
                share[i] = score
                largest = max(largest, score)
            total = 0.0
            for i in range(begin, end):
                share[i] = np.exp(share[i] - largest)
                total += share[i]
            for i in range(begin, end):
                step = rate * (target[i] - share[i] / total)
                for f in range(n_features):
                    w[f] += step * X[i, f]
        path[epoch] = w
    return path
