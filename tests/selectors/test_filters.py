from itertools import combinations

import numpy as np
import pytest
from lightgbm import LGBMRanker
from scipy.spatial.distance import jensenshannon
from scipy.stats import gaussian_kde, kendalltau, spearmanr
from sklearn.base import clone
from sklearn.linear_model import Ridge

from moerank import LambdaMARTPermutation, PermutationImportance
from moerank.data import RankingData
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, NDCG, MeanNDCG, Precision
from moerank.rankers import FSMRank, LambdaMART, LinearRanker, RankRLS, RankSVM, RankSVMStruct
from moerank.rankers.importance import single_feature_values
from moerank.selectors.filter import Filter, SingleFeatures
from moerank.selectors.fs_bfs import FSBFS
from moerank.selectors.fs_ed import FLOOR, FSED, expected_divergence
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

TREES = LGBMRanker(n_estimators=5, min_child_samples=5, n_jobs=1, verbose=-1, random_state=0)


class Given(Filter):
    """Orders the features from the last to the first, or the other way; counts how often it is asked."""

    asked = 0

    def __init__(self, n_features_to_select=10, ranker=None, forwards=False):
        super().__init__(n_features_to_select, ranker)
        self.forwards = forwards

    def _own_grid(self, train):
        return [{"forwards": False}, {"forwards": True}]

    def _order(self, train, validation):
        Given.asked += 1
        assert all(np.ptp(column) > 0 for column in train.X.T)
        assert validation is None or validation.n_features == train.n_features
        return np.arange(train.n_features)[:: 1 if self.forwards else -1]


class Rounds(LinearRanker):
    _size = "rounds"

    def __init__(self, rounds=1):
        self.rounds = rounds

    def default_grid(self, train):
        return [{"rounds": rounds} for rounds in range(1, 6)]

    def _weights(self, train):
        return np.full(train.n_features, 1.0 / self.rounds)


@pytest.fixture
def with_constant(data):
    X = data.X.copy()
    X[:, 6] = 0.5
    return RankingData(X, data.y, data.qid)


@pytest.mark.parametrize("ranker", [None, RankRLS(alpha=0.1), FSMRank(lambda2=1e-6), Ridge(), Rounds(3), TREES])
def test_the_ranker_is_trained_on_the_first_features_only(with_constant, ranker):
    data = with_constant
    selector = Given(3, ranker).fit(data.X, data.y, qid=data.qid)
    assert selector.order_.tolist() == [7, 5, 4, 3, 2, 1, 0]
    assert np.flatnonzero(selector.support_).tolist() == [4, 5, 7]
    columns = data.X[:, [4, 5, 7]]
    alone = RankSVM() if ranker is None else ranker
    queries = {"group": np.diff(data.offsets)} if ranker is TREES else {"qid": data.qid}
    alone.fit(columns, data.y, **({} if isinstance(ranker, Ridge) else queries))
    expected = alone.predict(columns) - getattr(alone, "intercept_", 0.0)
    np.testing.assert_allclose(selector.predict(data.X), expected, rtol=1e-4, atol=1e-8)
    assert hasattr(selector, "coef_") == (ranker is not TREES)


def test_rankers_without_weights_have_a_path(data):
    selector = Given(3, TREES).fit(data.X, data.y, qid=data.qid)
    path = selector.path(data)
    assert path.feature_mask.sum(axis=1).tolist() == list(range(1, 9))
    np.testing.assert_array_equal(path.scores(data.X)[:, 2], selector.predict(data.X))
    with pytest.raises(AttributeError, match="LGBMRanker has no weights"):
        selector.coef_  # noqa: B018


def test_grid_crosses_sizes_outermost_with_the_filter_and_the_ranker(data):
    grid = Given().default_grid(data)
    assert len(grid) == 8 * 2 * 5
    assert [entry["n_features_to_select"] for entry in grid] == np.repeat(np.arange(1, 9), 10).tolist()
    assert [entry["ranker"].C for entry in grid[:5]] == [0.005, 0.05, 0.5, 5.0, 50.0]
    assert [entry["forwards"] for entry in grid[:10]] == [False] * 5 + [True] * 5
    assert Given(ranker=Ridge(alpha=7.0)).default_grid(data)[0]["ranker"].alpha == 7.0
    assert {entry["ranker"].rounds for entry in Given(ranker=Rounds()).default_grid(data)} == {5}


def test_tuning_orders_once_a_setting_and_finds_the_best_of_all(data, held_out):
    train = RankingData(data.X, data.y, data.qid)
    Given.asked = 0
    tuned = Given().tune(train, held_out)
    assert Given.asked == 2
    values = []
    for entry in Given().default_grid(train):
        selector = Given(**entry).fit(train.X, train.y, qid=train.qid)
        values.append(MAP().score(held_out, selector.predict(held_out.X)))
    best = Given().default_grid(train)[int(np.argmax(values))]
    assert (tuned.n_features_to_select, tuned.forwards, tuned.ranker.C) == (
        best["n_features_to_select"],
        best["forwards"],
        best["ranker"].C,
    )


