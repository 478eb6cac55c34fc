"""Preference pairs: which document should stand above which.

A preference pair (i, j) joins two documents of one query with yᵢ > yⱼ. The pairs of a data set have one fixed
order — by query, then better row, then worse row — and the columns of every ``pair_mask`` follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Integers, Mask
from moerank.data.blocks import ByDocument
from moerank.kernels.pair_pass import enumerate_pairs

if TYPE_CHECKING:
    from moerank.data.ranking_data import RankingData
    from moerank.data.shards import AnyData


@dataclass(frozen=True, eq=False)
class LabelRuns:
    """The documents of each query by label. A run holds the documents of one label in one query."""

    run: NDArray[np.int32]  # of each document; runs count by query, then by label, the least first
    first: Integers  # query q has the runs first[q] to first[q + 1]
    n_worse: Integers  # documents of the query that are worse than those of a run
    n_better: Integers  # documents that are better
    n_pairs_of: Integers  # of each query

    @property
    def n_pairs(self) -> int:
        """Preference pairs of all queries."""
        return int(self.n_pairs_of.sum())

    def n_pairs_among(self, documents: Mask) -> int:
        """Count the preference pairs whose documents are both in `documents`, shape (n_documents,); O(n_documents)."""
        size = np.bincount(self.run[documents], minlength=len(self.n_worse))
        together = np.add.reduceat(size, self.first[:-1])
        return int((together @ together - size @ size) // 2)

    @classmethod
    def of(cls, y: Integers, offsets: Integers) -> LabelRuns:
        """Find the runs of documents with labels `y` in queries that begin at `offsets`; O(n log n) for n documents."""
        order = np.lexsort((y, np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))))
        begins = np.append(True, np.diff(y[order]) != 0)
        begins[offsets[:-1]] = True
        run = np.empty(len(y), np.int32)
        run[order] = np.cumsum(begins, dtype=np.int32)
        run -= 1
        begin = np.flatnonzero(begins)
        first = np.searchsorted(begin, offsets)
        size, n_runs = np.diff(begin, append=len(y)), np.diff(first)
        n_worse = begin - np.repeat(offsets[:-1], n_runs)
        n_better = np.repeat(offsets[1:], n_runs) - begin - size
        return cls(run, first, n_worse, n_better, np.add.reduceat(n_worse * size, first[:-1]))


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
    first: Integers
    winner: NDArray[np.int32]

    def __post_init__(self) -> None:
        for array in (self.better, self.worse, self.first, self.winner):
            array.setflags(write=False)  # all of them, or kernels would be compiled twice

    @classmethod
    def of(cls, y: Integers, offsets: Integers) -> PreferencePairs:
        """Enumerate the pairs of documents with labels `y` in queries that begin at `offsets`: O(n_pairs)."""
        runs = LabelRuns.of(y, offsets)
        beaten = runs.n_worse[runs.run]
        first = np.concatenate(([0], np.cumsum(beaten[beaten > 0]))).astype(np.int64)
        winner = np.flatnonzero(beaten).astype(np.int32)
        better, worse = enumerate_pairs(y, offsets, int(first[-1]))
        return cls(better, worse, first, winner)

    def __len__(self) -> int:
        return len(self.better)

    def subset(self, keep: Mask) -> PreferencePairs:
        """Return the pairs where `keep`, of shape (n_pairs,), is true, in the same order."""
        better, worse = self.better[keep], self.worse[keep]
        starts = np.flatnonzero(np.diff(better, prepend=-1))
        return PreferencePairs(better, worse, np.append(starts, len(better)), better[starts])


def n_pairs_of_queries(data: AnyData, masks: Mask) -> Integers:
    """Count the preference pairs of the queries that each row of `masks` (n, n_queries) keeps, shape (n,)."""
    of_query = data.remember("pairs of queries", lambda: np.concatenate(data.map(attrgetter("label_runs.n_pairs_of"))))
    return np.array([of_query[mask].sum() for mask in masks], np.int64)


def n_pairs_of_documents(data: AnyData, masks: Mask) -> Integers:
    """Count the preference pairs whose documents are both kept by each row of `masks` (n, n_documents), shape (n,)."""
    return data.total(_pairs_of_documents, ByDocument(masks))


def _pairs_of_documents(data: RankingData, masks: Mask) -> Integers:
    return np.array([data.label_runs.n_pairs_among(mask) for mask in masks], np.int64)
