"""AdaRank, every round against the paper's formulas on the values of every query, by the metrics of the package."""

import numpy as np
import pytest

from moerank.data import RankingData
from moerank.metrics import MAP, NDCG
from moerank.rankers import AdaRank

MEASURE = {"map": MAP(), "ndcg": NDCG(10, convention="letor", short_queries="own_length")}


@pytest.fixture(scope="module")
def data():
    """Thirty queries, six features, each good for some of the queries, one of these turned round."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 300)
    X = rng.random((300, 6))
    for query in range(30):
        rows = slice(10 * query, 10 * query + 10)
        X[rows, query % 4] += (0.6, 0.5, 0.4, -0.5)[query % 4] * y[rows]
    return RankingData(X, y, np.repeat(np.arange(30), 10))


@pytest.mark.parametrize("reweighting", ["combined", "cumulative", "weak"])
@pytest.mark.parametrize("measure", ["map", "ndcg"])
def test_every_round_equals_the_definition(data, measure, reweighting):
    ranker = AdaRank(measure, 40, reweighting).fit(data)
    assert ranker.n_rounds_ == 40
    assert len(set(ranker.features_)) >= 2
    values = MEASURE[measure].per_query
    E = values(data, data.X).T
    P, w = np.full(30, 1 / 30), np.zeros(6)
    for t in range(40):
        feature = int(np.argmax(E @ P))
        assert ranker.features_[t] == feature
        alpha = 0.5 * np.log(P @ (1 + E[feature]) / (P @ (1 - E[feature])))
        assert ranker.alphas_[t] == pytest.approx(alpha, rel=1e-10)
        w[feature] += alpha
        np.testing.assert_allclose(ranker.path_coefs_[t], w, rtol=1e-10)
        reached = values(data, data.X @ w)
        assert ranker.train_scores_[t] == pytest.approx(reached.mean(), rel=1e-10)
        P = (
            np.exp(-reached)
            if reweighting == "combined"
            else P * np.exp(-alpha * (reached if reweighting == "cumulative" else E[feature]))
        )
        P = P / P.sum()
    np.testing.assert_array_equal(ranker.coef_, ranker.path_coefs_[-1])
    assert ranker.support_.tolist() == [f in ranker.features_ for f in range(6)]


def one_strong_feature():
    y = np.tile([2, 1, 0, 0, 1], 6)
    rng = np.random.default_rng(1)
    X = np.column_stack([y + rng.normal(scale=0.5, size=30), rng.random(30), rng.random(30)])
    return RankingData(X, y, np.repeat(np.arange(6), 5))


def test_training_ends_where_the_only_feature_is_taken_again():
    data = one_strong_feature()
    ranker = AdaRank(n_rounds=50).fit(data)
    assert (ranker.n_rounds_, ranker.features_.tolist()) == (1, [0])


def test_a_perfect_feature_has_a_finite_weight():
    data = RankingData([[0.0, 0.3], [1.0, 0.1], [2.0, 0.2]], [0, 1, 2], 0)
    ranker = AdaRank().fit(data)
    assert ranker.n_rounds_ == 1
    assert np.isfinite(ranker.alphas_).all()
    assert MAP().score(data, ranker.predict(data.X)) == 1.0
