"""Bins of features between their thresholds, and moments of the differences of step functions over pairs.

Moments come from counts of bins. With one column for each bin of a feature, which is 1 for the documents in the bin,
the square of the columns z is

    Σ ω (zᵢ − zⱼ)(zᵢ − zⱼ)ᵀ = Σ_i d_i zᵢ zᵢᵀ + Σ_q v_q [Σ_l s_l s_lᵀ − s s ᵀ],

with d the weight of the pairs of each document, s_l the sums of a label in its query and s the sums of the query. The
first sum counts how often two bins meet in a document. Sums of the bins above a threshold are those of the columns
φ = [x > threshold]. No sum has a rounding error if the weights are integers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, repeat
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from moerank.arrays import Floats, Integers, Mask, Matrix, Vector
from moerank.checks import check_room, memory_limit
from moerank.data import UNSCALED, FittedScaling, RankingData, Scaling
from moerank.kernels.algebra import VECTOR_WIDTH
from moerank.kernels.step_tables import Codes, add_counts, add_to_groups, subtract_squares
from moerank.training.masks import Masks
from moerank.training.pair_moments import PairMoments

# Largest number of thresholds of a feature, because the number of a bin takes one byte.
MOST_BINS = 255


def thresholds(column: ArrayLike, n_bins: int, single: ArrayLike | None = None) -> Vector:
    """Return at most `n_bins` thresholds of a feature, increasing; a value equal to a threshold is below it.

    Each lies in the middle between two neighbouring distinct values: at about equal counts, or between all values if
    there are at most n_bins + 1. No value crosses a threshold when either of them is rounded to single precision, as
    many serving engines do. There is no threshold between values that are equal in single precision.

    Parameters
    ----------
    column : array-like, shape (n_documents,)
        Finite values.
    n_bins : int
        At least 1.
    single : array-like, shape (n_documents,), optional
        The values of a scaled column in single precision, see `in_single`; by default, it is a raw one.

    Notes
    -----
    O(n_documents · log(n_documents)).

    Examples
    --------
    >>> thresholds([0.0, 2.0, 1.0, 1.0], 4).tolist()
    [0.5, 1.5]
    >>> thresholds(range(100), 3).tolist()
    [24.5, 49.5, 74.5]
    """
    ordered = np.sort(np.asarray(column))
    single = in_single(ordered, UNSCALED) if single is None else np.sort(single)
    is_last = np.append((ordered[1:] != ordered[:-1]) & (single[1:] != single[:-1]), False)
    last = np.flatnonzero(is_last)  # of the documents on the left of each possible threshold
    if len(last) > n_bins:
        wanted = (
            np.ceil(len(ordered) * np.arange(1, n_bins + 1) / (n_bins + 1)).astype(np.int64) - 1
        )
        position = np.unique(np.searchsorted(last, wanted))
        last = last[position[position < len(last)]]
    rows = np.stack([last, last + 1])
    return between(ordered[rows], single[rows])


def between(values: Floats, single: Floats) -> Vector:
    """Return the middles of pairs, shape (2, n), of values that differ in single precision: neither crosses it there.

    The middle is a number of single precision where one is there, so that it stays the same when it is rounded.
    """
    low, high = (
        np.maximum(values[0], single[0], dtype=np.float64),
        np.minimum(values[1], single[1], dtype=np.float64),
    )
    middle = low + (high - low) / 2
    rounded = middle.astype(np.float32).astype(np.float64)
    return np.where((low <= rounded) & (rounded < high), rounded, middle)


def in_single(X: Floats, scaling: Scaling) -> Floats:
    """Return values as engines have them, which keep raw ones in single precision and scale these."""
    if isinstance(scaling, FittedScaling):
        offset, scale = np.array(scaling.offset), np.array(scaling.scale)
        return (in_single(X * scale + offset, UNSCALED) - offset) / scale
    largest = np.finfo(np.float32).max
    return X if X.dtype == np.float32 else np.clip(X, -largest, largest).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of the features of a data set: the bin of a value is the number of thresholds below it."""

    thresholds: tuple[Vector, ...]  # of each feature

    @classmethod
    def of(cls, data: RankingData, n_bins: int) -> Self:
        """Return bins with at most `n_bins` thresholds per feature, remembered with the data."""
        return data.remember(
            ("bins", n_bins),
            lambda: cls(
                tuple(map(thresholds, data.X.T, repeat(n_bins), in_single(data.X, data.scaling).T))
            ),
        )

    @cached_property
    def first(self) -> Integers:
        """Where the bins of each feature begin among all cells, shape (n_features + 1,)."""
        return np.cumsum([0, *(len(each) + 1 for each in self.thresholds)], dtype=np.int64)

    @cached_property
    def first_step(self) -> Integers:
        """Where the thresholds of each feature begin among all thresholds, shape (n_features + 1,)."""
        return self.first - np.arange(len(self.first))

    @property
    def moments_fit(self) -> bool:
        """Whether the moments of all steps fit the limit on memory."""
        return SQUARE_TABLES * 8 * int(self.first[-1]) ** 2 <= memory_limit()

    @cached_property
    def is_step(self) -> Mask:
        """The cells above a threshold, shape (n_cells,): all but the lowest of each feature."""
        mask = np.ones(self.first[-1], np.bool_)
        mask[self.first[:-1]] = False
        return mask

    def codes(self, data: RankingData) -> Codes:
        """Return the bin of each value (n_features, n_documents), remembered with the data."""
        return data.remember(("bin codes", self), lambda: self.codes_of(data.X))

    def codes_of(self, X: Floats) -> Codes:
        """Return the bin of each value of a table (n_documents, n_features): shape (n_features, n_documents)."""
        codes = np.empty((len(self.thresholds), len(X)), np.uint8)
        for feature, cuts in enumerate(self.thresholds):
            codes[feature] = np.searchsorted(cuts, X[:, feature], side="left")
        return codes


