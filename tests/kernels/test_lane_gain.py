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
