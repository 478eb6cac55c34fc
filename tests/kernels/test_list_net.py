from itertools import pairwise

import numpy as np
import pytest

from moerank.kernels.list_net import descend_by_query


def descend(X, target, offsets, rate, n_epochs):
    w, path = np.zeros(X.shape[1]), []
    for _ in range(n_epochs):
        for begin, end in pairwise(offsets):
            odds = np.exp(X[begin:end] @ w)
            w = w + rate * (target[begin:end] - odds / odds.sum()) @ X[begin:end]
        path.append(w)
    return np.array(path)


@pytest.mark.parametrize("rate", [1e-3, 0.1, 2.0])
def test_descent_equals_its_definition(rate):
    rng = np.random.default_rng(0)
    offsets = np.array([0, 1, 5, 25, 28])
    X, target = rng.normal(size=(28, 6)), rng.random(28)
    target /= np.repeat(np.add.reduceat(target, offsets[:-1]), np.diff(offsets))
    found = descend_by_query(X, target, offsets, rate, 7)
    np.testing.assert_allclose(found, descend(X, target, offsets, rate, 7), rtol=1e-10, atol=1e-13)


def test_large_scores_do_not_overflow():
    X, target = np.array([[900.0], [-900.0]]), np.array([0.9, 0.1])
    assert np.isfinite(descend_by_query(X, target, np.array([0, 2]), 10.0, 5)).all()
