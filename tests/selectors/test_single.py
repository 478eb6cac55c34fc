import numpy as np
import pytest

from moerank.data import RankingData
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, NDCG, MeanNDCG, Precision
from moerank.rankers.importance import single_feature_values
from moerank.selectors.filter import SingleFeatures


def test_orders_by_the_better_direction_or_by_large_values(data):
    both = SingleFeatures(2, metric=MAP()).fit(data.X, data.y, qid=data.qid)
    assert np.flatnonzero(both.support_).tolist() == [1, 4]
    assert np.flatnonzero(both.coef_).tolist() == [1, 4]
    assert both.coef_[1] > 0 > both.coef_[4]
    values = single_feature_values(data, MAP())
    assert (np.diff(values.max(axis=0)[both.order_]) <= 0).all()
    upwards = SingleFeatures(metric=MAP(), both_directions=False).fit(data.X, data.y, qid=data.qid)
    assert (np.diff(values[0][upwards.order_]) <= 0).all()
    assert upwards.order_.tolist().index(4) > 1 == both.order_.tolist().index(4)


def test_the_metric_decides(data):
    orders = [
        SingleFeatures(metric=metric).fit(data.X, data.y, qid=data.qid).order_.tolist() for metric in (NDCG(1), MAP())
    ]
    assert orders[0] != orders[1]
    default = SingleFeatures().fit(data.X, data.y, qid=data.qid)
    explicit = SingleFeatures(metric=NDCG(10)).fit(data.X, data.y, qid=data.qid)
    assert default.order_.tolist() == explicit.order_.tolist()


@pytest.mark.parametrize("metric", [NDCG(5), MAP(), MeanNDCG(), Precision(3)], ids=repr)
def test_values_of_single_features_are_those_of_unit_weights_to_the_bit(metric):
    rng = np.random.default_rng(18)
    X = np.round(rng.normal(size=(90, 11)), 1)
    X[rng.random(X.shape) < 0.3] = 0.0
    X[rng.random(X.shape) < 0.2] = -0.0  # as scores they tie with 0, and rank in order of row
    data = RankingData(X, rng.integers(0, 3, 90), np.sort(rng.integers(0, 9, 90)))
    values = single_feature_values(data, metric)
    assert values.shape == (2, 11)
    for sign, row in zip((1.0, -1.0), values, strict=True):
        np.testing.assert_array_equal(row, metric.score(data, linear_scores(data.X, sign * np.eye(11))))
        np.testing.assert_array_equal(row, [metric.score(data, sign * x) for x in data.X.T])
    assert len(np.unique(values)) > 4