# Approximate number of documents in a block.
STEP_BLOCK = 1024

# Tables of all bins by all bins that are in memory at once for a system of all features.
SQUARE_TABLES = 3

# Returns, for some documents, entries (document, group, weight), and the factor of the square of each group.
Groups: TypeAlias = Callable[[Integers], tuple[Integers, Integers, Vector, Vector]]

# Approximate number of groups squared at once, so large that the product takes most of the time.
GROUPS_AT_ONCE = 1024


def step_moments(data: RankingData, bins: Bins, masks: Masks) -> PairMoments:
    """Return the moments of the columns φ = [x > threshold], feature by feature, remembered with the data.

    They are those of the pairs that all individuals share. O(n_documents · n_features² + n_runs · n_steps²) for n_runs
    labels of all queries. Besides the bins only a block of documents is in memory.
    """

    def compute() -> PairMoments:
        n_cells = int(bins.first[-1])
        check_room(
            f"{n_cells:,} bins of {data.n_features:,} features, {SQUARE_TABLES} tables of {n_cells:,} × {n_cells:,},",
            SQUARE_TABLES * 8 * n_cells**2,
        )
        codes = bins.codes(data)
        degree, excess, gaps, n_pairs, groups = _sums(data, masks)
        width = -(-n_cells // VECTOR_WIDTH) * VECTOR_WIDTH
        total, unit, difference = np.zeros((width, width)), *np.zeros((2, n_cells))
        waiting: list[tuple[Matrix, Vector]] = []  # sums of groups, and their factors
        for begin, end in data.query_blocks(STEP_BLOCK):
            rows = np.arange(data.offsets[begin], data.offsets[end])
            rows = rows[degree[rows] != 0]
            cells = np.ascontiguousarray((codes[:, rows].T + bins.first[:-1]).astype(np.int32))
            add_counts(cells, degree[rows], total)
            for moment, weight in ((unit, excess), (difference, gaps)):
                moment += np.bincount(
                    cells.ravel(), np.repeat(weight[rows], cells.shape[1]), n_cells
                )
            document, group, weight, factor = groups(rows)
            waiting.append((np.zeros((len(factor), width)), factor))
            add_to_groups(cells, np.searchsorted(rows, document), group, weight, waiting[-1][0])
            if end == data.n_queries or sum(len(factor) for _, factor in waiting) >= GROUPS_AT_ONCE:
                of_groups, factors = map(np.concatenate, zip(*waiting, strict=True))
                waiting.clear()
                subtract_squares(of_groups, -factors, total)
        for cell in range(n_cells):  # in place, because a copy can be as large as the data
            total[cell + 1 :, cell] = total[cell, cell + 1 :]
        for values in (total, total.T, unit, difference):
            for i, j in pairwise(bins.first):  # add to each cell those above it of the same feature
                np.cumsum(values[i:j][::-1], axis=0, out=values[i:j][::-1])
        steps = np.flatnonzero(bins.is_step)
        gram = total[np.ix_(steps, steps)]
        gram /= n_pairs
        return PairMoments(gram, unit[steps] / n_pairs, difference[steps] / n_pairs)

    return data.remember(("step moments", bins, masks.of_all), compute)


def _sums(data: RankingData, masks: Masks) -> tuple[Vector, Vector, Vector, float, Groups]:
    """Return the weights of documents in sums over all pairs among the documents, or queries, of the masks.

    They are those in the sums of ω, of ω by side of the pair, and of ω (yᵢ − yⱼ) by side; then the number of pairs.
    """
    u = np.ones(data.n_documents) if data.document_weights is None else data.document_weights
    v = np.ones(data.n_queries) if data.query_weights is None else data.query_weights
    documents, queries = masks.of_unit("document"), masks.of_unit("query")
    u = u if documents is None else u * documents[0]
    v = v if queries is None else v * queries[0]
    runs = data.label_runs
    begin, query = runs.first[:-1], np.repeat(np.arange(data.n_queries), np.diff(runs.first))
    size, label = np.bincount(runs.run, u, len(query)), np.empty(len(query))
    label[runs.run] = data.y
    worse = np.cumsum(size) - size
    worse -= worse[begin][query]
    of_query, labels = (np.add.reduceat(values, begin)[query] for values in (size, size * label))
    of_run = v[query] * np.array(
        [of_query - size, 2 * worse + size - of_query, label * of_query - labels]
    )

    def groups(rows: Integers) -> tuple[Integers, Integers, Vector, Vector]:
        run, of_rows = np.unique(runs.run[rows], return_inverse=True)
        asked, of_runs = np.unique(query[run], return_inverse=True)
        group = np.concatenate([of_rows, len(run) + of_runs[of_rows]])
        return (
            np.tile(rows, 2),
            group,
            np.tile(u[rows], 2),
            np.concatenate([v[query[run]], -v[asked]]),
        )

    degree, excess, difference = of_run[:, runs.run] * u
    return degree, excess, difference, float(v[query] @ (size * worse)), groups
