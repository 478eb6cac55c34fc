"""The edges of the kernels of stumps; tests/rankers/test_stump_boosting.py compares them with explicit pairs."""

import numpy as np
import pytest

from moerank.data import RankingData
from moerank.kernels.stumps import best_stump, pair_weights


def test_fidelity_weights_of_pairs_far_in_the_wrong_order_are_small_not_nan():
    data = RankingData([[0.0], [1.0]], [1, 0])
    weights, potentials = np.empty(1), np.empty(2)
    groups = data.pairs.first, data.pairs.winner, data.pairs.worse
    pair_weights(*groups, np.array([0.0, 1000.0]), np.ones(2), True, weights, potentials)
    assert weights[0] == pytest.approx(np.exp(-500.0))
    np.testing.assert_array_equal(potentials, [weights[0], -weights[0]])


def test_equal_stumps_go_to_the_first_feature_and_the_lowest_threshold():
    column = np.array([0, 0, 2, 2], np.int32)  # no value lies between the two thresholds
    bins = np.array([column, column])
    feature, b, r = best_stump(bins, np.array([2, 2]), np.array([-0.5, -0.25, 0.5, 0.25]), 1.5, False)
    assert (feature, b, r) == (0, 0, 0.75)


def test_no_stump_has_a_gain_without_potentials():
    assert best_stump(np.array([[0, 1, 2]], np.int32), np.array([2]), np.zeros(3), 1.0, True)[2] == 0.0
