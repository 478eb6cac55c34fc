import numpy as np
import pytest
from scipy.stats import gaussian_kde

from moerank.kernels.counted_sums import gaussian_density


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
