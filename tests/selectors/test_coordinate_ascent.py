import numpy as np
import pytest

from moerank.data import RankingData
from moerank.metrics import MAP, NDCG
from moerank.selectors.fs_bfs import coordinate_ascent


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
    weights, value = coordinate_ascent(data, metric, None, restarts, 0.001)
    expected, expected_value = one_by_one(data, metric, restarts, 0.001)
    np.testing.assert_allclose(weights, expected, rtol=1e-9)
    assert value == pytest.approx(expected_value, abs=1e-14)
    assert value == metric.score(data, data.X @ weights)
    assert np.abs(weights).sum() == pytest.approx(1.0)
