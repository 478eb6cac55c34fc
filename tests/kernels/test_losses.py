"""Losses of single rankers, line search and stumps against plain numpy and scipy on explicit pairs."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from moerank.data import RankingData
from moerank.kernels.losses import (
    descend,
    hinge_line_search,
    pair_weights,
    sort_by_label,
    top_one_probabilities,
)

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


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(2)
    sizes = [1, 30, 2, 45, 17, 3, 60]
    y = rng.integers(0, 4, sum(sizes))
    y[-3:] = 9  # levels need not be neighbours
    y[31:33] = 1  # a query without a pair
    return RankingData(rng.normal(size=(len(y), 2)), y, np.repeat(np.arange(len(sizes)), sizes))


def search(labelled, scores, change, start=0.0):
    """The kernel's answer, its residuals back in the rows of the data, and φ on explicit pairs."""
    rows, runs = sort_by_label(labelled.y, labelled.offsets)
    sums = np.full(len(rows), np.nan)
    arguments = scores[rows], change[rows], start, 1.0, sums
    step, value = hinge_line_search(runs, *arguments)
    residual = np.zeros(len(scores))
    residual[rows] = sums

    def slack(t):
        z = scores + t * change
        return np.maximum(0.0, 1.0 - (z[labelled.pairs.better] - z[labelled.pairs.worse]))

    def phi(t):
        return np.sum(slack(t) ** 2)

    return step, value, residual, phi, slack


@pytest.mark.parametrize("start", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_the_minimum_on_a_segment_is_the_one_that_scipy_finds(labelled, scale, start):
    rng = np.random.default_rng(3)
    for _ in range(20):
        scores, change = scale * rng.normal(size=(2, labelled.n_documents))
        step, value, _, phi, _ = search(labelled, scores, change, start=start)
        expected = minimize_scalar(phi, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12})
        assert value == pytest.approx(phi(step), rel=1e-12)
        assert value <= min(expected.fun, phi(0.0), phi(1.0)) * (1.0 + 1e-12)


def test_pieces_without_curvature_are_crossed():
    labelled = RankingData(np.zeros((4, 1)), [1, 0, 1, 0], [0, 0, 1, 1])
    # From t = 1/2 on the pair that the direction moves is met, and only one that it leaves alone remains.
    step, value, _, phi, _ = search(labelled, np.zeros(4), np.array([2.0, 0.0, 0.0, 0.0]), start=0.9)
    assert step >= 0.5
    assert value == phi(step) == 1.0


def test_fidelity_weights_of_pairs_far_in_the_wrong_order_are_small_not_nan():
    data = RankingData([[0.0], [1.0]], [1, 0])
    weights, potentials = np.empty(1), np.empty(2)
    pair_weights(data.pairs.groups, np.array([0.0, 1000.0]), np.ones(2), True, weights, potentials)
    assert weights[0] == pytest.approx(np.exp(-500.0))
    np.testing.assert_array_equal(potentials, [weights[0], -weights[0]])
