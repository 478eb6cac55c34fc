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


def test_identical_documents_tie_in_every_batch():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 31))
    copies = rng.integers(0, 20, 500)
    W = rng.normal(size=(100, 31))
    for part in (slice(0, 1), slice(3, 17), slice(0, 100)):
        scores = linear_scores(rows[copies], W[part])
        np.testing.assert_array_equal(scores, linear_scores(rows, W[part])[copies])
        np.testing.assert_array_equal(scores, linear_scores(rows[copies], W)[:, part])
