"""Counting and listing preference pairs: documents of one query with different labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.compiled import kernel

__all__ = ["count_beaten", "enumerate_pairs"]


@kernel
def count_beaten(y: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many documents of its query each document is better than, shape (n_documents,); O(n_pairs)."""
    beaten = np.zeros(len(y), np.int64)
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], offsets[q + 1]):
                beaten[i] += y[i] > y[j]
    return beaten


@kernel
def enumerate_pairs(
    y: NDArray[np.int64], offsets: NDArray[np.int64], n_pairs: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return better and worse row of each of the `n_pairs` pairs, by query, then better row, then worse row."""
    better = np.empty(n_pairs, np.int32)
    worse = np.empty(n_pairs, np.int32)
    k = 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(offsets[q], offsets[q + 1]):
                if y[i] > y[j]:
                    better[k] = i
                    worse[k] = j
                    k += 1
    return better, worse
