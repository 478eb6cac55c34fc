"""The kernels of stumps against plain numpy on explicit pairs."""

import numpy as np
import pytest

from moerank.data import RankingData
from moerank.kernels.stumps import best_stump, pair_weights


@pytest.fixture
def data():
    rng = np.random.default_rng(11)
    return RankingData(rng.integers(0, 6, (80, 5)) / 5, rng.integers(0, 4, 80), np.sort(rng.integers(0, 6, 80)))


def groups(data):
    return data.pairs.first, data.pairs.winner, data.pairs.worse


def exponential(o):
    return np.exp(-o)


def fidelity(o):
    return np.exp(-o) / (1 + np.exp(-o)) ** 1.5


@pytest.mark.parametrize(("is_fidelity", "formula"), [(False, exponential), (True, fidelity)])
def test_weights_and_potentials_equal_explicit_pairs(data, is_fidelity, formula):
    rng = np.random.default_rng(2)
    scores, importance = rng.normal(scale=3.0, size=80), rng.random(80)
    weights, potentials = np.empty(len(data.pairs)), np.full(80, 9.0)
    total = pair_weights(*groups(data), scores, importance, is_fidelity, weights, potentials)
    better, worse = data.pairs.better, data.pairs.worse
    expected = importance[better] * formula(scores[better] - scores[worse])
    np.testing.assert_allclose(weights, expected, rtol=1e-13)
    assert total == pytest.approx(expected.sum(), rel=1e-13)
    collected = np.bincount(better, expected, 80) - np.bincount(worse, expected, 80)
    np.testing.assert_allclose(potentials, collected, rtol=1e-12, atol=1e-12)


def test_fidelity_weights_of_pairs_far_in_the_wrong_order_are_small_not_nan():
    data = RankingData([[0.0], [1.0]], [1, 0])
    weights, potentials = np.empty(1), np.empty(2)
    pair_weights(*groups(data), np.array([0.0, 1000.0]), np.ones(2), True, weights, potentials)
    assert weights[0] == pytest.approx(np.exp(-500.0))
    np.testing.assert_array_equal(potentials, [weights[0], -weights[0]])


@pytest.mark.parametrize("reversed_too", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_best_stump_is_the_best_of_all(data, reversed_too, seed):
    potentials = np.random.default_rng(seed).normal(size=80) + data.X[:, seed]
    potentials -= potentials.mean()  # as those of pairs are
    thresholds = np.array([0.0, 0.2, 0.4, 0.6, 0.8])
    n_thresholds = np.array([5, 4, 5, 3, 5])
    lists = [thresholds[:n] for n in n_thresholds]
    bins = np.array([np.searchsorted(*pair) for pair in zip(lists, data.X.T, strict=True)], np.int32)
    feature, b, r = best_stump(bins, n_thresholds, potentials, 1.0, reversed_too)
    every = {(f, k): potentials[data.X[:, f] > thresholds[k]].sum() for f in range(5) for k in range(n_thresholds[f])}
    best = max(every, key=lambda stump: abs(every[stump]) if reversed_too else every[stump])
    assert (feature, b) == best
    assert r == pytest.approx(every[best], rel=1e-12)


def test_equal_stumps_go_to_the_first_feature_and_the_lowest_threshold():
    column = np.array([0, 0, 2, 2], np.int32)  # no value lies between the two thresholds
    bins = np.array([column, column])
    feature, b, r = best_stump(bins, np.array([2, 2]), np.array([-0.5, -0.25, 0.5, 0.25]), 1.5, False)
    assert (feature, b, r) == (0, 0, 0.75)


def test_no_stump_has_a_gain_without_potentials():
    assert best_stump(np.array([[0, 1, 2]], np.int32), np.array([2]), np.zeros(3), 1.0, True)[2] == 0.0
