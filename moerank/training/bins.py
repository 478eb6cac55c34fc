"""Bins of features: thresholds between the values of the training data, and the bin of each document."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from moerank.arrays import Floats, Integers, Mask, Vector
from moerank.data import RankingData
from moerank.kernels.step_tables import Codes

MOST_BINS = 255
"""Largest number of thresholds of a feature, because the number of a bin takes one byte."""


def thresholds(column: ArrayLike, n_bins: int) -> Vector:
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
    is_last = np.append(ordered[1:] != ordered[:-1], False)
    with np.errstate(over="ignore"):
        single = ordered.astype(np.float32)
    is_last[:-1] &= single[1:] != single[:-1]
    last = np.flatnonzero(is_last)  # of the documents on the left of each possible threshold
    if len(last) > n_bins:
        wanted = np.ceil(len(ordered) * np.arange(1, n_bins + 1) / (n_bins + 1)).astype(np.int64) - 1
        position = np.unique(np.searchsorted(last, wanted))
        last = last[position[position < len(last)]]
    return between(ordered[last], ordered[last + 1])


def between(low: Floats, high: Floats) -> Vector:
    """Return the middles between values that differ in single precision, which neither crosses when it is rounded.

    The middle is a number of single precision where one is there, so that it stays the same when it is rounded.
    """
    with np.errstate(over="ignore"):
        low = np.maximum(low, low.astype(np.float32), dtype=np.float64)
        high = np.minimum(high, high.astype(np.float32), dtype=np.float64)
    middle = low + (high - low) / 2
    rounded = middle.astype(np.float32).astype(np.float64)
    return np.where((low <= rounded) & (rounded < high), rounded, middle)


def separable(X: Floats) -> Floats:
    """Return a table whose distinct values differ in single precision, too: columns where some do not are rounded."""
    if X.dtype == np.float32:
        return X
    largest = np.finfo(np.float32).max
    ordered = np.sort(X, axis=0)
    with np.errstate(over="ignore"):
        single = ordered.astype(np.float32)
    merged = ((ordered[1:] != ordered[:-1]) & (single[1:] == single[:-1])).any(axis=0)
    return np.where(merged, np.clip(X, -largest, largest).astype(np.float32), X) if merged.any() else X


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of the features of a data set: the bin of a value is the number of thresholds below it."""

    thresholds: tuple[Vector, ...]  # of each feature

    @classmethod
    def of(cls, data: RankingData, n_bins: int) -> Bins:
        """Return bins with at most `n_bins` thresholds per feature, remembered with the data."""
        return data.remember(
            ("bins", n_bins), lambda: cls(tuple(thresholds(data.X[:, f], n_bins) for f in range(data.n_features)))
        )

    @cached_property
    def first(self) -> Integers:
        """Where the bins of each feature begin among all cells, shape (n_features + 1,)."""
        return np.cumsum([0, *(len(each) + 1 for each in self.thresholds)], dtype=np.int64)

    @cached_property
    def first_step(self) -> Integers:
        """Where the thresholds of each feature begin among all thresholds, shape (n_features + 1,)."""
        return self.first - np.arange(len(self.first))

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

    def of_features(self, features: Integers) -> Bins:
        """Return the bins of some features in a new order; −1 stands for a feature without thresholds."""
        return Bins(tuple(np.empty(0) if f < 0 else self.thresholds[f] for f in features.tolist()))