def test_orders_by_the_better_direction(data):
    both = SingleFeatures(2, metric=MAP()).fit(data.X, data.y, qid=data.qid)
    assert np.flatnonzero(both.support_).tolist() == [1, 4]
    assert np.flatnonzero(both.coef_).tolist() == [1, 4]
    assert both.coef_[1] > 0 > both.coef_[4]
    values = single_feature_values(data, MAP())
    assert (np.diff(values.max(axis=0)[both.order_]) <= 0).all()


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


def plain_losses(ranker, part, metric, n_permutations, seed, features):
    rng, losses = np.random.default_rng(seed), [0.0] * part.n_features
    for f in features:
        for _ in range(n_permutations):
            changed = [list(row) for row in part.X]
            for row, value in zip(changed, rng.permutation([row[f] for row in changed]), strict=True):
                row[f] = value
            loss = metric.score(part, ranker.predict(part.X)) - metric.score(part, ranker.predict(np.array(changed)))
            losses[f] += loss / n_permutations
    return np.array(losses)


@pytest.mark.parametrize("watched", [False, True])
def test_a_linear_judge_loses_the_metric_that_loops_measure(data, held_out, watched):
    part = held_out if watched else data
    judge = RankRLS(0.1).fit(data)
    expected = plain_losses(judge, part, MAP(), 3, 7, range(8))
    validation = held_out if watched else None
    solver = PermutationImportance(3, judge=RankRLS(0.1), metric="MAP", n_permutations=3, random_state=7)
    solver.fit(data, validation=validation)
    assert solver.order_.tolist() == np.argsort(-expected, kind="stable").tolist()
    assert set(solver.order_[:2]) == {1, 4}
    measured = solver._losses(judge.predict, data, validation, np.ones(8, bool))
    np.testing.assert_allclose(measured, expected, atol=1e-12)


def test_validation_chooses_the_regularisation_of_the_judge(data, held_out):
    given = RankRLS().tune(data, held_out)
    orders = [
        PermutationImportance(judge=judge, random_state=0).fit(data, validation=held_out).order_.tolist()
        for judge in (None, given)
    ]
    assert orders[0] == orders[1]


def test_trees_lose_by_the_features_that_they_split_by(data, held_out):
    small = dict(n_trees=12, n_leaves=3, min_leaf=5)
    trees = LambdaMART(**small).stopped(data, held_out).fit(data)
    expected = plain_losses(trees, held_out, NDCG(10), 5, 2, np.flatnonzero(trees.support_))
    gain = trees.booster_.feature_importance("gain")
    solver = LambdaMARTPermutation(3, **small, random_state=2).fit(data, validation=held_out)
    assert solver.order_.tolist() == sorted(range(8), key=lambda f: (-expected[f], -gain[f]))


def silverman(sample):
    spread = np.subtract(*np.percentile(sample, [75, 25])) / 1.34
    deviation = np.std(sample, ddof=1)
    return 0.9 * (min(deviation, spread) if spread > 0 else deviation) * len(sample) ** -0.2


