"""Kernels of additive rankers against plain sums and systems."""

import numpy as np
import pytest

from moerank.kernels.step_tables import (
    VECTOR_WIDTH,
    add_counts,
    add_to_groups,
    forward_blocks,
    ridge_blocks,
    subtract_squares,
    table_scores,
)


def blocks(sizes):
    return np.cumsum([0, *sizes])


@pytest.mark.parametrize("sizes", [[1], [8], [3, 0, 5], [16, 1, 16, 7, 16], [5] * 19])
def test_ridge_blocks_solves_each_subset(sizes):
    rng = np.random.default_rng(len(sizes))
    first = blocks(sizes)
    n = first[-1]
    Z = rng.normal(size=(2 * n, n))
    A, b = Z.T @ Z, rng.normal(size=n)
    masks = rng.random((6, len(sizes))) < 0.6
    masks[0] = True
    W = ridge_blocks(A, b, first, 0.5, masks)
    for w, mask in zip(W, masks, strict=True):
        chosen = np.repeat(mask, sizes)
        system = A[np.ix_(chosen, chosen)] + 0.5 * np.eye(chosen.sum())
        np.testing.assert_allclose(w[chosen], np.linalg.solve(system, b[chosen]), rtol=1e-10, atol=1e-12)
        assert not w[~chosen].any()
        np.testing.assert_array_equal(ridge_blocks(A, b, first, 0.5, mask[None])[0], w)


@pytest.mark.parametrize("sizes", [[1], [8], [3, 0, 5], [16, 1, 16, 7, 16, 0], [1, 2, 3] * 5])
def test_forward_blocks_enters_what_lowers_the_minimum_most(sizes):
    """Against a system for each candidate beside those that have entered."""
    rng = np.random.default_rng(len(sizes))
    first = blocks(sizes)
    n = first[-1]
    Z = rng.normal(size=(n + 5, n)) + rng.normal(size=(n + 5, 1))
    A, b = Z.T @ Z + 0.1 * np.eye(n), rng.normal(size=n)
    total = np.zeros((-(-(n + 1) // VECTOR_WIDTH) * VECTOR_WIDTH,) * 2)
    total[:n, :n], total[:n, n] = np.triu(A), b

    def fall(features):
        chosen = np.repeat(np.isin(np.arange(len(sizes)), features), sizes)
        return b[chosen] @ np.linalg.solve(A[np.ix_(chosen, chosen)], b[chosen])

    order = []
    for _ in range(np.count_nonzero(sizes)):
        left = [f for f in np.flatnonzero(sizes) if f not in order]
        order.append(max(left, key=lambda f: fall([*order, f])))
    assert forward_blocks(total.copy(), first, len(sizes)).tolist() == order
    assert forward_blocks(total.copy(), first, 1).tolist() == order[:1]


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


@pytest.mark.parametrize("n_documents", [1, 4, 7])
@pytest.mark.parametrize("n_individuals", [1, 8, 16, 19])
def test_scores_are_summed_in_feature_order(n_documents, n_individuals):
    rng = np.random.default_rng(n_documents)
    first = blocks([3, 1, 4])
    codes = np.array([rng.integers(0, size, n_documents) for size in (3, 1, 4)], np.uint8)
    tables = rng.normal(size=(n_individuals, 8)) * (rng.random((n_individuals, 8)) < 0.7)
    scores = table_scores(codes, first, tables)
    for i in range(n_documents):
        for k in range(n_individuals):
            total = 0.0
            for f in range(3):
                total += tables[k, first[f] + codes[f, i]]
            assert scores[i, k] == total
