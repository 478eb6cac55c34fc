import numpy as np

from moerank.data import RankingData
from moerank.training.sorted import PairedDocuments


def test_only_queries_with_different_labels_take_part():
    y = [0, 0, 1, 0, 2, 2, 2, 0, 1, 1]
    qid = [1, 1, 2, 2, 3, 3, 3, 4, 4, 4]
    data = RankingData(np.arange(10.0)[:, None], y, qid)
    documents = PairedDocuments.of(data)
    assert documents.rows.tolist() == [False, False, True, True, False, False, False, True, True, True]
    assert documents.pairs.offsets.tolist() == [0, 2, 5]
    assert documents.pairs.n_pairs == len(data.pairs) == 3
    assert documents.pairs.n_worse.tolist() == [1, 0, 0, 1, 1]


def test_the_pairs_are_those_of_the_data():
    rng = np.random.default_rng(0)
    data = RankingData(rng.random((80, 2)), rng.integers(0, 3, 80), np.sort(rng.integers(0, 30, 80)))
    documents = PairedDocuments.of(data)
    assert 0 < documents.rows.sum() < 80
    worse = np.bincount(data.pairs.better, minlength=80)
    better = np.bincount(data.pairs.worse, minlength=80)
    np.testing.assert_array_equal(documents.pairs.n_worse, worse[documents.rows])
    np.testing.assert_array_equal(documents.pairs.n_better, better[documents.rows])
    assert not (worse + better)[~documents.rows].any()


def test_they_are_remembered_with_the_data():
    data = RankingData(np.eye(3), [0, 1, 2])
    assert PairedDocuments.of(data) is PairedDocuments.of(data)
