"""GAS by its objective, NGAS and XGAS by the listing of their steps, HCAS by clusters joined from their definition."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from moerank.data import RankingData
from moerank.metrics import NDCG
from moerank.rankers.importance import single_feature_values
from moerank.selectors.gas import (
    GAS,
    HCAS,
    NGAS,
    XGAS,
    absolute_correlations,
    concordance,
    greedy_order,
    mean_absolute,
    pair_order_values,
)


def objective(chosen, s, e, c):
    """The sum of importance less c times the similarity of all ordered pairs, as the paper writes it."""
    return sum(s[i] for i in chosen) - c * sum(e[i, j] for i in chosen for j in chosen if i != j)


def problem(seed, n=12):
    rng = np.random.default_rng(seed)
    data = RankingData(rng.normal(size=(60, n)) @ rng.normal(size=(n, n)), rng.integers(0, 3, 60), np.arange(60) // 15)
    return rng.random(n), mean_absolute(data.X, data.offsets, concordance)


@pytest.mark.parametrize("c", [0.0, 0.01, 0.1, 1.0])
def test_every_step_takes_the_largest_true_gain(c):
    s, e = problem(0)
    order = greedy_order(s, e, c)
    assert sorted(order) == list(range(12))
    for step in range(12):
        chosen = list(order[:step])
        gains = {j: objective([*chosen, j], s, e, c) - objective(chosen, s, e, c) for j in order[step:]}
        assert gains[order[step]] == pytest.approx(max(gains.values()), abs=1e-12)


@pytest.mark.parametrize("n_levels", [2, 5, 1000])
def test_concordance_equals_the_comparison_of_all_pairs(n_levels):
    rng = np.random.default_rng(n_levels)
    offsets = np.array([0, 1, 3, 40, 41, 77, 80])  # queries of one document do not count
    X = rng.integers(0, n_levels, (80, 7)) / n_levels
    X[:, 6] = X[:, 2]
    shares = []
    for begin, end in ((1, 3), (3, 40), (41, 77), (77, 80)):
        i, j = np.triu_indices(end - begin, 1)
        signs = np.sign(X[begin:end][i] - X[begin:end][j])
        shares.append(np.mean(1.0 - np.abs(signs[:, :, None] - signs[:, None, :]) / 2.0, axis=0))
    share = mean_absolute(X, offsets, concordance)
    np.testing.assert_allclose(share, np.mean(shares, axis=0), rtol=1e-13)
    assert share[2, 6] == 1.0


def test_pair_order_is_the_share_of_preference_pairs(data):
    coarse = RankingData(data.X.round(1), data.y, data.qid)  # with ties
    values = pair_order_values(coarse)
    for f, x in enumerate(coarse.X.T):
        difference = x[coarse.pairs.better] - x[coarse.pairs.worse]
        assert values[0, f] == pytest.approx(np.mean((np.sign(difference) + 1) / 2), rel=1e-12)
        assert values[1, f] == pytest.approx(np.mean((np.sign(-difference) + 1) / 2), rel=1e-12)


@pytest.mark.parametrize("importance", ["loss", "measure"])
def test_parts_are_put_together_as_documented(data, importance):
    values = pair_order_values(data) if importance == "loss" else single_feature_values(data, NDCG(5))
    s = values.max(axis=0)
    s = (s - s.min()) / (s.max() - s.min())
    turned = RankingData(data.X * np.where(values[0] >= values[1], 1, -1), data.y, data.qid)
    e = mean_absolute(turned.X, turned.offsets, concordance)
    selector = GAS(3, None, 0.2, importance, NDCG(5)).fit(data.X, data.y, qid=data.qid)
    assert selector.order_.tolist() == greedy_order(s, e, 0.2).tolist()


@pytest.mark.parametrize(("similarity", "scipys"), [("spearman", spearmanr), ("kendall", kendalltau)])
def test_similarity_is_the_mean_of_scipys_absolute_correlations(data, similarity, scipys):
    rows = [slice(a, b) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True) if b - a > 1]
    for over, parts in (("queries", rows), ("documents", [slice(None)])):
        values = absolute_correlations(data, similarity, over)
        for f, g in ((0, 1), (1, 4), (6, 2)):
            expected = np.mean([abs(scipys(data.X[r, f], data.X[r, g]).statistic) for r in parts])
            assert values[f, g] == values[g, f] == pytest.approx(expected, abs=1e-12)


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


def relevant_problem(seed, coarse):
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
def test_the_order_of_ngas_and_xgas_is_that_of_the_listing(seed, coarse):
    relevance, similarity = relevant_problem(seed, coarse)
    assert NGAS()._search(relevance, similarity).tolist() == as_listed(relevance, similarity)
    orders = {p: XGAS(p=p)._search(relevance, similarity).tolist() for p in (0.05, 0.3, 0.5, 1.0)}
    assert all(order == as_listed(relevance, similarity, p) for p, order in orders.items())
    assert orders[1.0] == np.argsort(-relevance, kind="stable").tolist() or coarse
    assert orders[0.05] == as_listed(relevance, similarity)
    assert len({tuple(order) for order in orders.values()}) > 2


@pytest.mark.parametrize("kind", [NGAS, XGAS])
def test_parts_of_ngas_and_xgas_are_put_together_as_documented(data, kind):
    relevance = single_feature_values(data, NDCG(5)).max(axis=0)
    for similarity in ("spearman", "kendall"):
        selector = kind(3, similarity=similarity, metric=NDCG(5))._learn(data)
        expected = as_listed(relevance, absolute_correlations(data, similarity), getattr(selector, "p", None))
        assert selector.order_.tolist() == expected
        assert np.flatnonzero(selector.support_).tolist() == sorted(expected[:3])


def squared_radius(members, squares):
    """The sum of squared distances of points to their mean, from the squared distances of all pairs."""
    return sum(squares[a, b] for a, b in combinations(members, 2)) / len(members)


def clusters(distances, method, n_clusters):
    """Join the two nearest clusters until so many are left; for Ward, those whose union spreads the least more."""
    parts = [[f] for f in range(len(distances))]
    while len(parts) > n_clusters:

        def apart(pair):
            a, b = pair
            if method == "single":
                return min(distances[i, j] for i in a for j in b)
            spread = [squared_radius(members, distances**2) for members in (a + b, a, b)]
            return spread[0] - spread[1] - spread[2]

        a, b = min(combinations(parts, 2), key=apart)
        parts = [members for members in parts if members is not a and members is not b] + [a + b]
    return parts


@pytest.mark.parametrize("method", ["single", "ward"])
@pytest.mark.parametrize("seed", range(4))
def test_for_each_number_the_most_relevant_of_each_cluster(seed, method):
    rng = np.random.default_rng(seed)
    relevance, pairs = rng.random(9).round(1), rng.random((9, 9))  # relevances with ties, distances without
    similarity = np.maximum(pairs, pairs.T)
    np.fill_diagonal(similarity, 1.0)
    order = HCAS(linkage=method)._search(relevance, similarity)
    for k in range(1, 10):
        best = {min(members, key=lambda f: (-relevance[f], f)) for members in clusters(1 - similarity, method, k)}
        assert set(order[:k].tolist()) == best
