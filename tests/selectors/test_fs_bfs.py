from itertools import combinations

import numpy as np
import pytest
from lightgbm import LGBMRanker
from sklearn.base import clone

from moerank.data import RankingData
from moerank.metrics import MAP, NDCG
from moerank.rankers import LambdaMART, RankBoost, RankRLS, RankSVM
from moerank.selectors.fs_bfs import FSBFS, best_first, coordinate_ascent

QUICK = {"max_size": 3, "patience": 3, "restarts": 1}


@pytest.fixture(scope="module")
def fitted(data):
    return FSBFS(2, **QUICK).fit(data.X, data.y, qid=data.qid)


def subsets(n, max_size):
    return [subset for size in range(1, max_size + 1) for subset in combinations(range(n), size)]


@pytest.mark.parametrize("seed", range(8))
def test_with_patience_best_first_search_finds_the_best_subset(seed):
    """Every subset can be reached by neighbours, so a search that does not give up looks at all of them."""
    values = dict(zip(subsets(6, 3), np.random.default_rng(seed).random(41).tolist(), strict=True))
    best = max(values, key=values.get)
    result = best_first((0,), range(6), values.__getitem__, len(values), 3, 0.0)
    assert result == best
    hasty = best_first((0,), range(6), values.__getitem__, 1, 3, 0.0)
    assert values[hasty] <= values[best]


def test_best_first_search_looks_at_subsets_in_the_order_of_their_value():
    seen = []
    values = {(0,): 0.1, (0, 1): 0.5, (0, 2): 0.3, (1,): 0.2, (0, 1, 2): 0.2, (2,): 0.0, (1, 2): 0.9}

    def value(subset):
        if subset not in seen:
            seen.append(subset)
        return values[subset]

    assert best_first((0,), range(3), value, 3, 3, 0.0) == (1, 2)
    assert seen == [(0,), (0, 1), (0, 2), (1,), (0, 1, 2), (2,), (1, 2)]
    # (0, 1) is better than (0,); (0, 2) and, before the larger (0, 1, 2) of equal value, (1,) are two that are not.
    assert best_first((0,), range(3), value, 2, 3, 0.0) == (0, 1)


def test_each_part_has_the_value_of_its_combination(data, fitted):
    assert sorted(f for subset in fitted.subsets_ for f in subset) == list(range(8))
    assert max(map(len, fitted.subsets_)) <= 3
    assert any(len(subset) > 1 for subset in fitted.subsets_)
    for subset, weights, value in zip(fitted.subsets_, fitted.combinations_, fitted.values_, strict=True):
        assert set(np.flatnonzero(weights)) <= set(subset)
        assert np.abs(weights).sum() == pytest.approx(1.0)
        assert NDCG(10).score(data, data.X @ weights) == value
        assert coordinate_ascent(data, NDCG(10), subset, 1, 0.001)[1] == value


