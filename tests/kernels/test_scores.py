import numpy as np
import pytest

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
