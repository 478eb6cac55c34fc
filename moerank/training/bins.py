"""Bins of features between their thresholds, and moments of the differences of step functions over pairs.

Moments come from counts of bins. With one column for each bin of a feature, which is 1 for the documents in the bin,
the square of the columns z is

    Σ ω (zᵢ − zⱼ)(zᵢ − zⱼ)ᵀ = Σ_i d_i zᵢ zᵢᵀ + Σ_q v_q [Σ_l s_l s_lᵀ − s s ᵀ],

with d the weight of the pairs of each document, s_l the sums of a label in its query and s the sums of the query. The
first sum counts how often two bins meet in a document. Sums of the bins above a threshold are those of the columns
φ = [x > threshold]. No sum has a rounding error if the weights are integers.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, repeat
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from moerank.arrays import Floats, Integers, Mask, Matrix, Vector
from moerank.checks import check_room, memory_limit
from moerank.data import UNSCALED, FittedScaling, RankingData, Scaling, remembered
from moerank.kernels.algebra import VECTOR_WIDTH
from moerank.kernels.step_tables import Codes, add_counts, subtract_squares
from moerank.training.masks import Masks
from moerank.training.pair_moments import PairMoments, weights_of_runs, weights_or_ones

# Maximum number of thresholds of a feature, because a bin takes one byte.
MAX_BINS = 255


def thresholds(column: ArrayLike, n_bins: int, single_values: ArrayLike | None = None) -> Vector:
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
    single_values : array-like, shape (n_documents,), optional
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
    single_values = (
        in_single(ordered, UNSCALED) if single_values is None else np.sort(single_values)
    )
    low, high = np.maximum(ordered, single_values), np.minimum(ordered, single_values)
    candidates = np.flatnonzero(low[:-1] < high[1:])  # documents on the left of a threshold
    if len(candidates) > n_bins:
        targets = (
            np.ceil(len(ordered) * np.arange(1, n_bins + 1) / (n_bins + 1)).astype(np.int64) - 1
        )
        position = np.unique(np.searchsorted(candidates, targets))
        candidates = candidates[position[position < len(candidates)]]
    rows = np.stack([candidates, candidates + 1])
    return middles(ordered[rows], single_values[rows])


def middles(values: Floats, single_values: Floats) -> Vector:
    """Return the middle of each pair of values, shape (2, n); it separates them in single precision, too.

    The values differ in single precision. The middle is a number of single precision where one is between them, so that
    rounding does not change it. Where none is, all numbers that round to the lower value are at most the middle, and
    those that round to the upper one are above it: values keep their side in whichever precision they come.
    """
    low = np.maximum(values[0], single_values[0], dtype=float)
    high = np.minimum(values[1], single_values[1], dtype=float)
    middle = low + (high - low) / 2
    rounded = middle.astype(np.float32).astype(float)
    is_above = np.maximum(middle, rounded) >= high
    middle = np.where(is_above, np.nextafter(middle, low), middle)
    return np.where((low < rounded) & (rounded < high), rounded, middle)


def in_single(X: Floats, scaling: Scaling) -> Floats:
    """Return the values that engines see: they keep raw values in single precision and scale these."""
    if isinstance(scaling, FittedScaling):
        offset, scale = np.array(scaling.offset), np.array(scaling.scale)
        return (in_single(X * scale + offset, UNSCALED) - offset) / scale
    largest = np.finfo(np.float32).max
    return X if X.dtype == np.float32 else np.clip(X, -largest, largest).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of the features of a data set; the bin of a value is the number of thresholds below it."""

    thresholds: tuple[Vector, ...]  # of each feature

    @classmethod
    @remembered
    def of(cls, data: RankingData, n_bins: int) -> "Bins":
        """Return bins with at most `n_bins` thresholds per feature, remembered with the data."""
        single_values = in_single(data.X, data.scaling)
        return cls(tuple(map(thresholds, data.X.T, repeat(n_bins), single_values.T)))

    @cached_property
    def first(self) -> Integers:
        """Where the bins of each feature begin among all cells, shape (n_features + 1,)."""
        return np.cumsum([0, *(len(cuts) + 1 for cuts in self.thresholds)], dtype=np.int64)

    @cached_property
    def first_step(self) -> Integers:
        """Where the thresholds of each feature begin among all thresholds, shape (n_features + 1,)."""
        return self.first - np.arange(len(self.first))

    @property
    def moments_fit(self) -> bool:
        """True if the moments of all steps fit the memory limit."""
        return SQUARE_TABLES * 8 * int(self.first[-1]) ** 2 <= memory_limit()

    @cached_property
    def is_step(self) -> Mask:
        """The cells above a threshold, shape (n_cells,): all but the lowest of each feature."""
        mask = np.ones(self.first[-1], bool)
        mask[self.first[:-1]] = False
        return mask

    @remembered
    def codes(self, data: RankingData) -> Codes:
        """Return the bin of each value (n_features, n_documents), remembered with the data."""
        return self.codes_of(data.X)

    def codes_of(self, X: Floats) -> Codes:
        """Return the bin of each value of a table (n_documents, n_features): shape (n_features, n_documents)."""
        codes = np.empty((len(self.thresholds), len(X)), np.uint8)
        for feature, cuts in enumerate(self.thresholds):
            codes[feature] = np.searchsorted(cuts, X[:, feature], side="left")
        return codes


# Approximate number of documents in a block.
STEP_BLOCK = 1024

# Number of tables of all bins by all bins that a system of all features needs at once.
SQUARE_TABLES = 3

# Approximate number of groups squared at once, so large that the product takes most of the time.
GROUPS_AT_ONCE = 1024


