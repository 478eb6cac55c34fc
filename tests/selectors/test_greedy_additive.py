"""Greedy selection of step functions; tests/rankers/test_additive.py compares its path with plain systems."""

import numpy as np

from moerank import GreedyAdditive
from moerank.metrics import NDCG
from moerank.rankers import AdditiveRLS, LambdaMART

PARAMETERS = {"n_bins": 6, "smooth": 0.5, "alpha": 0.01}


def test_each_size_has_the_additive_ranker_of_the_first_features(data):
    solver = GreedyAdditive(3, **PARAMETERS).fit(data)
    judge = AdditiveRLS(**PARAMETERS)
    assert solver.order_.tolist() == judge.forward_path(data).tolist()
    masks = np.array([np.isin(np.arange(8), solver.order_[:k]) for k in range(1, 9)])
    expected = judge.fit_population(data, feature_mask=masks).scores(data.X)
    np.testing.assert_array_equal(solver.path(data).scores(data.X), expected)
    np.testing.assert_array_equal(solver.predict(data.X), expected[:, 2])
    assert len(solver.forest_.roots) == solver.support_.sum() == 3


def test_it_finds_a_feature_that_is_best_in_the_middle(data):
    changed = data.X.copy()
    changed[:, 1] = np.where(np.arange(len(changed)) % 2, 1.0, -1.0) * (1.0 - changed[:, 1])
    middling = type(data)(changed, data.y, data.qid)
    assert GreedyAdditive(1, smooth=1.0).fit(middling).order_[0] == 1


def test_tuning_tries_every_size_with_the_grid_of_the_ranker(data, held_out):
    tuned = GreedyAdditive(n_bins=4).tune(data, held_out, metric=NDCG(5))
    grid = AdditiveRLS(4).grid_of_bins(data)
    best = NDCG(5).score(held_out, GreedyAdditive(**tuned.get_params(deep=False)).fit(data).predict(held_out.X))
    values = []
    for entry in grid:
        scores = GreedyAdditive(n_bins=4, **entry).fit(data).path(data).scores(held_out.X)
        values += NDCG(5).score(held_out, scores).tolist()
    assert best == max(values)


def test_another_ranker_may_be_served(data):
    trees = LambdaMART(10, n_leaves=4)
    solver = GreedyAdditive(2, trees, **PARAMETERS).fit(data)
    columns = solver.support_
    expected = trees.fit(data.X[:, columns], data.y, qid=data.qid).predict(data.X[:, columns])
    np.testing.assert_array_equal(solver.predict(data.X), expected)
