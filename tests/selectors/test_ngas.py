"""NGAS and XGAS against the listing of their steps, written out with sorted lists of pairs."""

import numpy as np
import pytest

from moerank.metrics import NDCG
from moerank.rankers.importance import single_feature_values
from moerank.selectors.gas import NGAS, XGAS, absolute_correlations


def as_listed(relevance, similarity, p=None):
    """The steps in words: NGAS, or with p XGAS."""
    remaining = set(range(len(relevance)))
    last = min(remaining, key=lambda f: (-relevance[f], f))
    chosen = [last]
    remaining.remove(last)
    while remaining:
        v = sorted((similarity[last][f], f) for f in remaining)[0][1]
        others = [f for _, f in sorted((-similarity[v][f], f) for f in remaining if f != v)]
        compared = 1 if p is None else max(1, round(p * len(others)))
        last = v
        for k in others[:compared]:
            if relevance[k] > relevance[last]:
                last = k
        chosen.append(last)
        remaining.remove(last)
    return chosen


def problem(seed, coarse):
    """Relevances and similarities; coarse ones have ties."""
    rng = np.random.default_rng(seed)
    relevance, pairs = rng.random(12), rng.random((12, 12))
    if coarse:
        relevance, pairs = relevance.round(1), pairs.round(1)
    similarity = np.maximum(pairs, pairs.T)
    np.fill_diagonal(similarity, 1.0)
    return relevance, similarity


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_that_of_the_listing(seed, coarse):
    relevance, similarity = problem(seed, coarse)
    assert NGAS()._search(relevance, similarity).tolist() == as_listed(relevance, similarity)
    orders = {p: XGAS(p=p)._search(relevance, similarity).tolist() for p in (0.05, 0.3, 0.5, 1.0)}
    assert all(order == as_listed(relevance, similarity, p) for p, order in orders.items())
    assert orders[1.0] == np.argsort(-relevance, kind="stable").tolist() or coarse
    assert orders[0.05] == as_listed(relevance, similarity)
    assert len({tuple(order) for order in orders.values()}) > 2


@pytest.mark.parametrize("kind", [NGAS, XGAS])
def test_parts_are_put_together_as_documented(data, kind):
    relevance = single_feature_values(data, NDCG(5)).max(axis=0)
    for similarity in ("spearman", "kendall"):
        selector = kind(3, similarity=similarity, metric=NDCG(5))._learn(data)
        expected = as_listed(relevance, absolute_correlations(data, similarity), getattr(selector, "p", None))
        assert selector.order_.tolist() == expected
        assert np.flatnonzero(selector.support_).tolist() == sorted(expected[:3])
