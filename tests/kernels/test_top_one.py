from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import log_softmax, softmax

from moerank.kernels.losses import descend, top_one_probabilities

OFFSETS = np.array([0, 4, 5, 12])


@pytest.fixture
def documents():
    rng = np.random.default_rng(0)
    return rng.random((12, 5)), rng.integers(0, 4, 12).astype(float)


def queries():
    return [slice(begin, end) for begin, end in pairwise(OFFSETS)]


def test_probabilities_are_the_softmax_of_every_query(documents):
    for scale in (1.0, 500.0):  # the second overflows without care
        z = scale * documents[1]
        expected = np.concatenate([softmax(z[rows]) for rows in queries()])
        np.testing.assert_allclose(top_one_probabilities(z, OFFSETS), expected, rtol=1e-14)


@pytest.mark.parametrize("rate", [0.01, 0.7])
def test_epochs_are_those_of_a_plain_loop(documents, rate):
    X, y = documents
    target = top_one_probabilities(y, OFFSETS)
    w, expected = np.zeros(5), []
    for _ in range(7):
        for rows in queries():
            w = w - rate * X[rows].T @ (softmax(X[rows] @ w) - target[rows])
        expected.append(w)
    np.testing.assert_allclose(descend(X, target, OFFSETS, rate, 7), expected, rtol=1e-12)


def test_a_step_follows_the_gradient_by_finite_differences(documents):
    X, y = documents
    rows = queries()[2]
    X, target = X[rows], softmax(y[rows])
    W = descend(X, target, np.array([0, len(X)]), 0.5, 4)
    for before, after in zip(np.vstack([np.zeros(5), W[:-1]]), W, strict=True):
        numeric = approx_fprime(before, lambda w: -target @ log_softmax(X @ w), 1e-7)
        np.testing.assert_allclose((before - after) / 0.5, numeric, atol=1e-6)
