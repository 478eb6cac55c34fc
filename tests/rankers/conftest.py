import numpy as np
import pytest

from moerank.data import RankingData


@pytest.fixture(scope="session")
def noisy_data():
    """Nine queries of different length, twelve features, labels 0-4 that depend on three of them."""
    rng = np.random.default_rng(0)
    sizes = [1, 30, 2, 45, 17, 60, 8, 25, 12]
    X = rng.random((sum(sizes), 12))
    hidden = 2.0 * X[:, 0] - X[:, 3] + 0.5 * X[:, 7] + rng.normal(scale=0.4, size=len(X))
    y = np.digitize(hidden, np.quantile(hidden, [0.5, 0.7, 0.85, 0.95]))
    return RankingData(X, y, np.repeat(np.arange(len(sizes)), sizes))
