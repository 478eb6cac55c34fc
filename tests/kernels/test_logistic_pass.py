import numpy as np
import pytest
from scipy.special import expit

from moerank.data import PreferencePairs
from moerank.kernels.losses import logistic_pass


@pytest.mark.parametrize("scale", [0.0, 1.0, 900.0])
def test_value_gradient_and_curvature_are_those_of_explicit_pairs(scale):
    rng = np.random.default_rng(0)
    X, labels, z = rng.random((70, 6)), rng.integers(0, 5, 70), scale * rng.normal(size=70)
    y = labels / 4.0
    pairs = PreferencePairs.of(labels, np.array([0, 30, 31, 70]))
    gradient, curvature = np.full(70, np.nan), np.full((70, 6), np.nan)
    value = logistic_pass(pairs.first, pairs.winner, pairs.worse, y, z, X, gradient, curvature)

    incidence = np.zeros((len(pairs), len(z)))
    incidence[np.arange(len(pairs)), pairs.better] = 1.0
    incidence[np.arange(len(pairs)), pairs.worse] = -1.0
    d, t = incidence @ z, 0.5 * (1.0 + incidence @ y)
    p = expit(d)
    assert value == pytest.approx((np.logaddexp(0.0, d) - t * d).sum(), rel=1e-12)
    np.testing.assert_allclose(gradient, incidence.T @ (p - t), rtol=1e-9, atol=1e-9)
    explicit = incidence.T @ ((p * expit(-d))[:, None] * (incidence @ X))
    np.testing.assert_allclose(curvature, explicit, rtol=1e-9, atol=1e-9)
