import numpy as np

from moerank.metrics import MAP, NDCG
from moerank.selectors.single import SingleFeatures, single_feature_values


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
