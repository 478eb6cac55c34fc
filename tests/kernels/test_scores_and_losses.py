from itertools import pairwise

import numpy as np
import pytest
from helpers.read_only import read_only
from scipy.special import softmax
from scipy.stats import gaussian_kde

from moerank.data import RankingData
from moerank.kernels.counted_sums import gaussian_density
from moerank.kernels.linear_gain import NETWORK, lane_gain, linear_gain
from moerank.kernels.losses import best_stump, descend, hinge_line_search, pair_weights, sort_by_label
from moerank.kernels.scores import linear_scores


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_individuals", [1, 7, 8, 9, 100])
def test_scores_are_sums_in_feature_order_to_the_bit(n_individuals, dtype):
    rng = np.random.default_rng(n_individuals)
    X = rng.normal(size=(53, 13)).astype(dtype)
    W = rng.normal(size=(n_individuals, 13)) * (rng.random((n_individuals, 13)) < 0.5)
    expected = np.zeros((53, n_individuals), dtype)
    for f in range(13):
        expected += X[:, f, None] * W[:, f].astype(dtype)
    np.testing.assert_array_equal(linear_scores(X, W), expected)


@pytest.mark.parametrize("bandwidth", [1e-3, 0.03, 0.2, 1.0, 25.0])
def test_equals_the_sum_over_all_samples(bandwidth):
    rng = np.random.default_rng(0)
    samples = np.concatenate([rng.normal(size=700) ** 3, np.zeros(150), rng.random(150)])
    points = np.concatenate([rng.normal(size=200) * 3, samples[:50], [-500.0, 0.0, 500.0]])
    kernels = np.exp(-0.5 * ((points[:, None] - samples) / bandwidth) ** 2) / (bandwidth * np.sqrt(2 * np.pi))
    density = gaussian_density(samples, points, bandwidth)
    assert (density >= 0).all()
    np.testing.assert_allclose(density, kernels.mean(axis=1), rtol=0, atol=1e-14 / bandwidth)
    scipys = gaussian_kde(samples, bandwidth / samples.std(ddof=1))(points)
    np.testing.assert_allclose(density, scipys, rtol=1e-9, atol=1e-13 / bandwidth)


OFFSETS = np.array([0, 4, 5, 12])


@pytest.fixture
def documents():
    rng = np.random.default_rng(0)
    return rng.random((12, 5)), rng.integers(0, 4, 12).astype(float)


def queries():
    return [slice(begin, end) for begin, end in pairwise(OFFSETS)]


@pytest.mark.parametrize("rate", [0.01, 0.7])
@pytest.mark.parametrize("scale", [1.0, 500.0])  # of labels; the second overflows without care
def test_epochs_are_those_of_a_plain_loop(documents, scale, rate):
    X, y = documents[0], scale * documents[1]
    w, expected = np.zeros(5), []
    for _ in range(7):
        for rows in queries():
            w = w - rate * X[rows].T @ (softmax(X[rows] @ w) - softmax(y[rows]))
        expected.append(w)
    np.testing.assert_allclose(descend(X, y, OFFSETS, rate, 7), expected, rtol=1e-12)


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


SIZES = [1, 5, 16, 17, 40, 41, 63, 64, 130, 300]


def make(seed, n_individuals, dtype, depth):
    """Documents with many ties, rankers that share features, and the gains and ideals of every query but the first."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.permutation(SIZES * 2))])
    X = rng.integers(-3, 4, (offsets[-1], 6)).astype(dtype)
    W = np.where(rng.random((n_individuals, 6)) < 0.6, rng.integers(-2, 3, (n_individuals, 6)) / 4.0, 0.0)
    query = np.arange(1, len(offsets) - 1)
    gain = rng.choice([0.0, 0.0, 1.0, 3.0], offsets[-1])
    discount = 1.0 / np.log2(1.0 + np.arange(1, offsets[-1] + 1))
    depths = np.minimum(depth, np.diff(offsets)[query])
    ideal = rng.uniform(1.0, 9.0, len(query))
    return read_only(X), W, read_only(offsets), (query, gain, discount, depths, ideal)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounded_scores_have_the_bits_of_the_other_kernel(dtype, monkeypatch):
    X, W, *plan = make(1, 50, dtype, 10)
    rng = np.random.default_rng(2)
    X, W = read_only(rng.normal(size=X.shape).astype(dtype)), W * rng.normal(size=W.shape)
    columns = read_only(np.ascontiguousarray(X.T))
    for workers in (1, 2, 5):
        np.testing.assert_array_equal(lane_gain(X, W, *plan, workers), linear_gain(columns, W, *plan))
        np.testing.assert_array_equal(lane_gain(X, W, *plan), linear_gain(columns, W, *plan, workers))
    W[:, 3] = 0.0  # a feature that no block needs
    for size in (2**18, 100):
        monkeypatch.setattr("moerank.kernels.linear_gain.COPIED_NUMBERS", size)
        np.testing.assert_array_equal(lane_gain(columns.T, W, *plan, 2), linear_gain(columns, W, *plan))


def test_the_network_sorts_all_zeros_and_ones():
    """A network that sorts these sorts everything."""
    bits = np.arange(2**16, dtype=np.uint32)[:, None] >> np.arange(16, dtype=np.uint32) & 1
    for i, j in NETWORK:
        bits[:, i], bits[:, j] = np.maximum(bits[:, i], bits[:, j]), np.minimum(bits[:, i], bits[:, j])
    assert (np.diff(bits.astype(int), axis=1) <= 0).all()
