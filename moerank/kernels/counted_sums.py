"""Runs of labels, and sums by sorting: over the pairs within the margin, without a list, and for a density."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from moerank.arrays import Integers, Vector
from moerank.kernels.algebra import largest
from moerank.kernels.compiled import kernel, read_only

# Terms of the expansion around the middle of a cell one bandwidth wide: the rest is below 1e-15 of a sample's peak.
TERMS = 22

# Bandwidths beyond which a cell is ignored: exp(−9.5² / 2) is below 1e-19.
BANDWIDTHS_REACHED = 10.0


@dataclass(frozen=True, eq=False)
class LabelRuns:
    """The documents of each query by label. A run holds the documents of one label in one query.

    >>> runs = LabelRuns.of(np.array([2, 0, 1, 1]), np.array([0, 4]))
    >>> runs.n_pairs, runs.n_worse[runs.run].tolist()
    (5, [3, 0, 1, 1])
    >>> near = MarginPairs(runs, np.array([2.0, 0.5, 1.5, 0.0]))
    >>> near.n_pairs, near.n_worse.tolist(), near.n_better.tolist()
    (2, [1, 0, 0, 1], [0, 1, 1, 0])
    >>> float(near.loss)  # (1 − 2 + 1.5)² + (1 − 0 + 0.5)²
    2.5
    """

    offsets: Integers  # query q has the documents offsets[q] to offsets[q + 1]
    run: NDArray[
        np.int32
    ]  # of each document; runs are numbered by query, then by label, from the lowest
    row: NDArray[np.int32]  # documents by run, in their order within each
    begin: Integers  # run r has the documents row[begin[r]] to row[begin[r + 1]]
    query_begin: Integers  # query q has the runs query_begin[q] to query_begin[q + 1]
    n_worse: Integers  # documents of the query that are worse than those of a run
    n_better: Integers  # documents that are better
    n_pairs_of: Integers  # preference pairs of each query

    @classmethod
    def of(cls, y: Integers, offsets: Integers) -> Self:
        """Return the runs of documents with labels `y` and queries that begin at `offsets`; O(n log n) for n rows."""
        order = np.lexsort(
            (y, np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets)))
        )
        begins = np.append(True, np.diff(y[order]) != 0)
        begins[offsets[:-1]] = True
        run = np.empty(len(y), np.int32)
        run[order] = np.cumsum(begins, dtype=np.int32)
        run -= 1
        begin = np.append(np.flatnonzero(begins), len(y))
        query_begin = np.searchsorted(begin, offsets)
        n_runs = np.diff(query_begin)
        n_worse = begin[:-1] - np.repeat(offsets[:-1], n_runs)
        n_better = np.repeat(offsets[1:], n_runs) - begin[1:]
        n_pairs_of = np.add.reduceat(n_worse * np.diff(begin), query_begin[:-1])
        return cls(
            read_only(offsets),
            run,
            order.astype(np.int32),
            begin,
            query_begin,
            n_worse,
            n_better,
            n_pairs_of,
        )

    @property
    def n_pairs(self) -> int:
        """The number of preference pairs."""
        return int(self.n_pairs_of.sum())

    @cached_property
    def n_labels(self) -> Integers:
        """The number of different labels in each query."""
        return np.diff(self.query_begin)

    @cached_property
    def level(self) -> Integers:
        """The rank of the label of each document among those of its query, from 0."""
        return np.asarray(
            self.run - np.repeat(self.query_begin[:-1], np.diff(self.offsets)), np.int64
        )


class MarginPairs:
    """The pairs (i, j) with zᵢ − zⱼ < 1 under one score vector, which the hinge max(0, 1 − (zᵢ − zⱼ)) counts.

    `n_better` and `n_worse` (n_documents,) are the numbers of these pairs in which the document is the worse one, and
    the better one, so that Σ (xᵢ − xⱼ) = Xᵀ(n_worse − n_better).

    O(m log L) for each attribute and each `product`, for m documents with at most L different labels in a query:
    documents are visited in the order of their scores, and a Fenwick tree over the labels of the query holds the
    sums of the documents that the margin reaches.
    """

    def __init__(self, runs: LabelRuns, z: Vector) -> None:
        self._runs = runs
        # A constant that is added to the scores of a query changes the rounding only.
        self._order, self._reach, self._z = _sort_by_score(np.asarray(z, np.float64), runs.offsets)
        counts = self._sums(np.ones(len(z)))
        self.n_better, self.n_worse = (count.astype(np.int64) for count in counts)
        self.n_pairs = int(self.n_worse.sum())
        self._degree = counts[0] + counts[1]

    @cached_property
    def loss(self) -> float:
        """Σ max(0, 1 − (zᵢ − zⱼ))² over all preference pairs."""
        return float(
            self.n_worse @ (1.0 - self._z) + self._score_sums[1].sum() - self._z @ self._slack
        )

    @property
    def gradient(self) -> Vector:
        """The gradient of `loss` in z, shape (n_documents,)."""
        return -2.0 * self._slack

    def product(self, s: Vector) -> Vector:
        """Return the Hessian of `loss` in z, with the same pairs within the margin, times s (n_documents,).

        It is twice the graph Laplacian of the pairs: (Hs)ᵢ = 2 Σ (sᵢ − sⱼ) over the pairs of document i.
        """
        better, worse = self._sums(np.asarray(s, np.float64))
        return 2.0 * (self._degree * s - better - worse)

    @cached_property
    def _slack(self) -> Vector:
        """Σ (1 − (zᵢ − zⱼ)) over the pairs in which a document is the better one, less those in which it is worse."""
        better, worse = self._score_sums
        return (self.n_worse - self.n_better) - (self._degree * self._z - better - worse)

    @cached_property
    def _score_sums(self) -> tuple[Vector, Vector]:
        """The sums of the scores of the better, and of the worse, documents in the pairs of each document."""
        return self._sums(self._z)

    def _sums(self, values: Vector) -> tuple[Vector, Vector]:
        runs = self._runs
        return _sums_over_pairs(
            values, runs.level, runs.n_labels, runs.offsets, self._order, self._reach
        )


@kernel
def _sort_by_score(z: Vector, offsets: Integers) -> tuple[Integers, Integers, Vector]:
    """Sort the documents of every query by score, and find how far the margin reaches.

    Returns
    -------
    order : (n_documents,), the documents by query, then score
    reach : (n_documents, 2); with p the position of document i in `order`, the documents k with zᵢ − z_k < 1 are
        those from position reach[p, 0] of the query on, those with z_k − zᵢ < 1 the ones before position reach[p, 1]
    centred : (n_documents,), z less the score in the middle of its query
    """
    order = np.empty(len(z), np.int64)
    reach = np.empty((len(z), 2), np.int64)
    centred = np.empty(len(z))
    for q in range(len(offsets) - 1):
        begin, end = offsets[q], offsets[q + 1]
        ranking = np.argsort(z[begin:end])
        for p in range(begin, end):
            order[p] = begin + ranking[p - begin]
        middle = z[order[(begin + end) // 2]]
        low = high = begin
        # Both ends test the same difference, so that a pair counts for both of its documents or for neither.
        for p in range(begin, end):
            score = z[order[p]]
            while score - z[order[low]] >= 1.0:
                low += 1
            while high < end and z[order[high]] - score < 1.0:
                high += 1
            reach[p, 0], reach[p, 1] = low, high
            centred[order[p]] = score - middle
    return order, reach, centred


@kernel
def _sums_over_pairs(
    values: Vector,
    level: Integers,
    n_levels: Integers,
    offsets: Integers,
    order: Integers,
    reach: Integers,
) -> tuple[Vector, Vector]:
    """Sum the values of the better documents, and of the worse ones, of each document's pairs within the margin."""
    better, worse = np.zeros(len(values)), np.zeros(len(values))
    tree = np.empty(largest(n_levels) + 1)
    for q in range(len(offsets) - 1):
        n = n_levels[q]
        if n == 1:
            continue
        begin, end = offsets[q], offsets[q + 1]
        tree[: n + 1] = 0.0
        reached = begin
        for p in range(begin, end):
            while reached < reach[p, 1]:
                k = order[reached]
                add_at(tree, n, n - level[k], values[k])
                reached += 1
            better[order[p]] = sum_of_first(tree, n - level[order[p]] - 1)
        tree[: n + 1] = 0.0
        reached = end
        for p in range(end - 1, begin - 1, -1):
            while reached > reach[p, 0]:
                reached -= 1
                k = order[reached]
                add_at(tree, n, level[k] + 1, values[k])
            worse[order[p]] = sum_of_first(tree, level[order[p]])
    return better, worse


