"""Losses of single rankers against plain numpy and scipy, and the ends of line search and stumps."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import softmax

from moerank.data import RankingData
from moerank.kernels.losses import (
    best_stump,
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


def test_pieces_without_curvature_are_crossed():
    """From t = 1/2 on the pair that the direction moves is met, and only one that it leaves alone remains."""
    rows, runs = sort_by_label(np.array([1, 0, 1, 0]), np.array([0, 2, 4]))
    change = np.array([2.0, 0.0, 0.0, 0.0])[rows]
    step, value = hinge_line_search(runs, np.zeros(4), change, 0.9, 1.0, np.empty(4))
    assert step >= 0.5
    assert value == 1.0


def test_fidelity_weights_of_pairs_far_in_the_wrong_order_are_small_not_nan():
    data = RankingData([[0.0], [1.0]], [1, 0], 0)
    weights, potentials = np.empty(1), np.empty(2)
    pair_weights(data.pairs.groups, np.array([0.0, 1000.0]), np.ones(2), True, weights, potentials)
    assert weights[0] == pytest.approx(np.exp(-500.0))
    np.testing.assert_array_equal(potentials, [weights[0], -weights[0]])


def test_equal_stumps_go_to_the_first_feature_and_the_lowest_threshold():
    column = np.array([0, 0, 2, 2], np.int32)  # no value lies between the two thresholds
    bins = np.array([column, column])
    feature, b, r = best_stump(bins, np.array([2, 2]), np.array([-0.5, -0.25, 0.5, 0.25]), 1.5)
    assert (feature, b, r) == (0, 0, 0.75)
