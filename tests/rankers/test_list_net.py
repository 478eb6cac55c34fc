import numpy as np

from moerank.data import RankingData
from moerank.metrics import MAP
from moerank.rankers import ListNet


def test_queries_with_equal_labels_change_nothing(noisy_data):
    rng = np.random.default_rng(3)
    X = np.vstack([rng.random((6, noisy_data.n_features)), noisy_data.X, rng.random((4, noisy_data.n_features))])
    y = np.concatenate([[2] * 6, noisy_data.y, [0] * 4])
    more = RankingData(X, y, np.concatenate([[98] * 6, noisy_data.qid, [99] * 4]))
    np.testing.assert_array_equal(ListNet().fit(more).coef_, ListNet().fit(noisy_data).coef_)


def test_tuning_takes_the_epoch_that_ranks_the_validation_data_best(noisy_data):
    rng = np.random.default_rng(2)
    X = noisy_data.X + rng.normal(scale=0.3, size=noisy_data.X.shape)
    validation = RankingData(X, noisy_data.y, noisy_data.qid)
    path = ListNet(n_epochs=1000).fit(noisy_data).epoch_coefs_
    quality = [MAP().score(validation, X @ w) for w in path]
    assert 0 < np.argmax(quality) < 999
    assert ListNet().tune(noisy_data, validation).n_epochs == np.argmax(quality) + 1
