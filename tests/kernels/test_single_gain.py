"""Gains of rankings by single features against sorting, ties in order of row."""

import numpy as np
import pytest
from helpers.read_only import read_only

from moerank.kernels.single_gain import single_gain


def by_sorting(columns, offsets, query, gain, discount, depth, ideal):
    values = np.zeros((len(offsets) - 1, 2 * len(columns)))
    for c, q in enumerate(query):
        rows = slice(offsets[q], offsets[q + 1])
        for column, scores in enumerate([*columns[:, rows], *-columns[:, rows]]):
            first = gain[rows][np.argsort(-scores, kind="stable")][: depth[c]]
            total = 0.0
            for rank, value in enumerate(first):
                total += value * discount[rank]
            values[q, column] = total / ideal[c]
    return values


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("levels", [1, 2, 5, 10**6])
@pytest.mark.parametrize("longest", [3, 20, 70, 900])
def test_gains_are_those_of_sorted_documents(longest, levels, dtype):
    rng = np.random.default_rng(levels + longest)
    offsets = np.append(0, np.cumsum(rng.integers(1, longest + 1, 25)))
    n = int(offsets[-1])
    columns = (rng.integers(0, levels, (3, n)) - levels // 2).astype(dtype)
    columns[1] = np.where(rng.random(n) < 0.5, -0.0, columns[1])
    query = np.flatnonzero(rng.random(25) < 0.8)
    depth = np.minimum(np.diff(offsets)[query], rng.integers(1, 17, len(query)))
    gain, discount, ideal = rng.random(n), rng.random(16), rng.random(len(query)) + 1
    values = np.zeros((25, 6))
    padded = np.pad(columns, ((0, 0), (5, 2)))
    shift = {np.float32: 4, np.float64: 3}[dtype]
    arguments = read_only(offsets), query, gain, discount, depth, ideal
    single_gain(read_only(padded.reshape(-1)), padded.shape[1], 5, shift, *arguments, values)
    np.testing.assert_array_equal(values, by_sorting(columns, *arguments))


def test_without_a_query_that_counts_nothing_is_written():
    values = np.full((1, 2), 7.0)
    nothing, none = np.empty(0), np.empty(0, np.int64)
    flat, offsets = read_only([1.0, 2.0]), read_only([0, 2])
    single_gain(flat, 2, 0, 3, offsets, none, np.ones(2), np.ones(2), none, nothing, values)
    assert (values == 7.0).all()
