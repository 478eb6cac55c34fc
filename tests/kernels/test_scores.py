import numpy as np
import pytest

from moerank.kernels.scores import linear_scores


def reference(X, W):
    scores = np.zeros((len(X), len(W)))
    for f in range(X.shape[1]):
        scores = scores + X[:, f, None] * W[:, f]
    return scores


@pytest.mark.parametrize("n_individuals", [1, 7, 8, 9, 100])
def test_scores_are_sums_in_feature_order_to_the_bit(n_individuals):
    rng = np.random.default_rng(n_individuals)
    X = rng.normal(size=(53, 13))
    W = rng.normal(size=(n_individuals, 13)) * (rng.random((n_individuals, 13)) < 0.5)
    np.testing.assert_array_equal(linear_scores(X, W), reference(X, W))


def test_identical_documents_tie_in_every_batch():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 31))
    copies = rng.integers(0, 20, 500)
    W = rng.normal(size=(100, 31))
    for part in (slice(0, 1), slice(3, 17), slice(0, 100)):
        scores = linear_scores(rows[copies], W[part])
        np.testing.assert_array_equal(scores, linear_scores(rows, W[part])[copies])
        np.testing.assert_array_equal(scores, linear_scores(rows[copies], W)[:, part])


def test_single_precision_is_summed_in_single_precision_in_feature_order():
    rng = np.random.default_rng(1)
    X, W = rng.normal(size=(30, 9)).astype(np.float32), rng.normal(size=(19, 9))
    expected = np.zeros((30, 19), np.float32)
    for f in range(9):
        expected += X[:, f, None] * W[:, f].astype(np.float32)
    np.testing.assert_array_equal(linear_scores(X, W), expected)
