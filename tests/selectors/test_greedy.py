"""Greedy selection against retraining; tests/rankers/test_additive.py compares paths of step functions with systems."""

from itertools import pairwise

import numpy as np
import pytest

from moerank import GreedyAdditive
from moerank.data import RankingData, centre_in_queries
from moerank.metrics import MAP, NDCG
from moerank.rankers import AdditiveRLS, LambdaMART
from moerank.selectors.greedy import GreedyRankRLS


def ridge_weights(X, y, ridge):
    return np.linalg.solve(X.T @ X + ridge * np.eye(X.shape[1]), X.T @ y)


def left_out_error(X, y, offsets, ridge):
    """Σ over queries of the squared error of the ranker trained without the query."""
    total = 0.0
    for begin, end in pairwise(offsets):
        query = np.arange(begin, end)
        w = ridge_weights(np.delete(X, query, axis=0), np.delete(y, query), ridge)
        total += np.sum((y[begin:end] - X[begin:end] @ w) ** 2)
    return total


@pytest.mark.parametrize("alpha", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(
    ("sizes", "n_features"),
    [([7, 12, 2, 9], 5), ([11, 8, 15], 8), ([5, 20, 1, 13, 6], 13)],
    ids=["fewer than a vector", "one vector", "two vectors"],
)
def test_features_errors_and_weights_are_those_of_retraining_without_each_query(sizes, n_features, alpha):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(sum(sizes), n_features))
    y = np.digitize(X[:, : n_features // 2].sum(axis=1) + rng.normal(size=len(X)), [-1, 0, 1])
    data = RankingData(X, y, np.repeat(np.arange(len(sizes)), sizes))
    solver = GreedyRankRLS(n_features, alpha).fit(data)
    X, y = centre_in_queries(X, data.offsets), centre_in_queries(y.astype(float), data.offsets)
    order = []
    for error, w in zip(solver.errors_, solver.path_coefs_, strict=True):
        rest = [f for f in range(n_features) if f not in order]
        trials = [left_out_error(X[:, [*order, f]], y, data.offsets, alpha) for f in rest]
        order.append(rest[int(np.argmin(trials))])
        assert error == pytest.approx(min(trials), rel=1e-9)
        np.testing.assert_allclose(w[order], ridge_weights(X[:, order], y, alpha), rtol=1e-8, atol=1e-10)
        assert not np.delete(w, order).any()
    assert solver.order_.tolist() == order


def test_a_shorter_path_is_the_beginning_of_a_longer_one(data):
    long, short = (GreedyRankRLS(k).fit(data.X, data.y, qid=data.qid) for k in (6, 3))
    np.testing.assert_array_equal(short.path_coefs_, long.path_coefs_[:3])
    assert short.get_support(indices=True).tolist() == sorted(long.order_[:3].tolist())
    np.testing.assert_allclose(short.predict(data.X), data.X @ short.coef_, rtol=1e-12)


def test_tuning_takes_the_best_of_all_paths(data):
    alphas = (100.0, 0.1)
    grid = [{"n_features_to_select": size, "alpha": alpha} for size in range(1, 9) for alpha in alphas]
    tuned = GreedyRankRLS().tune(data, data, grid)
    values = {}
    for alpha in alphas:
        solver = GreedyRankRLS(8, alpha).fit(data.X, data.y, qid=data.qid)
        for k, w in enumerate(solver.path_coefs_, start=1):
            values[alpha, k] = MAP().score(data, data.X @ w)
    assert values[tuned.alpha, tuned.n_features_to_select] == max(values.values())


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
