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


@pytest.fixture(scope="session")
def three_relevant():
    """Six queries, four labels, ten features of which three matter, one of them downwards."""
    rng = np.random.default_rng(0)
    sizes = [1, 30, 2, 45, 17, 40]
    X = rng.random((sum(sizes), 10))
    hidden = 2.0 * X[:, 0] - X[:, 3] + 0.5 * X[:, 7] + rng.normal(scale=0.4, size=len(X))
    y = np.digitize(hidden, np.quantile(hidden, [0.5, 0.7, 0.9]))
    return RankingData(X, y, np.repeat(np.arange(len(sizes)), sizes))
