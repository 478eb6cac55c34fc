from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit, softmax

from moerank.data import PreferencePairs
from moerank.kernels.losses import descend, logistic_pass, top_one_probabilities

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


@pytest.mark.parametrize("scale", [0.0, 1.0, 900.0])
def test_value_gradient_and_curvature_are_those_of_explicit_pairs(scale):
    rng = np.random.default_rng(0)
    X, labels, z = rng.random((70, 6)), rng.integers(0, 5, 70), scale * rng.normal(size=70)
    y = labels / 4.0
    pairs = PreferencePairs.of(labels, np.array([0, 30, 31, 70]))
    gradient, curvature = np.full(70, np.nan), np.full((70, 6), np.nan)
    value = logistic_pass(pairs.first, pairs.winner, pairs.worse, y, z, X, gradient, curvature)

    incidence = np.zeros((len(pairs), len(z)))
    incidence[np.arange(len(pairs)), pairs.better] = 1.0
    incidence[np.arange(len(pairs)), pairs.worse] = -1.0
    d, t = incidence @ z, 0.5 * (1.0 + incidence @ y)
    p = expit(d)
    assert value == pytest.approx((np.logaddexp(0.0, d) - t * d).sum(), rel=1e-12)
    np.testing.assert_allclose(gradient, incidence.T @ (p - t), rtol=1e-9, atol=1e-9)
    explicit = incidence.T @ ((p * expit(-d))[:, None] * (incidence @ X))
    np.testing.assert_allclose(curvature, explicit, rtol=1e-9, atol=1e-9)