@kernel
def add_at(tree: Vector | Integers, n: int, position: int, value: float) -> None:
    """Add a value at one of the positions 1 … n of a Fenwick tree."""
    while position <= n:
        tree[position] += value
        position += position & -position


@kernel
def sum_of_first(tree: Vector | Integers, n: int) -> np.float64 | np.int64:
    """Sum the values at the positions 1 … n of a Fenwick tree."""
    total = tree.dtype.type(0)
    while n > 0:
        total += tree[n]
        n -= n & -n
    return total


def gaussian_density(samples: Vector, points: Vector, bandwidth: float) -> Vector:
    """Return the density (1 / M h) Σⱼ φ((x − xⱼ) / h) of M samples at each point x, φ the standard normal density.

    The bandwidth h is positive. Densities are not negative; the error is below 1e-14 of the peak of one sample,
    1 / (h √(2π)). O((n_samples + n_points) · TERMS) and a sort of the samples. With s = (xⱼ − g) / h, at most ½, the
    distance of a sample from the middle g of its cell and z = (x − g) / h,

        exp(−(z − s)² / 2) = exp(−z² / 2) Σₖ (sᵏ / k!) Heₖ(z)

    with the Hermite polynomials Heₖ: the samples of a cell are summed up once, whatever the number of points.
    """
    ordered = np.sort(samples) / bandwidth  # in NumPy, because a sort takes seconds to compile
    density: Vector = _density(ordered, points, bandwidth)
    return density


