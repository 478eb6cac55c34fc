"""One ranker on many subsets, against rankers fitted by hand to the columns of each."""

import numpy as np
import pytest

from moerank.data import RankingData
from moerank.metrics import MAP
from moerank.rankers import LambdaMART, Ranker, train_on_subsets

MASKS = np.array([[1, 0, 0, 1, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0], [1, 0, 0, 1, 0]], bool)
TREES = LambdaMART(20, n_leaves=4, min_leaf=2)


@pytest.fixture(scope="module")
def held_out():
    rng = np.random.default_rng(4)
    X = rng.random((60, 5)).round(1)
    return RankingData(X, (2.9 * X[:, 0] * X[:, 2]).astype(int), np.repeat(np.arange(5), 12))


def arrays(data, mask):
    return {"X": data.X[:, mask], "y": data.y, "qid": data.qid}


def best_by_hand(train, held_out, mask):
    """LambdaMART with the number of trees whose neighbours have the best mean MAP, each number trained on its own."""
    fits = [LambdaMART(n, n_leaves=4, min_leaf=2).fit(**arrays(train, mask)) for n in range(1, 21)]
    values = [MAP().score(held_out, fit.predict(held_out.X[:, mask])) for fit in fits]
    means = [np.mean(values[max(0, i - 2) : i + 3]) for i in range(20)]
    return fits[int(np.argmax(np.round(means, 12)))]  # of equals the first


def test_lambdamart_is_the_one_fitted_by_hand_to_the_columns_with_trees_chosen_by_validation(small_data, held_out):
    population = train_on_subsets(TREES, small_data, MASKS, held_out)
    by_hand = [best_by_hand(small_data, held_out, mask) for mask in MASKS]
    expected = np.column_stack([fit.predict(held_out.X[:, m]) for fit, m in zip(by_hand, MASKS, strict=True)])
    np.testing.assert_array_equal(population.scores(held_out.X), expected)
    assert len({fit.n_trees for fit in by_hand}) > 1, "each subset has a number of its own"
    assert population.coefs is None
    forest = population.forest(0)
    assert set(forest.columns) == {0, 3}
    np.testing.assert_allclose(forest.scores(held_out.X), expected[:, 0], rtol=0, atol=1e-12)


def test_equal_subsets_are_trained_once_and_all_are_told_of(small_data):
    trained, told = [], []

    class First(Ranker):
        def _fit(self, train, validation):
            trained.append(train.n_features)
            self.support_ = np.ones(train.n_features, bool)

        def _scores(self, X):
            return X[:, 0]

    population = train_on_subsets(First(), small_data, MASKS, progress=lambda *state: told.append(state))
    assert sorted(trained) == [1, 2, 5]
    assert told == [(1 / 3, 1), (2 / 3, 2), (1.0, 3)]
    np.testing.assert_array_equal(population.scores(small_data.X), small_data.X[:, [0, 0, 2, 0]])
