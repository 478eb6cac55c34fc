"""Scores of a population of linear rankers, the same to the last bit wherever an individual or a document stands."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel
from moerank.kernels.pair_pass import project

__all__ = ["linear_scores"]


@kernel
def linear_scores(X: NDArray[np.float64], W: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores (n_documents, n_individuals) of the rankers in the rows of W (n_individuals, n_features).

    A score is summed in double precision in feature order. A product by a linear algebra library would give two
    identical documents different last bits, depending on their row and on the batch, and so break ties at random.
    Complexity: O(n_documents · n_individuals · k), k the number of features that any of 8 neighbours uses.
    """
    n_individuals = len(W)
    scores = np.empty((len(X), n_individuals))
    block = np.empty((len(X), 8))
    for start in range(0, n_individuals, 8):
        width = min(8, n_individuals - start)
        weights = np.zeros((W.shape[1], 8))
        weights[:, :width] = W[start : start + width].T
        used = np.flatnonzero((weights != 0).sum(axis=1))
        project(X, weights, used, block)
        scores[:, start : start + width] = block[:, :width]
    return scores