@kernel
def _density(ordered: Vector, points: Vector, bandwidth: float) -> Vector:
    density = np.zeros(len(points))
    moments = np.empty((len(ordered), TERMS))
    middles = np.empty(len(ordered))
    n_cells = begin = 0
    while begin < len(ordered):
        middle = ordered[begin] + 0.5
        moments[n_cells] = 0.0
        middles[n_cells] = middle
        end = begin
        while end < len(ordered) and ordered[end] <= middle + 0.5:
            term = 1.0
            for k in range(TERMS):
                moments[n_cells, k] += term
                term *= (ordered[end] - middle) / (k + 1)
            end += 1
        begin = end
        n_cells += 1
    middles = middles[:n_cells]
    scale = 1.0 / (len(ordered) * bandwidth * np.sqrt(2.0 * np.pi))
    for i in range(len(points)):
        x = points[i] / bandwidth
        begin_cell = np.searchsorted(middles, x - BANDWIDTHS_REACHED)
        end_cell = np.searchsorted(middles, x + BANDWIDTHS_REACHED)
        for cell in range(begin_cell, end_cell):
            z = x - middles[cell]
            previous, hermite, total = 0.0, 1.0, 0.0
            for k in range(TERMS):
                total += moments[cell, k] * hermite
                previous, hermite = hermite, z * hermite - k * previous
            density[i] += np.exp(-0.5 * z * z) * total
        density[i] = max(density[i], 0.0) * scale
    return density
