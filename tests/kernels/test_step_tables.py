"""Kernels of additive rankers against plain sums and systems."""

import numpy as np

from moerank.kernels.step_tables import (
    VECTOR_WIDTH,
    add_counts,
    add_to_groups,
    forward_blocks,
    ridge_blocks,
    subtract_squares,
)


def blocks(sizes):
    return np.cumsum([0, *sizes])


def test_equal_features_enter_in_order_of_their_columns():
    total = np.zeros((VECTOR_WIDTH, VECTOR_WIDTH))
    total[:6, :6] = np.ones((6, 6)) + 1e-3 * np.eye(6)
    total[:6, 6] = 1.0
    assert forward_blocks(total, blocks([2, 2, 2]), 3).tolist()[0] == 0


def test_equal_columns_share_the_weight():
    A = np.ones((6, 6))
    w = ridge_blocks(A, np.ones(6), blocks([3, 3]), 1e-9, np.ones((1, 2), bool))[0]
    np.testing.assert_allclose(w, 1 / 6, rtol=1e-5)


def test_counts_and_squares_are_exact():
    rng = np.random.default_rng(0)
    n_features, n_bins = 35, 5  # more features than one tile has
    codes = rng.integers(0, n_bins, (300, n_features))
    cells = (codes + n_bins * np.arange(n_features)).astype(np.int32)
    one_hot = np.zeros((300, 176))
    np.put_along_axis(one_hot, cells, 1.0, axis=1)
    weight = rng.integers(0, 50, 300) * 1.0
    total = np.zeros((176, 176))
    add_counts(cells, weight, total)
    np.testing.assert_array_equal(np.triu(total), np.triu(one_hot.T @ (weight[:, None] * one_hot)))
    document, group = rng.integers(0, 300, 900), rng.integers(0, 200, 900)
    sums = np.zeros((200, 176))
    add_to_groups(cells, document, group, np.ones(900), sums)
    expected = np.zeros((200, 176))
    np.add.at(expected, group, one_hot[document])
    np.testing.assert_array_equal(sums, expected)
    factor = rng.integers(-3, 4, 200) * 1.0
    squares = np.zeros((176, 176))
    assert len(squares) % VECTOR_WIDTH == 0
    subtract_squares(sums, factor, squares)
    np.testing.assert_array_equal(np.triu(squares), -np.triu(sums.T @ (factor[:, None] * sums)))
