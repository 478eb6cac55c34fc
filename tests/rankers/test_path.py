import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from moerank.data import RankingData
from moerank.mofsrank import MOFSRank
from moerank.rankers import FittedPopulation, FSMRank, RankRLS, SelectionPath, train_on_subsets

BUDGET = {"population": 10, "generations": 4}


@pytest.mark.parametrize("ranker", [RankRLS(alpha=0.1), Ridge(alpha=0.1)])
def test_a_population_of_weights_equals_single_trainings(noisy_data, ranker):
    masks = np.random.default_rng(0).random((6, noisy_data.n_features)) < 0.4
    masks[2] = masks[0]
    masks[4] = False
    W = train_on_subsets(ranker, noisy_data, masks).coefs
    assert not W[4].any()
    for row in (0, 1, 2, 3, 5):
        single = train_on_subsets(ranker, noisy_data, masks[row : row + 1])
        np.testing.assert_array_equal(W[row], single.coefs[0])
    np.testing.assert_array_equal(W[2], W[0])


def test_a_population_without_weights_trains_equal_rows_once(noisy_data):
    masks = np.zeros((3, noisy_data.n_features), bool)
    masks[1:, :3] = True
    population = train_on_subsets(DecisionTreeRegressor(max_depth=3), noisy_data, masks)
    assert isinstance(population, FittedPopulation)
    assert population.rankers[1] is population.rankers[2]
    scores = SelectionPath(masks, population).scores(noisy_data.X)
    assert not scores[:, 0].any()
    expected = DecisionTreeRegressor(max_depth=3).fit(noisy_data.X[:, :3], noisy_data.y).predict(noisy_data.X[:, :3])
    np.testing.assert_array_equal(scores[:, 1], expected)


def test_sparse_weights_are_cut_at_the_largest(noisy_data):
    ranker = FSMRank(lambda1=1e-5, lambda2=1e-4).fit(noisy_data)
    path = ranker.path(noisy_data)
    for k, (mask, w) in enumerate(zip(path.feature_mask, path.rankers.coefs, strict=True), start=1):
        largest = np.sort(np.abs(ranker.coef_))[::-1][:k]
        np.testing.assert_array_equal(np.sort(np.abs(w))[::-1][:k], largest)
        np.testing.assert_array_equal(w[mask], ranker.coef_[mask])
        assert not w[~mask].any()


@pytest.mark.parametrize("final", ["train", "validation"])
def test_the_path_of_a_front_is_its_best_small_member(noisy_data, final):
    disagreeing = RankingData(noisy_data.X, noisy_data.y[::-1], noisy_data.qid)
    solver = MOFSRank(
        final=final, random_state=1, instance_selection=BUDGET, feature_selection=BUDGET, ensemble=BUDGET
    ).fit(noisy_data, validation=disagreeing)
    path, front = solver.path(noisy_data), solver.front_
    for k in range(1, noisy_data.n_features + 1):
        small = front[front["n_features"] <= k]
        if small.empty:
            assert not path.feature_mask[k - 1].any()
            continue
        best = small["error"].idxmin()  # whatever the data say by which one member is chosen
        np.testing.assert_array_equal(path.rankers.coefs[k - 1], solver.front_coefs_[best])
        assert np.flatnonzero(path.feature_mask[k - 1]).tolist() == list(front["features"][best])
