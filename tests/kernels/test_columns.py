"""Passes over columns of features, against numpy."""

import numpy as np
import pytest
from helpers.read_only import read_only

from moerank.kernels.columns import columns_seen, extremes
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
