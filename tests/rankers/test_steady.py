import numpy as np
import pytest

from moerank.data import RankingData
from moerank.metrics import MAP
from moerank.rankers.boosting import TrailingMean, steadied


@pytest.mark.parametrize(("n_values", "reach"), [(5, 0), (9, 0), (10, 1), (57, 5), (100, 10), (300, 10)])
def test_every_value_becomes_the_mean_of_its_neighbourhood(n_values, reach):
    values = np.random.default_rng(n_values).random(n_values)
    near = np.abs(np.subtract.outer(np.arange(n_values), np.arange(n_values))) <= reach
    np.testing.assert_allclose(steadied(values), (near * values).sum(axis=1) / near.sum(axis=1), rtol=1e-12)


def test_a_plateau_is_decided_by_its_first_place():
    assert int(np.argmax(steadied(np.append(np.zeros(50), np.full(450, 1 / 3))))) == 60


def test_the_trailing_mean_begins_with_the_twenty_first_value():
    rng = np.random.default_rng(0)
    data = RankingData(rng.random((30, 1)), rng.integers(0, 2, 30), np.repeat([0, 1, 2], 10))
    scores = rng.random((60, 30))
    watched, values = TrailingMean(MAP()), [MAP().score(data, row) for row in scores]
    found = [watched(data, row) for row in scores]
    assert found[:20] == list(range(-20, 0))
    np.testing.assert_allclose(found[20:], [np.mean(values[t - 20 : t + 1]) for t in range(20, 60)], rtol=1e-12)
