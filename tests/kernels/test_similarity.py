from itertools import pairwise

import numpy as np
import pytest
from helpers.read_only import read_only
from scipy.stats import gaussian_kde, kendalltau

from moerank.kernels.similarity import concordance, gaussian_density


def spans(offsets):
    return [slice(begin, end) for begin, end in pairwise(offsets)]


def brute_force(X, offsets):
    """Signs of the differences of all pairs of documents, compared feature by feature."""
    shares = []
    for rows in spans(offsets):
        i, j = np.triu_indices(rows.stop - rows.start, 1)
        if len(i):
            signs = np.sign(X[rows][i] - X[rows][j])
            shares.append(np.mean(1.0 - np.abs(signs[:, :, None] - signs[:, None, :]) / 2.0, axis=0))
    return np.mean(shares, axis=0)


@pytest.mark.parametrize("n_levels", [2, 5, 1000])
def test_equals_the_comparison_of_all_pairs(n_levels):
    rng = np.random.default_rng(n_levels)
    offsets = read_only([0, 1, 3, 40, 41, 77, 80])
    X = rng.integers(0, n_levels, (80, 7)) / n_levels
    X[:, 6] = X[:, 2]
    share = concordance(X, offsets)
    np.testing.assert_allclose(share, brute_force(X, offsets), rtol=1e-13)
    assert share[2, 6] == 1.0


def test_without_ties_it_is_kendalls_tau_moved_to_the_unit_interval():
    rng = np.random.default_rng(3)
    offsets = read_only([0, 30, 42])
    X = rng.normal(size=(42, 4))
    tau = np.zeros((4, 4))
    for rows in spans(offsets):
        tau += [[kendalltau(a, b).statistic for a in X[rows].T] for b in X[rows].T]
    np.testing.assert_allclose(concordance(X, offsets), (1.0 + tau / 2.0) / 2.0, rtol=1e-12)


def test_queries_of_one_document_leave_all_features_alike():
    np.testing.assert_array_equal(
        concordance(np.random.default_rng(0).random((3, 2)), read_only(range(4))), np.ones((2, 2))
    )


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
