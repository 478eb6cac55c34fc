"""Passes over columns of features, against numpy."""

import numpy as np
import pytest
from helpers.read_only import read_only

from moerank.kernels.columns import add_extents, columns_seen, extremes
from moerank.kernels.lanes import lanes

PRECISIONS = [np.float32, np.float64]


def drawn(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("n", [1, 7, 15, 16, 31, 32, 33, 64, 100, 1000])
def test_extremes_leave_out_what_is_missing(n, dtype):
    width = lanes(dtype)
    for seed in range(20):
        numbers = drawn(n, dtype, seed)
        assert extremes(read_only(numbers), width) == (numbers.min(), numbers.max(), True)
        assert extremes(read_only(-np.abs(numbers)), width)[:2] == (-np.abs(numbers).max(), -np.abs(numbers).min())
        place = seed * 7919 % n
        numbers[place] = np.nan
        others = np.delete(numbers, place)
        assert extremes(read_only(numbers), width) == (others.min(initial=np.inf), others.max(initial=-np.inf), False)
        numbers[place] = np.inf
        assert extremes(read_only(numbers), width)[1:] == (np.inf, True)
        numbers[place] = -np.inf
        assert extremes(read_only(numbers), width)[0] == -np.inf


def test_extremes_of_nothing():
    assert extremes(read_only(np.empty(0, np.float32)), 16) == (np.inf, -np.inf, True)
    assert extremes(read_only(np.full(40, np.nan)), 8) == (np.inf, -np.inf, False)


def queries(seed, longest=60):
    return np.append(0, np.cumsum(np.random.default_rng(seed).integers(1, longest, 12)))


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("seed", range(5))
def test_extents_are_those_of_each_query(seed, dtype):
    offsets = queries(seed)
    columns = drawn((5, offsets[-1] + 3), dtype, seed)  # three documents before the first query
    columns[2] = 7.0
    greatest = np.maximum.reduceat(columns[:, 3:], offsets[:-1], axis=1).astype(float)
    extent = greatest - np.minimum.reduceat(columns[:, 3:], offsets[:-1], axis=1)
    unit = np.where(extent.max(axis=1) > 0, extent.max(axis=1), 1.0)
    squares = (extent / unit[:, None]) ** 2
    largest, total, weighted = np.zeros((3, 5))
    split = 4  # in two calls, as for two blocks
    for part, first in ((offsets[: split + 1], 3), (offsets[split:] - offsets[split], 3 + offsets[split])):
        add_extents(
            read_only(columns.reshape(-1)), columns.shape[1], first, part, lanes(dtype), largest, total, weighted
        )
    np.testing.assert_array_equal(largest, extent.max(axis=1))
    np.testing.assert_allclose(total, squares.sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(weighted, squares @ np.diff(offsets), rtol=1e-13)


def test_squares_of_enormous_extents_do_not_overflow():
    largest, total, weighted = np.zeros((3, 1))
    add_extents(
        read_only([0.0, 1e-300, 0.0, 1e200, 0.0, 2e200]), 6, 0, np.array([0, 2, 4, 6]), 8, largest, total, weighted
    )
    assert (largest[0], total[0], weighted[0]) == (2e200, 1.25, 2.5)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("n_features", [1, 7, 8, 9, 19])
def test_sums_are_taken_in_order_of_document(n_features, dtype):
    columns = drawn((n_features, 100), dtype)
    total, low, high = np.zeros(n_features), np.full(n_features, np.inf), np.full(n_features, -np.inf)
    for begin, end in ((0, 3), (3, 60), (60, 100)):
        columns_seen(read_only(columns.reshape(-1)), 100, begin, end - begin, lanes(dtype), total, low, high)
    np.testing.assert_array_equal(total, np.cumsum(columns.astype(float), axis=1)[:, -1])
    np.testing.assert_array_equal(low, columns.min(axis=1))
    np.testing.assert_array_equal(high, columns.max(axis=1))