def by_scipy(x, y, points):
    """Expected divergence of one feature, with the densities and the distance of scipy."""
    densities = {}
    for label in np.unique(y):
        sample = x[y == label]
        density = gaussian_kde(sample, silverman(sample) / np.std(sample, ddof=1))(points)
        densities[label] = np.maximum(density / density.sum(), FLOOR)
    return sum((b - a) * jensenshannon(densities[a], densities[b]) ** 2 for a in densities for b in densities if a < b)


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2], [0, 2, 5]])
def test_expected_divergence_equals_scipys(labels):
    rng = np.random.default_rng(len(labels))
    y = np.asarray(labels)[rng.integers(0, len(labels), 300)]
    X = np.column_stack(
        [rng.normal(size=300) + y, rng.random(300) ** 4, rng.random(300) * (rng.random(300) < 0.2) + 0.01 * y]
    )
    train = RankingData(X, y, np.arange(300) // 30)
    points = rng.normal(size=(120, 3))
    expected = [by_scipy(X[:, f], y, points[:, f]) for f in range(3)]
    np.testing.assert_allclose(expected_divergence(train, points), expected, rtol=1e-8, atol=1e-10)


def test_a_label_without_width_adds_nothing():
    x = np.array([0.0, 0.1, 0.3, 0.4, 0.5, 0.5, 0.9])
    train = RankingData(np.column_stack([x, x[::-1]]), [0, 0, 0, 0, 1, 1, 2], 0)
    points = np.random.default_rng(0).random((9, 2))
    assert expected_divergence(train, points)[0] == 0.0
    varying = [0, 1, 2, 3, 4, 5]
    alone = by_scipy(x[::-1][varying], train.y[varying], points[:, 1])
    assert expected_divergence(train, points)[1] == pytest.approx(alone, abs=1e-10)


def test_orders_by_importance_plus_divergence(data, held_out):
    for metric in (NDCG(10), MAP()):
        selector = FSED(3, metric=metric).fit(data.X, data.y, qid=data.qid, validation=held_out)
        total = [metric.score(data, x) for x in data.X.T] + expected_divergence(data, held_out.X)
        assert selector.order_.tolist() == np.argsort(-total).tolist()
        np.testing.assert_allclose(selector.importance_ + selector.divergence_, total, rtol=1e-12)
    ranker = RankSVMStruct().fit(data.X[:, selector.support_], data.y, qid=data.qid)
    np.testing.assert_allclose(selector.coef_[selector.support_], ranker.coef_, rtol=1e-9)
    plain = FSED(3).fit(data.X, data.y, qid=data.qid, validation=held_out)
    explicit = FSED(3, metric=NDCG(10)).fit(data.X, data.y, qid=data.qid, validation=held_out)
    assert plain.order_.tolist() == explicit.order_.tolist()


def test_other_validation_data_are_not_mistaken_for_those_before(data, held_out):
    train = RankingData(data.X, data.y, data.qid)
    far = RankingData(held_out.X * 3.0, held_out.y, held_out.qid)
    first, second = (FSED(3)._learn(train, part).order_.tolist() for part in (held_out, far))
    assert first != second
    assert FSED(3).fit(data.X, data.y, qid=data.qid, validation=far).order_.tolist() == second


@pytest.mark.parametrize("factor", [1e-155, 1e-200, 1e-300])
def test_a_feature_whose_squares_vanish_diverges_as_if_it_were_larger(factor):
    rng = np.random.default_rng(4)
    X, y, points = rng.random((60, 2)), rng.integers(0, 3, 60), rng.random((20, 2))
    expected = expected_divergence(RankingData(X, y, 0), points)
    np.testing.assert_allclose(expected_divergence(RankingData(factor * X, y, 0), factor * points), expected, rtol=1e-9)


def test_quartiles_that_coincide_but_for_the_last_digits_do_not_count():
    x = np.array([0.0, 1e-300, 0.0, 1e-300, 0.0, 0.7, 0.2, 0.4, 0.6, 0.8])
    y, points = np.repeat([0, 1], 5), np.linspace(0.0, 1.0, 9)[:, None]
    data = RankingData(np.append(x[:5], x[5:])[:, None], y, 0)
    assert np.isfinite(expected_divergence(data, points)).all()


def objective(chosen, s, e, c):
    """The sum of importance less c times the similarity of all ordered pairs, as the paper writes it."""
    return sum(s[i] for i in chosen) - c * sum(e[i, j] for i in chosen for j in chosen if i != j)


def problem(seed, n=12):
    rng = np.random.default_rng(seed)
    data = RankingData(rng.normal(size=(60, n)) @ rng.normal(size=(n, n)), rng.integers(0, 3, 60), np.arange(60) // 15)
    return rng.random(n), mean_absolute(data.X, data.offsets, concordance, np.ones(data.n_queries))


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
    share = mean_absolute(X, offsets, concordance, np.ones(len(offsets) - 1))
    np.testing.assert_allclose(share, np.mean(shares, axis=0), rtol=1e-13)
    assert share[2, 6] == 1.0


def test_pair_order_is_the_share_of_preference_pairs(data):
    coarse = RankingData(data.X.round(1), data.y, data.qid)  # with ties
    values = pair_order_values(coarse)
    for f, x in enumerate(coarse.X.T):
        difference = x[coarse.pairs.better] - x[coarse.pairs.worse]
        assert values[0, f] == pytest.approx(np.mean((np.sign(difference) + 1) / 2), rel=1e-12)
        assert values[1, f] == pytest.approx(np.mean((np.sign(-difference) + 1) / 2), rel=1e-12)


@pytest.mark.parametrize(
    "selector",
    [GAS(3, RankRLS(), 0.2), NGAS(3, RankRLS()), FSBFS(3, RankRLS(), restarts=1)],
    ids=lambda s: type(s).__name__,
)
def test_a_query_of_weight_3_counts_as_three_copies(data, selector):
    weights = np.random.default_rng(3).integers(1, 4, data.n_queries)
    weighted = RankingData(data.X, data.y, data.qid, query_weights=weights)
    starts, sizes = (np.repeat(part, weights) for part in (data.offsets[:-1], np.diff(data.offsets)))
    rows = np.concatenate([np.arange(start, start + size) for start, size in zip(starts, sizes, strict=True)])
    copied = RankingData(data.X[rows], data.y[rows], np.repeat(np.arange(len(sizes)), sizes))
    np.testing.assert_allclose(pair_order_values(weighted), pair_order_values(copied), rtol=1e-12)
    once, thrice = (clone(selector).fit(part) for part in (weighted, copied))
    np.testing.assert_array_equal(once.support_, thrice.support_)
    np.testing.assert_allclose(once.coef_, thrice.coef_, rtol=1e-9)


@pytest.mark.parametrize("importance", ["loss", "measure"])
def test_parts_are_put_together_as_documented(data, importance):
    values = pair_order_values(data) if importance == "loss" else single_feature_values(data, NDCG(5))
    s = values.max(axis=0)
    s = (s - s.min()) / (s.max() - s.min())
    turned = RankingData(data.X * np.where(values[0] >= values[1], 1, -1), data.y, data.qid)
    e = mean_absolute(turned.X, turned.offsets, concordance, np.ones(turned.n_queries))
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
