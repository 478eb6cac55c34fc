import numpy as np
import pytest
from scipy.stats import gaussian_kde

from moerank.kernels.similarity import gaussian_density


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


def test_one_sample_is_the_normal_density():
    density = gaussian_density(np.array([2.0]), np.array([2.0, 2.5, 100.0]), 0.5)
    np.testing.assert_allclose(density, [2 / np.sqrt(2 * np.pi), 2 * np.exp(-0.5) / np.sqrt(2 * np.pi), 0], rtol=1e-14)


def test_integrates_to_one():
    samples = np.random.default_rng(1).random(100)
    points = np.linspace(-3, 4, 7001)
    assert np.sum(gaussian_density(samples, points, 0.1)) * 1e-3 == pytest.approx(1.0, abs=1e-12)
