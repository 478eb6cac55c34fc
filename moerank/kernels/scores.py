"""Scores of a population of linear rankers, the same to the last bit wherever an individual or a document stands."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel
from moerank.kernels.pair_pass import project, used_features

__all__ = ["linear_scores"]

Matrix: TypeAlias = NDArray[np.float64]


def linear_scores(X: Matrix, W: Matrix, spans: NDArray[np.int64] | None = None) -> Matrix:
    """Return the scores (n_documents, n_individuals) of the rankers in the rows of W (n_individuals, n_features).

    A score is summed in double precision in feature order. A product by a linear algebra library would give two
    identical documents different last bits, depending on their row and on the batch, and so break ties at random.

    Parameters
    ----------
    X : ndarray of float64, shape (n_documents, n_features), C-contiguous
    W : ndarray of float64, shape (n_individuals, n_features)
    spans : ndarray of int64, shape (n_spans, 2), optional
        Begin and end of the rows that are wanted; the other documents score 0. None means all.

    Notes
    -----
    O(n_documents · n_individuals · k), k the number of features that any of 8 neighbours in W uses.
    """
    scores: Matrix = _span_scores(np.asarray(X, np.float64), W, np.array([[0, len(X)]]) if spans is None else spans)
    return scores


@kernel
def _span_scores(X: Matrix, W: Matrix, spans: NDArray[np.int64]) -> Matrix:
    n_individuals = len(W)
    scores = np.zeros((len(X), n_individuals))
    block = np.empty((len(X), 8))
    for start in range(0, n_individuals, 8):
        width = min(8, n_individuals - start)
        weights = np.zeros((W.shape[1], 8))
        weights[:, :width] = W[start : start + width].T
        used = used_features(weights)
        for s in range(len(spans)):
            begin, end = spans[s]
            project(X[begin:end], weights, used, block[begin:end])
            for i in range(begin, end):
                for lane in range(width):
                    scores[i, start + lane] = block[i, lane]
    return scores
