"""Greedy forward selection against a wrapper that retrains without each query for each candidate."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.read_only import read_only

from moerank.data import centre_in_queries
from moerank.kernels.forward_selection import greedy_rank_rls


def make_case(seed, sizes, n_features):
    """Centred features (n_features, n_documents) and labels, and where the queries begin."""
    rng = np.random.default_rng(seed)
    offsets = read_only(np.append(0, np.cumsum(sizes)))
    X = rng.normal(size=(offsets[-1], n_features))
    y = X[:, : n_features // 2].sum(axis=1) + rng.normal(size=len(X))
    return np.ascontiguousarray(centre_in_queries(X, offsets).T), centre_in_queries(y, offsets), offsets


def ridge_weights(X, y, ridge):
    return np.linalg.solve(X @ X.T + ridge * np.eye(len(X)), X @ y)


def left_out_error(X, y, offsets, ridge):
    """Σ over queries of the squared error of the ranker trained without the query."""
    total = 0.0
    for begin, end in pairwise(offsets):
        query = np.arange(begin, end)
        w = ridge_weights(np.delete(X, query, axis=1), np.delete(y, query), ridge)
        total += np.sum((y[begin:end] - w @ X[:, begin:end]) ** 2)
    return total


def naive_selection(X, y, offsets, ridge, n_steps):
    order, errors = [], []
    for _ in range(n_steps):
        rest = [f for f in range(len(X)) if f not in order]
        trials = [left_out_error(X[[*order, f]], y, offsets, ridge) for f in rest]
        order.append(rest[int(np.argmin(trials))])
        errors.append(min(trials))
    return order, errors


@pytest.mark.parametrize("ridge", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(
    ("sizes", "n_features"),
    [([7, 12, 2, 9], 5), ([11, 8, 15], 8), ([5, 20, 1, 13, 6], 13)],
    ids=["fewer than a vector", "one vector", "two vectors"],
)
def test_selection_errors_and_weights_are_those_of_the_wrapper(sizes, n_features, ridge):
    X, y, offsets = make_case(1, sizes, n_features)
    order, errors, W = greedy_rank_rls(X, y, offsets, ridge, n_features)
    expected_order, expected_errors = naive_selection(X, y, offsets, ridge, n_features)
    assert order.tolist() == expected_order
    np.testing.assert_allclose(errors, expected_errors, rtol=1e-9)
    for step, w in enumerate(W, start=1):
        chosen = order[:step]
        np.testing.assert_allclose(w[chosen], ridge_weights(X[chosen], y, ridge), rtol=1e-8, atol=1e-10)
        assert not np.delete(w, chosen).any()
