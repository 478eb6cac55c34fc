"""Preference pairs: which document should stand above which.

A preference pair (i, j) joins two documents of one query with yᵢ > yⱼ. The pairs of a data set have one fixed
order — by query, then better row, then worse row — and the columns of every ``pair_mask`` follow it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.preference_pairs import count_beaten, enumerate_pairs

__all__ = ["PreferencePairs"]


@dataclass(frozen=True, eq=False)
class PreferencePairs:
    """The preference pairs of a data set, grouped by their better document.

    Attributes
    ----------
    better, worse : ndarray of int32, shape (n_pairs,)
        Document rows of each pair: ``y[better] > y[worse]``, both in the same query.
    first : ndarray of int64, shape (n_winners + 1,)
        Where the pairs of each winner (each document that is better than some other) begin; the last entry is
        ``n_pairs``.
    winner : ndarray of int32, shape (n_winners,)
        The document row of each winner, increasing.
    """

    better: NDArray[np.int32]
    worse: NDArray[np.int32]
    first: NDArray[np.int64]
    winner: NDArray[np.int32]

    @classmethod
    def of(cls, y: NDArray[np.int64], offsets: NDArray[np.int64]) -> PreferencePairs:
        """Enumerate the pairs of documents with labels `y` in queries that begin at `offsets`: O(n_pairs)."""
        beaten = count_beaten(y, offsets)
        first = np.concatenate(([0], np.cumsum(beaten[beaten > 0]))).astype(np.int64)
        winner = np.flatnonzero(beaten).astype(np.int32)
        better, worse = enumerate_pairs(y, offsets, int(first[-1]))
        for array in (better, worse, first, winner):
            array.setflags(write=False)
        return cls(better, worse, first, winner)

    def __len__(self) -> int:
        return len(self.better)

    def subset(self, keep: NDArray[np.bool_]) -> PreferencePairs:
        """Return the pairs where `keep`, of shape (n_pairs,), is true, in the same order."""
        better, worse = self.better[keep], self.worse[keep]
        starts = np.flatnonzero(np.diff(better, prepend=-1))
        return PreferencePairs(better, worse, np.append(starts, len(better)), better[starts])
