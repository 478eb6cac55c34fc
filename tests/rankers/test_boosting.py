"""RankBoost, FRank and AdaRank, every round by its definition, and ListNet at the minimum that scipy finds."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from moerank.data import RankingData
from moerank.metrics import MAP, NDCG
from moerank.rankers import AdaRank, FRank, ListNet, RankBoost
from moerank.rankers.boosting import TrailingMean, steadied

RANKERS = [RankBoost, FRank]


def enumerate_stumps(data, n_thresholds):
    """All stumps in the order in which they win ties: their feature and threshold, and h(xᵢ) − h(xⱼ) of every pair."""
    names, differences = [], []
    for f, x in enumerate(data.X.T):
        parts = x.min() + np.ptp(x) * np.arange(n_thresholds or 1) / (n_thresholds or 1)
        for threshold in np.unique(x)[:-1] if n_thresholds is None else parts:
            h = (x > threshold).astype(float)
            names.append((f, (x[h == 0].max() + x[h == 1].min()) / 2))
            differences.append(h[data.pairs.better] - h[data.pairs.worse])
    return names, np.array(differences)


def best_by_enumeration(names, differences, D):
    """Feature, threshold and differences of the stump with the largest r = Σ D (h(xᵢ) − h(xⱼ)), and r.

    Of stumps within rounding it is the first.
    """
    r = differences @ D
    first = int(np.argmax(r > r.max() - 1e-9 * D.sum()))
    return *names[first], differences[first], r[first]


@pytest.fixture(scope="module")
def data(noisy_data):
    """Half of its features have nine values at most."""
    X = noisy_data.X.copy()
    X[:, 6:] = np.round(8 * X[:, 6:]) / 8
    return RankingData(X, noisy_data.y, noisy_data.qid)


@pytest.mark.parametrize("n_thresholds", [10, 3, None])
def test_every_round_of_rank_boost_equals_explicit_pairs(data, n_thresholds):
    ranker = RankBoost(40, n_thresholds).fit(data)
    assert ranker.n_rounds_ == 40
    staged = ranker._scores_by_size(data, data.X)
    pairs = data.pairs
    names, differences = enumerate_stumps(data, n_thresholds)
    D = np.full(len(pairs), 1.0 / len(pairs))
    bound = 1.0
    for t in range(40):
        feature, threshold, h, r = best_by_enumeration(names, differences, D)
        assert (ranker.features_[t], ranker.thresholds_[t]) == (feature, pytest.approx(threshold, rel=1e-7))
        alpha = 0.5 * np.log((1 + r) / (1 - r))
        assert ranker.alphas_[t] == pytest.approx(alpha, rel=1e-10)
        grown = D * np.exp(-alpha * h)
        assert grown.sum() <= np.sqrt(1 - r**2) + 1e-12
        D = grown / grown.sum()
        margin = staged[pairs.better, t] - staged[pairs.worse, t]
        direct = np.exp(-margin)
        np.testing.assert_allclose(direct / direct.sum(), D, rtol=1e-10)
        bound *= grown.sum()
        assert np.mean(margin <= 0) <= bound
        assert bound == pytest.approx(direct.mean(), rel=1e-10)


@pytest.mark.parametrize("n_thresholds", [10, None])
def test_every_round_of_f_rank_equals_explicit_pairs(data, n_thresholds):
    ranker = FRank(40, n_thresholds).fit(data)
    assert ranker.n_rounds_ == 40
    staged = np.column_stack([np.zeros(data.n_documents), ranker._scores_by_size(data, data.X)])
    pairs = data.pairs
    query = data.qid[pairs.better]
    share = 1.0 / np.array([(query == q).sum() for q in query])
    names, differences = enumerate_stumps(data, n_thresholds)
    at_most = np.inf
    for t in range(41):
        o = staged[pairs.better, t] - staged[pairs.worse, t]
        loss = np.sum(share * (1 - np.sqrt(1 / (1 + np.exp(-o)))))
        assert loss <= at_most
        if t < 40:
            W = share * np.exp(-o) / (1 + np.exp(-o)) ** 1.5
            feature, threshold, h, r = best_by_enumeration(names, differences, W)
            assert (ranker.features_[t], ranker.thresholds_[t]) == (feature, pytest.approx(threshold, rel=1e-7))
            right, wrong = W[h == 1].sum(), W[h == -1].sum()
            assert r == pytest.approx(right - wrong, rel=1e-10)
            assert ranker.right_[t] == pytest.approx(right / W.sum(), rel=1e-10)
            assert ranker.wrong_[t] == pytest.approx(wrong / W.sum(), rel=1e-10)
            empty = W.mean()
            alpha = 0.5 * np.log(max(right, empty) / max(wrong, empty))
            assert ranker.alphas_[t] == pytest.approx(alpha, rel=1e-10)
            at_most = loss - 0.5 * (right * (1 - np.exp(-alpha)) - wrong * (np.exp(alpha) - 1)) + 1e-12
            assert at_most < loss


@pytest.mark.parametrize("kind", RANKERS)
def test_tuning_takes_the_number_of_rounds_with_the_best_neighbourhood(noisy_data, kind):
    rng = np.random.default_rng(8)
    vali = RankingData(rng.random((60, 12)), rng.integers(0, 3, 60), np.repeat(np.arange(4), 15))
    values = MAP().score(vali, kind(30).fit(noisy_data)._scores_by_size(noisy_data, vali.X))
    means = [np.mean(values[max(t - 3, 0) : t + 4]) for t in range(30)]
    assert kind(30).tune(noisy_data, vali).n_rounds == 1 + np.argmax(means)


@pytest.mark.parametrize("kind", RANKERS)
def test_a_perfect_stump_has_a_finite_weight_and_many_rounds_of_it_end(kind):
    data = RankingData([[0.0], [0.0], [1.0]], [0, 0, 1], 0)
    ranker = kind(n_rounds=5000).fit(data)
    assert np.isfinite(ranker.alphas_).all()
    assert 1 <= ranker.n_rounds_ < 5000
    assert np.isfinite(ranker.predict(data.X)).all()
    assert ranker.right_[0] == 1.0


def test_the_weight_of_a_perfect_stump_counts_the_empty_set_as_one_pair():
    data = RankingData([[0.0], [0.0], [0.0], [1.0]], [0, 0, 0, 1], 0)
    assert RankBoost(1).fit(data).alphas_[0] == pytest.approx(0.5 * np.log(2 / (1 / 3)))
    assert FRank(1).fit(data).alphas_[0] == pytest.approx(0.5 * np.log(3))


@pytest.mark.parametrize(("n_values", "reach"), [(5, 0), (9, 0), (10, 1), (57, 5), (100, 10), (300, 10)])
def test_every_value_becomes_the_mean_of_its_neighbourhood(n_values, reach):
    values = np.random.default_rng(n_values).random(n_values)
    near = np.abs(np.subtract.outer(np.arange(n_values), np.arange(n_values))) <= reach
    np.testing.assert_allclose(steadied(values), (near * values).sum(axis=1) / near.sum(axis=1), rtol=1e-12)


def test_the_trailing_mean_begins_with_the_twenty_first_value():
    rng = np.random.default_rng(0)
    data = RankingData(rng.random((30, 1)), rng.integers(0, 2, 30), np.repeat([0, 1, 2], 10))
    scores = rng.random((60, 30))
    watched, values = TrailingMean(MAP()), [MAP().score(data, row) for row in scores]
    found = [watched(data, row) for row in scores]
    assert found[:20] == list(range(-20, 0))
    np.testing.assert_allclose(found[20:], [np.mean(values[t - 20 : t + 1]) for t in range(20, 60)], rtol=1e-12)


MEASURE = {"map": MAP(), "ndcg": NDCG(10, convention="letor", short_queries="own_length")}


@pytest.fixture(scope="module")
def thirty_queries():
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
def test_every_round_equals_the_definition(thirty_queries, measure, reweighting):
    ranker = AdaRank(measure, 40, reweighting).fit(thirty_queries)
    assert ranker.n_rounds_ == 40
    assert len(set(ranker.features_)) >= 2
    values = MEASURE[measure].per_query
    E = values(thirty_queries, thirty_queries.X).T
    P, w = np.full(30, 1 / 30), np.zeros(6)
    for t in range(40):
        feature = int(np.argmax(E @ P))
        assert ranker.features_[t] == feature
        alpha = 0.5 * np.log(P @ (1 + E[feature]) / (P @ (1 - E[feature])))
        assert ranker.alphas_[t] == pytest.approx(alpha, rel=1e-10)
        w[feature] += alpha
        np.testing.assert_allclose(ranker.path_coefs_[t], w, rtol=1e-10)
        reached = values(thirty_queries, thirty_queries.X @ w)
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


def loss(w, data):
    value = 0.0
    for rows in np.split(np.arange(data.n_documents), data.offsets[1:-1]):
        if np.ptp(data.y[rows]) > 0:
            value -= softmax(data.y[rows].astype(float)) @ log_softmax(data.X[rows] @ w)
    return value


@pytest.fixture(scope="module")
def few_features(noisy_data):
    return RankingData(noisy_data.X[:, [0, 3, 7]], noisy_data.y, noisy_data.qid)


def test_small_steps_end_at_the_minimum_that_scipy_finds(few_features):
    best = minimize(loss, np.zeros(3), args=(few_features,), method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9})
    errors = []
    for rate in (0.02, 0.01):
        ranker = ListNet(6000, rate).fit(few_features)
        errors.append(loss(ranker.coef_, few_features) - best.fun)
    assert -1e-9 < errors[1] < 1e-3 * (loss(np.zeros(3), few_features) - best.fun)
    assert errors[1] < errors[0] / 3  # the distance to the minimum goes with the step, the loss with its square
