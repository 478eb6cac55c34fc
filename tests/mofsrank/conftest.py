import helpers.plain_agemoea2  # noqa: F401
import numpy as np
import pytest

from moerank.data import RankingData


@pytest.fixture(scope="session")
def small_data():
    """Four queries, five features, several documents that occur twice."""
    rng = np.random.default_rng(21)
    sizes = [14, 11, 16, 12]
    X = rng.random((sum(sizes), 5)).round(1)
    X[5], X[30] = X[2], X[28]
    y = np.clip(np.digitize(X[:, 0] + X[:, 2] + rng.normal(scale=0.3, size=len(X)), [1.0, 1.4]), 0, 2)
    return RankingData(X, y, np.repeat(np.arange(4), sizes))
