import numpy as np
import pytest

from moerank.data import RankingData


def make_data(seed, sizes=(1, 20, 2, 25, 14, 18), n_features=8):
    rng = np.random.default_rng(seed)
    X = rng.random((sum(sizes), n_features))
    y = np.digitize(X[:, 1] - 0.5 * X[:, 4] + rng.normal(scale=0.2, size=len(X)), [0.2, 0.5])
    return RankingData(X, y, np.repeat(np.arange(len(sizes)), sizes))


@pytest.fixture(scope="session")
def data():
    """Six queries, eight features: the second is good, the fifth is good downwards, the others are noise."""
    return make_data(0)


@pytest.fixture(scope="session")
def held_out():
    return make_data(1)