@pytest.mark.parametrize("ranker", [None, RankRLS(alpha=0.1)])
def test_ranker_is_trained_on_the_new_features(data, ranker):
    selector = FSBFS(2, ranker, **QUICK).fit(data.X, data.y, qid=data.qid)
    new = data.X @ selector.combinations_[:2].T
    alone = (ranker or RankSVM()).fit(new, data.y, qid=data.qid)
    np.testing.assert_allclose(selector.coef_, alone.coef_ @ selector.combinations_[:2], rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(selector.predict(data.X), alone.predict(new), rtol=1e-4, atol=1e-8)
    assert np.flatnonzero(selector.support_).tolist() == sorted(np.flatnonzero(selector.combinations_[:2].any(axis=0)))


def test_path_counts_original_features(data, fitted):
    path = fitted.path(data)
    n_members = np.count_nonzero(fitted.combinations_, axis=1)
    for k in range(1, 9):
        taken = int((n_members.cumsum() <= k).sum())
        expected = fitted.combinations_[:taken].any(axis=0)
        assert path.feature_mask[k - 1].tolist() == expected.tolist()
        if taken == 2:
            np.testing.assert_allclose(path.rankers.coefs[k - 1], fitted.coef_, rtol=1e-4)
        assert taken or not path.rankers.coefs[k - 1].any()


def test_tuning_partitions_once_and_counts_new_features(data, held_out, monkeypatch):
    train = RankingData(data.X, data.y, data.qid)
    calls = []

    def counted(*arguments):
        calls.append(1)
        return coordinate_ascent(*arguments)

    monkeypatch.setattr("moerank.selectors.fs_bfs.coordinate_ascent", counted)
    solver = FSBFS(**QUICK)
    tuned = solver.tune(train, held_out)
    n_calls = len(calls)
    result = {}
    for entry in solver.default_grid(train):
        selector = FSBFS(**{**QUICK, **entry})._learn(train)
        result[entry["n_features_to_select"], entry["ranker"].C] = MAP().score(held_out, selector.predict(held_out.X))
    assert len(calls) == n_calls
    assert result[tuned.n_features_to_select, tuned.ranker.C] == pytest.approx(max(result.values()))


@pytest.mark.parametrize(
    "ranker",
    [RankBoost(n_rounds=4), LambdaMART(n_trees=5, min_leaf=3), LGBMRanker(n_estimators=2, n_jobs=1, verbose=-1)],
    ids=lambda ranker: type(ranker).__name__,
)
def test_a_ranker_without_weights_ranks_by_the_new_features(data, held_out, ranker):
    fitted = FSBFS(2, ranker, **QUICK)._learn(data)
    new, new_held_out = (part.X @ fitted.combinations_[:2].T for part in (data, held_out))
    group = {"group": np.diff(data.offsets)} if isinstance(ranker, LGBMRanker) else {"qid": data.qid}
    direct = clone(ranker).fit(new, data.y, **group)
    np.testing.assert_allclose(fitted.predict(held_out.X), direct.predict(new_held_out), rtol=1e-12, atol=1e-12)
    members = np.flatnonzero((fitted.combinations_[:2] != 0).any(axis=0))
    np.testing.assert_array_equal(np.flatnonzero(fitted.support_), members)
    assert not hasattr(fitted, "coef_") and not hasattr(fitted, "forest_")


def make(seed, n_features, n_queries=6):
    rng = np.random.default_rng(seed)
    X = rng.random((12 * n_queries, n_features))
    hidden = X @ rng.normal(size=n_features) + rng.normal(scale=0.1, size=len(X))
    return RankingData(X, np.digitize(hidden, np.quantile(hidden, [0.6, 0.9])), np.repeat(np.arange(n_queries), 12))


def one_by_one(data, metric, restarts, tolerance):
    """The same search, a candidate at a time."""
    n = data.n_features
    best = (None, -1.0)
    for first in range(min(restarts, n)):
        w = [1.0 / n] * n
        value = metric.score(data, data.X @ w)
        while True:
            before = value
            for f in [(first + k) % n for k in range(n)]:
                step = 0.001 if w[f] == 0 or abs(w[f]) >= 0.002 else 0.05 * abs(w[f])
                candidates = []
                for sign in (1.0, -1.0):
                    total = 0.0
                    for doubling in range(25):
                        total += sign * step * 2.0**doubling
                        candidates.append(w[f] + total)
                candidates.append(0.0)
                top, top_value = None, value
                for candidate in candidates:
                    changed = [*w[:f], candidate, *w[f + 1 :]]
                    if any(changed) and metric.score(data, data.X @ changed) > top_value:
                        top, top_value = changed, metric.score(data, data.X @ changed)
                if top is not None:
                    w = [weight / sum(map(abs, top)) for weight in top]
                    value = top_value
            if value - before < tolerance:
                break
        if value > best[1]:
            best = (w, value)
    return best


@pytest.mark.parametrize("metric", [NDCG(10), NDCG(3), MAP()])
@pytest.mark.parametrize(("n_features", "restarts"), [(1, 5), (2, 1), (3, 5), (4, 2)])
def test_equals_the_search_one_candidate_at_a_time(metric, n_features, restarts):
    data = make(n_features, n_features)
    weights, value = coordinate_ascent(data, metric, range(data.n_features), restarts, 0.001)
    expected, expected_value = one_by_one(data, metric, restarts, 0.001)
    np.testing.assert_allclose(weights, expected, rtol=1e-9)
    assert value == pytest.approx(expected_value, abs=1e-14)
    assert value == metric.score(data, data.X @ weights)
    assert np.abs(weights).sum() == pytest.approx(1.0)
