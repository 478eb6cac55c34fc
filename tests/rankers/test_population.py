import numpy as np
import pytest
from helpers.returning import Columns, Returns
from sklearn.tree import DecisionTreeRegressor

from moerank.rankers import (
    FittedPopulation,
    LinearPopulation,
    Population,
    side_by_side,
    train_population,
)


def linear(data):
    return LinearPopulation(np.random.default_rng(0).normal(size=(4, data.n_features)))


def trees(data):
    masks = np.eye(4, data.n_features, dtype=bool)
    fits = [DecisionTreeRegressor(max_depth=3).fit(data.X[:, mask], data.y) for mask in masks]
    return FittedPopulation(tuple(fits), masks)


def scored(data):
    return train_population(Returns(Columns(4)), data, feature_mask=np.ones((4, data.n_features), bool))


KINDS = [linear, trees, scored, lambda data: side_by_side([linear(data).take(np.array([0])), scored(data)])]


@pytest.mark.parametrize("make", KINDS)
def test_what_is_taken_scores_as_before_and_nothing_scores_zero(noisy_data, make):
    population = make(noisy_data)
    assert isinstance(population, Population)
    scores = population.scores(noisy_data.X)
    assert scores.shape == (noisy_data.n_documents, len(population))
    assert (np.ptp(scores, axis=0) > 0).all()
    rows = np.array([2, -1, 0, 2])
    taken = population.take(rows)
    expected = scores[:, [2, 0, 0, 2]] * [1, 0, 1, 1]
    assert len(taken) == 4
    np.testing.assert_array_equal(taken.scores(noisy_data.X), expected)
    assert taken.scores(noisy_data.X).flags.c_contiguous
    again = taken.take(np.array([1, 3, -1]))
    np.testing.assert_array_equal(again.scores(noisy_data.X), expected[:, [1, 3, 1]])


def test_side_by_side_keeps_the_order_and_the_weights(noisy_data):
    one, other, mixed = linear(noisy_data), linear(noisy_data), trees(noisy_data)
    W = side_by_side([one, other.take(np.array([3]))]).coefs
    np.testing.assert_array_equal(W, np.concatenate([one.coefs, other.coefs[3:]]))
    assert side_by_side([mixed]) is mixed
    together = side_by_side([mixed, one])
    assert together.coefs is None
    expected = np.hstack([mixed.scores(noisy_data.X), one.scores(noisy_data.X)])
    np.testing.assert_array_equal(together.scores(noisy_data.X), expected)
