import numpy as np
import pytest
from scipy.stats import kendalltau

from moerank.data import RankingData
from moerank.metrics import NDCG
from moerank.rankers.importance import single_feature_values, spearman
from moerank.selectors.gas import GAS, concordance, greedy_order, kendall, mean_absolute, pair_order_values


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


def test_equal_gains_go_to_the_earlier_column():
    assert greedy_order(np.ones(4), np.ones((4, 4)), 0.1).tolist() == [0, 1, 2, 3]


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


def test_without_ties_concordance_is_kendalls_tau_moved_to_the_unit_interval():
    X = np.random.default_rng(3).normal(size=(42, 4))
    tau = np.array([[kendalltau(a, b).statistic for a in X.T] for b in X.T])
    np.testing.assert_allclose(concordance(X), (1.0 + tau) / 2.0, rtol=1e-12)
    np.testing.assert_allclose(kendall(X), tau, rtol=1e-12, atol=1e-12)


def test_pair_order_is_the_share_of_preference_pairs(data):
    coarse = RankingData(data.X.round(1), data.y, data.qid)  # with ties
    values = pair_order_values(coarse)
    for f, x in enumerate(coarse.X.T):
        difference = x[coarse.pairs.better] - x[coarse.pairs.worse]
        assert values[0, f] == pytest.approx(np.mean((np.sign(difference) + 1) / 2), rel=1e-12)
        assert values[1, f] == pytest.approx(np.mean((np.sign(-difference) + 1) / 2), rel=1e-12)


@pytest.mark.parametrize("similarity", ["kendall", "spearman"])
@pytest.mark.parametrize("importance", ["loss", "measure"])
@pytest.mark.parametrize("normalise", [True, False])
def test_parts_are_put_together_as_documented(data, importance, similarity, normalise):
    values = pair_order_values(data) if importance == "loss" else single_feature_values(data, NDCG(5))
    s = values.max(axis=0)
    if normalise:
        s = (s - s.min()) / (s.max() - s.min())
    turned = RankingData(data.X * np.where(values[0] >= values[1], 1, -1), data.y, data.qid)
    e = mean_absolute(turned.X, turned.offsets, spearman if similarity == "spearman" else concordance)
    selector = GAS(3, None, 0.2, importance, similarity, NDCG(5), normalise).fit(data.X, data.y, qid=data.qid)
    assert selector.order_.tolist() == greedy_order(s, e, 0.2).tolist()


def test_a_copy_is_not_taken_next_whichever_way_it_is_turned(data):
    for copy in (data.X[:, 1], -data.X[:, 1]):
        X = np.column_stack([data.X, copy])
        selector = GAS(c=1.0).fit(X, data.y, qid=data.qid)
        assert selector.order_[0] in (1, 8)
        assert selector.order_[1] not in (1, 8)
        together = GAS(c=0.0).fit(X, data.y, qid=data.qid)
        assert set(together.order_[:2]) == {1, 8}
