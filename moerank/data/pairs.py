"""Preference pairs: which document should stand above which.

A preference pair (i, j) joins two documents of one query with yᵢ > yⱼ. The pairs of a data set have one fixed
order — by query, then better row, then worse row — and the columns of every ``pair_mask`` follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.checks import check_room
from moerank.data.label_runs import LabelRuns
from moerank.kernels.preference_pairs import count_beaten, enumerate_pairs

__all__ = ["LabelledQueries", "PreferencePairs"]

BYTES_OF_A_PAIR = 32
"""Two rows, and what the solvers keep for a pair beside them."""


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

    def __post_init__(self) -> None:
        for array in (self.better, self.worse, self.first, self.winner):
            array.setflags(write=False)  # all of them, or kernels would be compiled twice

    @classmethod
    def of(cls, y: NDArray[np.int64], offsets: NDArray[np.int64]) -> PreferencePairs:
        """Enumerate the pairs of documents with labels `y` in queries that begin at `offsets`: O(n_pairs)."""
        beaten = count_beaten(y, offsets)
        first = np.concatenate(([0], np.cumsum(beaten[beaten > 0]))).astype(np.int64)
        winner = np.flatnonzero(beaten).astype(np.int32)
        better, worse = enumerate_pairs(y, offsets, int(first[-1]))
        return cls(better, worse, first, winner)

    def __len__(self) -> int:
        return len(self.better)

    def subset(self, keep: NDArray[np.bool_]) -> PreferencePairs:
        """Return the pairs where `keep`, of shape (n_pairs,), is true, in the same order."""
        better, worse = self.better[keep], self.worse[keep]
        starts = np.flatnonzero(np.diff(better, prepend=-1))
        return PreferencePairs(better, worse, np.append(starts, len(better)), better[starts])


class LabelledQueries:
    """Labels and queries, shared by data that differ in their features alone, so that what follows from them is, too.

    Parameters
    ----------
    y : ndarray of int64, shape (n_documents,)
    offsets : ndarray of int64, shape (n_queries + 1,)
        Where queries begin in the rows of y.
    """

    def __init__(self, y: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
        self.y, self.offsets = y, offsets

    @cached_property
    def pairs(self) -> PreferencePairs:
        """All preference pairs, listed: O(n_pairs).

        Raises
        ------
        ValueError
            If there are more than the limit on memory allows for them and for what is made of them.
        """
        n_pairs = self.label_runs.n_pairs
        check_room(
            f"a list of {n_pairs:,} preference pairs (which RankRLS, RankSVM and FSMRank do without)",
            BYTES_OF_A_PAIR * n_pairs,
        )
        return PreferencePairs.of(self.y, self.offsets)

    @cached_property
    def label_runs(self) -> LabelRuns:
        """The documents of each query by label."""
        return LabelRuns.of(self.y, self.offsets)

    def __getstate__(self) -> dict[str, Any]:
        return {"y": self.y, "offsets": self.offsets}