def step_moments(data: RankingData, bins: Bins, masks: Masks) -> PairMoments:
    """Return the moments of the columns φ = [x > threshold], feature by feature, remembered with the data.

    They are those of the pairs that all individuals share. O(n_documents · n_features² + n_runs · n_steps²) for n_runs
    labels of all queries. Besides the bins only a block of documents is in memory.
    """
    return data.remember(
        ("step moments", bins, masks.shared_key), lambda: _step_moments(data, bins, masks)
    )


def _step_moments(data: RankingData, bins: Bins, masks: Masks) -> PairMoments:
    n_cells = int(bins.first[-1])
    check_room(
        f"{n_cells:,} bins of {data.n_features:,} features, "
        f"{SQUARE_TABLES} tables of {n_cells:,} × {n_cells:,},",
        SQUARE_TABLES * 8 * n_cells**2,
    )
    weights = _PairWeights.of(data, masks)
    total, unit, difference = _cell_sums(data, bins, weights)
    for values in (total, total.T, unit, difference):
        for begin, end in pairwise(bins.first):  # add to each cell those above it of the feature
            cells = values[begin:end][::-1]
            np.cumsum(cells, axis=0, out=cells)
    steps = np.flatnonzero(bins.is_step)
    gram = total[np.ix_(steps, steps)]
    gram /= weights.n_pairs
    return PairMoments(gram, unit[steps] / weights.n_pairs, difference[steps] / weights.n_pairs)


@dataclass(frozen=True, eq=False)
class _PairWeights:
    """The weights of documents in sums over the pairs that all individuals share."""

    document: Vector  # (n_documents,)
    query: Vector  # (n_queries,)
    run: NDArray[np.int32]  # (n_documents,)
    query_of_run: Integers  # (n_runs,)
    degree: Vector  # (n_documents,), the weight of the pairs of a document
    excess: Vector  # (n_documents,), of those in which it is the better one, less the others
    difference: Vector  # (n_documents,), the same times the difference of the labels
    n_pairs: float

    @classmethod
    def of(cls, data: RankingData, masks: Masks) -> Self:
        """Return the weights for the pairs among the documents, or the queries, of the masks."""
        document, query = weights_or_ones(data)
        document_mask, query_mask = masks.of_unit("document"), masks.of_unit("query")
        if document_mask is not None:
            document = document * document_mask[0]
        if query_mask is not None:
            query = query * query_mask[0]
        runs = data.label_runs
        begin, query_of_run = runs.query_begin[:-1], np.repeat(np.arange(len(query)), runs.n_labels)
        size, worse, query_size = weights_of_runs(runs.run, document, begin, query_of_run)
        label = np.empty(len(size))
        label[runs.run] = data.y
        label_sum = np.add.reduceat(size * label, begin)[query_of_run]
        factor = query[query_of_run]
        degree = factor * (query_size - size)
        excess = factor * (2 * worse + size - query_size)
        difference = factor * (label * query_size - label_sum)
        return cls(
            document,
            query,
            runs.run,
            query_of_run,
            degree[runs.run] * document,
            excess[runs.run] * document,
            difference[runs.run] * document,
            float(factor @ (size * worse)),
        )

    def groups(self, rows: Integers) -> tuple[Integers, Vector, Vector]:
        """Return the runs and queries of some documents as groups, whose squares are sums over pairs.

        The first two arrays have the group and the weight of each document in its run, and then in its query; the
        third one has the factor of the square of each group.
        """
        run, run_group = np.unique(self.run[rows], return_inverse=True)
        query, query_group = np.unique(self.query_of_run[run], return_inverse=True)
        group = np.concatenate([run_group, len(run) + query_group[run_group]])
        factor = np.concatenate([self.query[self.query_of_run[run]], -self.query[query]])
        return group, np.tile(self.document[rows], 2), factor


def _cell_sums(
    data: RankingData, bins: Bins, weights: _PairWeights
) -> tuple[Matrix, Vector, Vector]:
    """Return the sums of square, unit and difference over the pairs, for the columns of all cells."""
    n_cells = bins.first[-1]
    width = -(-n_cells // VECTOR_WIDTH) * VECTOR_WIDTH
    total = np.zeros((width, width))
    unit, difference = np.zeros((2, n_cells))
    codes = bins.codes(data)
    sums, factors = [], []  # of groups that are still to be squared
    for begin, end in data.query_blocks(STEP_BLOCK):
        rows = np.arange(data.offsets[begin], data.offsets[end])
        rows = rows[weights.degree[rows] != 0]
        cells = np.ascontiguousarray((codes[:, rows].T + bins.first[:-1]).astype(np.int32))
        add_counts(cells, weights.degree[rows], total)
        for moment, weight in ((unit, weights.excess), (difference, weights.difference)):
            moment += np.bincount(cells.ravel(), np.repeat(weight[rows], data.n_features), n_cells)
        group, weight, factor = weights.groups(rows)
        index = (group[:, None] * width + np.tile(cells, (2, 1))).ravel()
        added = np.bincount(index, np.repeat(weight, data.n_features), len(factor) * width)
        sums.append(added.reshape(-1, width))
        factors.append(factor)
        if end == data.n_queries or sum(map(len, factors)) >= GROUPS_AT_ONCE:
            subtract_squares(np.concatenate(sums), -np.concatenate(factors), total)
            sums.clear()
            factors.clear()
    for cell in range(n_cells):  # in place, because a copy can be as large as the data
        total[cell + 1 :, cell] = total[cell, cell + 1 :]
    return total, unit, difference
