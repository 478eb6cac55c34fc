import numpy as np
import pytest

from moerank.data import RankingData
from moerank.mofsrank import MOFSRank
from moerank.rankers import FSMRank, RankRLS, SelectionPath, train_on_subsets
from moerank.rankers.base import Ranker

BUDGET = {"population": 10, "generations": 4}


def test_equal_subsets_are_trained_once_and_all_are_told_of(noisy_data):
    masks = np.zeros((4, noisy_data.n_features), bool)
    masks[[0, 2], 3] = masks[1] = True
    trained, told = [], []

    class First(Ranker):
        def _fit(self, train, validation):
            trained.append(train.n_features)
            self.support_ = np.ones(train.n_features, bool)

        def _scores(self, X):
            return X[:, 0]

    population = train_on_subsets(First(), noisy_data, masks, progress=lambda *state: told.append(state))
    assert sorted(trained) == [1, 12]
    assert told == [(1 / 3, 1), (2 / 3, 2), (1.0, 3)]
    scores = SelectionPath(masks, population).scores(noisy_data.X)
    np.testing.assert_array_equal(scores[:, :3], noisy_data.X[:, [3, 0, 3]])
    assert not scores[:, 3].any()
    W = train_on_subsets(RankRLS(alpha=0.1), noisy_data, masks).coefs
    np.testing.assert_array_equal(W[1], RankRLS(alpha=0.1).fit(noisy_data).coef_)
    np.testing.assert_array_equal(W[0], W[2])
    assert np.count_nonzero(W, axis=1).tolist() == [1, 12, 1, 0]


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
