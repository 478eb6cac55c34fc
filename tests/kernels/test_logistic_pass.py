import numpy as np
import pytest
from scipy.special import expit

from moerank.data import PreferencePairs
from moerank.kernels.logistic_pass import logistic_pass, weighted_curvature_pass


@pytest.fixture
def pairs():
    rng = np.random.default_rng(0)
    return PreferencePairs.of(rng.integers(0, 4, 40), np.array([0, 1, 12, 40]))


@pytest.mark.parametrize("scale", [0.1, 3.0, 400.0])
def test_loss_and_derivatives_equal_those_over_explicit_pairs(pairs, scale):
    scores = scale * np.random.default_rng(1).normal(size=40)
    residual, curvature = np.empty(40), np.empty(len(pairs))
    loss = logistic_pass(pairs.first, pairs.winner, pairs.worse, scores, residual, curvature)
    u = scores[pairs.better] - scores[pairs.worse]
    assert loss == pytest.approx(np.logaddexp(0.0, u).sum(), rel=1e-12)
    expected = np.bincount(pairs.better, expit(u), 40) - np.bincount(pairs.worse, expit(u), 40)
    np.testing.assert_allclose(residual, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(curvature, expit(u) * expit(-u), rtol=1e-12, atol=1e-300)


def test_product_is_that_of_the_weighted_laplacian(pairs):
    rng = np.random.default_rng(2)
    curvature, scores, result = rng.random(len(pairs)), rng.normal(size=40), np.empty(40)
    weighted_curvature_pass(pairs.first, pairs.winner, pairs.worse, curvature, scores, result)
    A = np.zeros((len(pairs), 40))
    A[np.arange(len(pairs)), pairs.better] = 1.0
    A[np.arange(len(pairs)), pairs.worse] = -1.0
    np.testing.assert_allclose(result, A.T @ (curvature * (A @ scores)), rtol=1e-12, atol=1e-13)
