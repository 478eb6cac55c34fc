import numpy as np
import pytest
from helpers.read_only import read_only

from moerank.kernels.linear_gain import NETWORK, lane_gain, linear_gain

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


def by_sorting(X, W, offsets, few_ranks):
    query, gain, discount, depth, ideal = few_ranks
    values = np.zeros((len(offsets) - 1, len(W)))
    for c, q in enumerate(query):
        rows = slice(offsets[q], offsets[q + 1])
        for i, w in enumerate(W):
            order = np.argsort(-(X[rows].astype(float) @ w), kind="stable")[: depth[c]]
            total = 0.0
            for weight, document in zip(discount, order, strict=False):
                total += weight * gain[rows][document]
            values[q, i] = total / ideal[c]
    return values


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("depth", [1, 3, 10, 16])
@pytest.mark.parametrize("n_individuals", [1, 8, 37])
def test_values_are_those_of_a_stable_sort(dtype, depth, n_individuals):
    given = make(depth + n_individuals, n_individuals, dtype, depth)
    np.testing.assert_array_equal(lane_gain(*given), by_sorting(*given))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounded_scores_have_the_bits_of_the_other_kernel(dtype):
    X, W, *plan = make(1, 50, dtype, 10)
    rng = np.random.default_rng(2)
    X, W = read_only(rng.normal(size=X.shape).astype(dtype)), W * rng.normal(size=W.shape)
    columns = read_only(np.ascontiguousarray(X.T))
    for workers in (1, 2, 5):
        np.testing.assert_array_equal(lane_gain(X, W, *plan, workers), linear_gain(columns, W, *plan))
        np.testing.assert_array_equal(lane_gain(X, W, *plan), linear_gain(columns, W, *plan, workers))


def test_the_network_sorts_all_zeros_and_ones():
    """A network that sorts these sorts everything."""
    bits = np.arange(2**16, dtype=np.uint32)[:, None] >> np.arange(16, dtype=np.uint32) & 1
    for i, j in NETWORK:
        bits[:, i], bits[:, j] = np.maximum(bits[:, i], bits[:, j]), np.minimum(bits[:, i], bits[:, j])
    assert (np.diff(bits.astype(int), axis=1) <= 0).all()
