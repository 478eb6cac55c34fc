"""The additive ranker against explicit tables, in every company, as trees, and in the search."""

import json
from itertools import combinations

import numpy as np
import pytest
from helpers.pair_problems import weighted_pairs
from pymoo.optimize import minimize
from sklearn.base import clone

from moerank.data import RankingData, make_planted
from moerank.evolution import make_algorithm
from moerank.metrics import MAP, NDCG
from moerank.mofsrank.ensemble import Ensemble
from moerank.mofsrank.estimator import MOFSRank
from moerank.mofsrank.feature_selection import FeatureSelection
from moerank.mofsrank.settings import Limits
from moerank.rankers import AdditiveRLS, RankRLS, nested_masks, side_by_side, train_population
from moerank.rankers.model import Model
from moerank.training.bins import thresholds

BUDGET = {"population": 12, "generations": 4}


def unequal(data):
    """The same data with features of few values, a constant one, one that is constant in queries, and gaps."""
    X = np.array(data.X)
    X[:, 1], X[:, 2], X[:, 4] = np.floor(3 * X[:, 1]), 1.0, np.exp(9 * X[:, 4])
    X[:, 5] = data.qid
    return RankingData(X, data.y, data.qid)


def weighted(data):
    rng = np.random.default_rng(3)
    weights = {"query_weights": rng.random(data.n_queries) + 0.2, "document_weights": rng.random(data.n_documents)}
    return RankingData(data.X, data.y, data.qid, **weights)


def steps_of(data, ranker):
    """Explicit columns [x > t], their features, and the prior of their weights."""
    columns, feature, increments = [], [], []
    for f, cuts in enumerate(ranker.thresholds_):
        x = data.X[:, f]
        code = (x[:, None] > cuts).sum(axis=1)
        means = [x[code == c].mean() for c in range(len(cuts) + 1)]
        columns += [x > t for t in cuts]
        feature += [f] * len(cuts)
        increments += list(np.diff(means) / x.std()) if len(cuts) else []
    feature, v = np.array(feature), np.array(increments)
    prior = np.where(np.equal.outer(feature, feature), np.outer(v, v), 0.0) + ranker.smooth**2 * np.eye(len(v))
    return np.column_stack(columns).astype(float), feature, prior


def plain_tables(data, ranker, mask, keep=slice(None)):
    """Tables of the features of a mask by one system on explicit differences of pairs."""
    columns, feature, prior = steps_of(data, ranker)
    chosen = mask[feature]
    i, j, _, weights = weighted_pairs(data, keep)
    t = 1.0 if ranker.target == "unit" else data.y[i] - data.y[j]
    D = (columns[i] - columns[j])[:, chosen]
    G, b = D.T @ (weights[:, None] * D) / weights.sum(), D.T @ (weights * t) / weights.sum()
    P = prior[np.ix_(chosen, chosen)]
    steps = np.zeros(len(feature))
    # (G + alpha P⁻¹) θ = b, without an inverse of P.
    steps[chosen] = P @ np.linalg.solve(G @ P + ranker.alpha * np.eye(len(P)), b)
    return [np.append(0.0, np.cumsum(steps[feature == f])) for f in range(data.n_features)]


def tables_of(population, individual):
    return np.split(population.tables[individual], population.bins.first[1:-1])


def assert_equal_tables(tables, expected):
    np.testing.assert_allclose(np.concatenate(tables), np.concatenate(expected), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("prepare", [lambda data: data, unequal, weighted])
@pytest.mark.parametrize("parameters", [{}, {"n_bins": 5, "smooth": 1.0, "target": "difference"}, {"smooth": 0.0}])
def test_subsets_equal_one_system_on_the_explicit_table(noisy_data, prepare, parameters):
    data = prepare(noisy_data)
    ranker = AdditiveRLS(alpha=0.02, **parameters).fit(data)
    assert_equal_tables(ranker.tables_, plain_tables(data, ranker, np.ones(data.n_features, bool)))
    masks = np.random.default_rng(1).random((5, data.n_features)) < 0.4
    masks[:, 0] = True
    population = ranker.fit_population(data, feature_mask=masks)
    for individual, mask in enumerate(masks):
        tables = tables_of(population, individual)
        assert_equal_tables(tables, plain_tables(data, ranker, mask))
        assert not any(tables[f].any() for f in np.flatnonzero(~mask))


@pytest.mark.parametrize("prepare", [lambda data: data, unequal, weighted])
def test_without_room_for_the_system_of_all_features_each_individual_has_its_own(noisy_data, prepare, monkeypatch):
    data, ranker = prepare(noisy_data), AdditiveRLS(alpha=0.02)
    masks = np.random.default_rng(1).random((6, data.n_features)) < 0.4
    masks[:, 0], masks[5] = True, np.arange(data.n_features) == 2  # a constant feature in `unequal`
    half = np.arange(data.n_queries) % 2 == 0
    arguments = {"feature_mask": masks, "pair_mask": half, "unit": "query"}
    populations = [ranker.fit_population(data, feature_mask=masks), ranker.fit_population(data, **arguments)]
    monkeypatch.setenv("MOERANK_MEMORY", str(3 * 8 * populations[0].tables.shape[1] ** 2 * 0.9 / 2**30))
    data = prepare(noisy_data).without_cache()
    for population, given in zip(populations, [{"feature_mask": masks}, arguments], strict=True):
        own = ranker.fit_population(data, **given)
        np.testing.assert_array_equal(own.tables, population.tables)
        np.testing.assert_array_equal(own.bins.first, population.bins.first)
    with pytest.raises(ValueError, match=r"bins of \d+ features, 3 tables .* would take .* MOERANK_MEMORY"):
        ranker.fit(data)


@pytest.mark.parametrize("prepare", [lambda data: data, unequal, weighted])
def test_the_forward_path_fits_every_candidate_and_takes_the_least_loss(noisy_data, prepare):
    data = prepare(noisy_data)
    ranker = AdditiveRLS(5, smooth=0.5, alpha=0.05).fit(data)
    i, j, _, weights = weighted_pairs(data)
    columns, feature, prior = steps_of(data, ranker)

    def least_loss(features):
        mask = np.isin(np.arange(data.n_features), features)
        tables = plain_tables(data, ranker, mask)
        theta = np.concatenate([np.diff(table) for table in tables])[mask[feature]]
        chosen = columns[:, mask[feature]]
        P = prior[np.ix_(mask[feature], mask[feature])]
        margins = (chosen[i] - chosen[j]) @ theta
        return weights @ (1 - margins) ** 2 / weights.sum() + 0.05 * theta @ np.linalg.solve(P, theta)

    order = []
    while left := [f for f in np.unique(feature).tolist() if f not in order and np.ptp(columns[i] - columns[j]) > 0]:
        order.append(min(left, key=lambda f: least_loss([*order, f])))
    n_sure = len(order) - (prepare is unequal)  # the last one is constant in queries, and changes nothing
    assert ranker.forward_path(data)[:n_sure].tolist() == order[:n_sure]
    assert ranker.forward_path(data, 3).tolist() == order[:3]


@pytest.mark.parametrize("unit", ["document", "query"])
def test_chosen_documents_and_queries_equal_explicit_pairs(noisy_data, unit):
    size = {"document": noisy_data.n_documents, "query": noisy_data.n_queries}[unit]
    own = np.random.default_rng(5).random((3, size)) < 0.6
    own[:, -1] = True
    ranker = AdditiveRLS(n_bins=6).fit(noisy_data)
    population = ranker.fit_population(noisy_data, pair_mask=own, unit=unit)
    better, worse = noisy_data.pairs.better, noisy_data.pairs.worse
    query = np.searchsorted(noisy_data.offsets, better, side="right") - 1
    for individual, mask in enumerate(own):
        keep = mask[query] if unit == "query" else mask[better] & mask[worse]
        expected = plain_tables(noisy_data, ranker, np.ones(noisy_data.n_features, bool), keep)
        assert_equal_tables(tables_of(population, individual), expected)
        shared = ranker.fit_population(noisy_data, pair_mask=mask, unit=unit)
        np.testing.assert_array_equal(shared.tables[0], population.tables[individual])


@pytest.mark.parametrize("smooth", [0.0, 1e-7])
def test_without_freedom_it_is_the_linear_ranker_of_binned_values(noisy_data, smooth):
    data = unequal(noisy_data)
    ranker = AdditiveRLS(n_bins=7, smooth=smooth, alpha=0.05).fit(data)
    binned = np.zeros(data.X.shape)
    for f, cuts in enumerate(ranker.thresholds_):
        x = data.X[:, f]
        code = (x[:, None] > cuts).sum(axis=1)
        for c in np.unique(code):
            binned[code == c, f] = x[code == c].mean() / (x.std() or 1.0)
    linear = RankRLS(alpha=0.05).fit_population(RankingData(binned, data.y, data.qid))[0]
    centre = binned.min(axis=0)
    np.testing.assert_allclose(ranker.predict(data.X), (binned - centre) @ linear, rtol=1e-8, atol=1e-9)


def test_increasing_transformations_of_features_move_no_score(noisy_data):
    def free(X):  # the share of the linear ranker, which a transformation changes, is next to nothing
        return AdditiveRLS(smooth=1e6, alpha=1e10).fit(X, noisy_data.y, qid=noisy_data.qid).predict(X)

    X = noisy_data.X
    moved = np.column_stack([np.exp(5 * X[:, :6]), -1.0 / (0.1 + X[:, 6:])])
    np.testing.assert_allclose(free(moved), free(X), rtol=1e-8, atol=1e-10)
    shifted = AdditiveRLS().fit(3.0 * X + 2.0, noisy_data.y, qid=noisy_data.qid).predict(3.0 * X + 2.0)
    np.testing.assert_allclose(shifted, AdditiveRLS().fit(noisy_data).predict(X), rtol=1e-9)


def test_scores_are_sums_in_feature_order_in_any_company(noisy_data):
    masks = np.random.default_rng(2).random((21, noisy_data.n_features)) < 0.5
    masks[:, 3] = True
    ranker = AdditiveRLS(n_bins=9)
    population = ranker.fit_population(noisy_data, feature_mask=masks)
    scores, thresholds = population.scores(noisy_data.X), population.bins.thresholds
    for individual, mask in enumerate(masks):
        tables = tables_of(population, individual)
        alone = ranker.fit_population(noisy_data, feature_mask=mask[None])
        np.testing.assert_array_equal(alone.tables[0], population.tables[individual])
        np.testing.assert_array_equal(alone.scores(noisy_data.X)[:, 0], scores[:, individual])
        for document, x in enumerate(noisy_data.X):
            total = 0.0
            for f in np.flatnonzero(mask):
                total += tables[f][np.count_nonzero(thresholds[f] < x[f])]
            assert scores[document, individual] == total
    np.testing.assert_array_equal(population.scores_of(noisy_data), scores)
    rows = np.array([20, -1, 3])
    np.testing.assert_array_equal(population.take(rows).scores(noisy_data.X)[:, [0, 2]], scores[:, [20, 3]])
    assert not population.take(rows).scores(noisy_data.X)[:, 1].any()
    halves = [population.take(np.arange(0, 10)), population.take(np.arange(10, 21))]
    np.testing.assert_array_equal(side_by_side(halves).tables, population.tables)


def test_trees_are_balanced_and_score_the_same_in_single_precision(noisy_data):
    ranker = AdditiveRLS(n_bins=15, smooth=1.0).fit(noisy_data)
    forest, scores = ranker.forest_, ranker.predict(noisy_data.X)
    assert len(forest.roots) == ranker.support_.sum()
    np.testing.assert_array_equal(forest.scores(noisy_data.X), scores)
    np.testing.assert_array_equal(forest.scores(noisy_data.X.astype(np.float32)), scores)
    np.testing.assert_array_equal(np.float32(forest.thresholds), forest.thresholds)

    def depth(node):
        return 0 if node < 0 else 1 + max(depth(forest.left[node]), depth(forest.right[node]))

    assert max(map(depth, forest.roots)) == 4  # of 16 leaves
    model = Model.from_json(Model.of(ranker, noisy_data.feature_names).to_json())
    np.testing.assert_array_equal(model.scores(noisy_data.X), scores)
    assert json.loads(model.to_json())["weights"] is None


def test_neighbouring_bins_of_equal_value_are_one_leaf(noisy_data):
    ranker = AdditiveRLS(n_bins=4).fit(noisy_data)
    population = ranker.fit_population(noisy_data, feature_mask=np.arange(12) == 0)
    population.tables[0, :5] = [0.0, 0.0, 2.0, 2.0, 1.0]
    forest = population.forest(0)
    cuts = ranker.thresholds_[0]
    assert (sorted(forest.thresholds), forest.leaves) == ([cuts[1], cuts[3]], (0.0, 2.0, 1.0))
    np.testing.assert_array_equal(forest.scores(noisy_data.X), population.scores(noisy_data.X)[:, 0])


def test_tuning_takes_the_best_of_the_grid_by_the_mean_of_three_neighbours(noisy_data):
    data = make_planted(n_queries=20, n_documents=15, n_noise=5, seed=2).data
    half = data.offsets[10]
    train, validation = data.with_rows(np.arange(half)), data.with_rows(np.arange(half, data.n_documents))
    grid = AdditiveRLS().default_grid(train)
    assert ({entry["n_bins"] for entry in grid}, len(grid)) == ({32}, 2 * 4 * 13)
    assert {type(entry["alpha"]) for entry in grid} == {float}
    grid = [entry for entry in grid if entry["target"] == "unit"]
    scores = np.column_stack([AdditiveRLS(**entry).fit(train).predict(validation.X) for entry in grid])
    for metric in (MAP(), NDCG(3)):
        values = metric.score(validation, scores)
        of_smooth = np.pad(np.reshape(values, (4, 13)), ((0, 0), (1, 1)), constant_values=np.nan)
        values = np.nanmean([of_smooth[:, :-2], of_smooth[:, 1:-1], of_smooth[:, 2:]], axis=0)
        tuned = AdditiveRLS().tune(train, validation, grid, metric=metric)
        assert {name: tuned.get_params()[name] for name in grid[0]} == grid[int(np.argmax(values))]


@pytest.mark.filterwarnings("ignore:(invalid value|overflow) encountered")
@pytest.mark.parametrize("smooth", [1e155, 1e308, 10**200])
def test_parameters_beyond_all_scales_are_refused(noisy_data, smooth):
    with pytest.raises(ValueError, match=r"AdditiveRLS scores row 0 by (nan|-?inf)"):
        AdditiveRLS(smooth=smooth).fit(noisy_data)


def graded_data(seed, distance):
    """One feature tells grades 0 and 1 apart, and has −distance for the rare grade 5, which another one knows."""
    rng = np.random.default_rng(seed)
    y = np.tile(np.r_[np.zeros(10), np.ones(9), 5], 20).astype(int)
    X = np.column_stack([(y == 1) - distance * (y == 5), 0.5 * (y == 5), y / 9]) + rng.normal(0, 0.5, (400, 3))
    return RankingData(X, y, np.repeat(np.arange(20), 20))


@pytest.mark.parametrize("ranker", [AdditiveRLS, RankRLS])
def test_tuning_takes_the_other_target_for_a_gain_of_more_than_a_standard_error(ranker):
    outcomes = set()
    for seed, distance in ((0, 1.0), (1, -1.0), (2, -1.0), (3, -4.0), (4, -5.0), (5, -5.0), (6, -6.0)):
        train, validation = graded_data(seed, distance), graded_data(seed + 10, distance)
        values = []
        for target in ("unit", "difference"):
            grid = [entry for entry in ranker().default_grid(train) if entry["target"] == target]
            best = ranker().tune(train, validation, grid, metric=NDCG(3)).fit(train)
            values.append(NDCG(3).per_query(validation, best.predict(validation.X)))
        gain = values[1] - values[0]
        in_errors = gain.mean() / (gain.std(ddof=1) / 20**0.5) if gain.any() else 0.0
        outcomes.add(int(np.clip(np.ceil(in_errors), 0, 2)))
        for usual, expected in (("unit", in_errors > 1), ("difference", in_errors >= -1)):
            tuned = ranker(target=usual).tune(train, validation, metric=NDCG(3))
            assert tuned.target == ("difference" if expected else "unit"), (seed, usual, in_errors)
    assert outcomes == {0, 1, 2}  # a loss, a gain within an error, and a larger one


def test_two_grades_have_one_target(noisy_data):
    binary = RankingData(noisy_data.X, noisy_data.y > 1, noisy_data.qid)
    for ranker in (AdditiveRLS(), RankRLS(target="difference")):
        assert {entry["target"] for entry in ranker.default_grid(binary)} == {ranker.target}


def test_values_alike_in_single_precision_have_no_grid(noisy_data):
    same = RankingData(noisy_data.X + 2.0**60, noisy_data.y, noisy_data.qid)
    with pytest.raises(ValueError, match="no feature has two values that differ in single precision; shift"):
        AdditiveRLS().tune(same, same)


# The search


@pytest.mark.parametrize("algorithm", ["staircase", "nsga2"])
def test_the_stage_measures_what_a_fit_on_the_features_has(noisy_data, algorithm):
    stage = FeatureSelection(noisy_data, AdditiveRLS(n_bins=8), NDCG(5))
    operators = stage.operators()
    if algorithm == "staircase":
        del operators["sampling"]
    result = minimize(stage, make_algorithm(algorithm, 16, operators), ("n_eval", 160), seed=1)
    for x, (size, error) in zip(result.X, result.F, strict=True):
        scores = train_population(AdditiveRLS(n_bins=8), noisy_data, feature_mask=x[None]).scores(noisy_data.X)[:, 0]
        assert (size, error) == (x.sum(), 1.0 - NDCG(5).score(noisy_data, scores))
    many = FeatureSelection(noisy_data, AdditiveRLS(n_bins=8), NDCG(5), workers=2)
    np.testing.assert_array_equal(many.evaluate(result.X), result.F)


def test_a_search_starts_from_few_of_many_features():
    rng = np.random.default_rng(0)
    wide = RankingData(rng.random((60, 120)), rng.integers(0, 3, 60), np.repeat([1, 2, 3], 20))
    assert FeatureSelection(wide, RankRLS(), NDCG(5)).max_ones == 120
    stage = FeatureSelection(wide, AdditiveRLS(), NDCG(5))
    assert stage.max_ones == 40
    strings = stage.starting_strings(60)
    assert strings.sum(axis=1).max() == 40
    path = AdditiveRLS().forward_path(wide, 30)
    np.testing.assert_array_equal(strings[:30], nested_masks(path, 120, np.arange(1, 31)))


@pytest.mark.filterwarnings("ignore:9 of 9 validation queries are also in the training part")
def test_all_stages_run_by_name_and_the_front_serves_trees(noisy_data):
    solver = MOFSRank(
        "additive",
        NDCG(5),
        instance_selection=BUDGET,
        feature_selection=BUDGET,
        ensemble=BUDGET,
        limits=Limits(max_features=6),
        random_state=0,
    )
    again = clone(solver).set_params(workers=2).fit(noisy_data)
    solver.fit(noisy_data, validation=noisy_data)
    assert isinstance(solver.backend_, AdditiveRLS)
    assert solver.instance_unit_ == "query"
    assert set(solver.fronts_) == {"instance_selection", "feature_selection", "ensemble"}
    assert solver.front_["n_features"].max() <= 6
    scores = solver.front_rankers_.scores(noisy_data.X)
    np.testing.assert_allclose(solver.front_["error"], 1.0 - NDCG(5).score(noisy_data, scores), atol=1e-12)
    np.testing.assert_array_equal(solver.predict(noisy_data.X), scores[:, solver.chosen_])
    np.testing.assert_array_equal(solver.forest_.scores(noisy_data.X), scores[:, solver.chosen_])
    assert not hasattr(solver, "coef_")
    alone = clone(solver).set_params(tune=False).fit(noisy_data)
    np.testing.assert_array_equal(alone.front_["error"], again.front_["error"])


def test_instances_are_not_selected_unless_one_asks(noisy_data):
    stages = {"feature_selection": BUDGET, "ensemble": False, "random_state": 0}
    assert MOFSRank("additive", **stages).fit(noisy_data).instance_subsets_ is None
    linear = MOFSRank(instance_selection=None, **stages)
    linear.set_params(instance_selection__generations=2, instance_selection__population=8)
    assert linear.fit(noisy_data).instance_subsets_ is not None


def test_an_ensemble_adds_tables_on_its_features(noisy_data):
    masks = np.zeros((3, noisy_data.n_features), bool)
    masks[0, :2], masks[1, 1:4], masks[2, [0, 7]] = True, True, True
    members = AdditiveRLS(n_bins=5).fit_population(noisy_data, feature_mask=masks)
    stage = Ensemble(noisy_data, members, NDCG(5))
    assert stage.n_var == 5 + 3
    X = np.array([[1, 1, 0, 1, 1, 0.5, 0.0, 1.0], [0, 1, 1, 1, 1, 0.3, 0.2, 0.0], [0, 0, 0, 0, 0, 1, 1, 1.0]])
    combined = stage.combined(X)
    first = members.bins.first
    for row, weights, bits in zip(combined.tables, X[:, 5:], X[:, :5], strict=True):
        for bit, f in zip(bits, (0, 1, 2, 3, 7), strict=True):
            cells = slice(first[f], first[f + 1])
            np.testing.assert_allclose(row[cells], bit * weights @ members.tables[:, cells], rtol=1e-12, atol=1e-15)
    F = stage.evaluate(X)
    assert F[0].tolist() == [3, 1.0 - NDCG(5).score(noisy_data, combined.scores(noisy_data.X)[:, 0])]
    assert F[2].tolist() == list(stage.worst)
    np.testing.assert_array_equal(stage.combined(stage.members()).tables, members.tables)


@pytest.fixture(scope="module")
def parts():
    """Data in which the sign of a feature depends on another one."""

    def made(seed):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(size=(240, 3)), rng.integers(0, 2, 240)])
        y = np.digitize(X[:, 0] * (2 * X[:, 3] - 1) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=240), [-0.5, 0.5])
        return RankingData(X, y, np.arange(240) // 12, feature_names=["a", "b", "c", "switch"])

    return made(0), made(1)


def steps(x, n_bins):
    return x[:, None] > thresholds(x, n_bins)


def differences(data, columns):
    pairs = [(i, j) for i in range(240) for j in range(240) if data.qid[i] == data.qid[j] and data.y[i] > data.y[j]]
    better, worse = np.transpose(pairs)
    return columns[better].astype(float) - columns[worse]


def minimum(D, P, alpha):
    """Return the weights and the loss of least squares with the penalty alpha θᵀ P⁻¹ θ."""
    A, b = D.T @ D / len(D), D.mean(axis=0)
    theta = np.linalg.solve(A + alpha * np.linalg.inv(P), b)
    return theta, 1.0 - b @ theta


def test_each_pair_lowers_the_loss_of_the_explicit_table_the_most(parts):
    train, _ = parts
    alpha, smooth = 0.02, 0.7
    ranker = AdditiveRLS(n_bins=3, smooth=smooth, alpha=alpha, interactions=3).fit(train)
    X = train.X
    blocks, priors = [], []
    for x in X.T:
        block = steps(x, 3)
        bins = block.sum(axis=1)
        v = np.diff([x[bins == b].mean() for b in range(block.shape[1] + 1)]) / x.std()
        blocks.append(block)
        priors.append(smooth**2 * np.eye(len(v)) + np.outer(v, v))
    products = {}
    for f, g in combinations(range(4), 2):
        columns = (steps(X[:, f], 5)[:, :, None] & steps(X[:, g], 5)[:, None, :]).reshape(240, -1)
        products[f, g] = columns
    order = []

    def solved(pairs):
        columns = np.hstack([*blocks, *(products[pair] for pair in pairs)])
        n, n_single = columns.shape[1], sum(map(len, priors))
        P = smooth**2 * np.eye(n)
        begin = 0
        for prior in priors:
            P[begin : begin + len(prior), begin : begin + len(prior)] = prior
            begin += len(prior)
        assert begin == n_single
        theta, loss = minimum(differences(train, columns), P, alpha)
        return columns @ theta, loss

    for _ in range(3):
        order.append(min(products.keys() - set(order), key=lambda pair: solved([*order, pair])[1]))
    names = train.feature_names
    path = ranker.interactions_
    assert list(zip(path["first"][1:], path["second"][1:], strict=True)) == [(names[f], names[g]) for f, g in order]
    assert order[0] == (0, 3)
    np.testing.assert_allclose(ranker.predict(X), solved(order)[0], rtol=0, atol=1e-9)
    for n, error in enumerate(path["error"]):
        assert error == pytest.approx(1.0 - MAP().score(train, solved(order[:n])[0]), abs=1e-9)
    assert len(ranker.forest_.roots) == len(blocks) + 3
    assert [len(table) for table in ranker.tables_] == [4, 4, 4, 2]


def test_validation_chooses_the_number_and_a_search_trains_its_members_again(parts):
    train, validation = parts
    ranker = AdditiveRLS(interactions=6).fit(train, validation=validation)
    path = ranker.interactions_
    assert path["n_interactions"].tolist() == list(range(7))
    n = int(path["validation"].idxmin())
    assert n > 0
    assert len(ranker.forest_.roots) == 4 + n
    score = MAP().score(validation, ranker.predict(validation.X))
    assert path["validation"][n] == pytest.approx(1.0 - score, abs=1e-12)
    alone = AdditiveRLS().fit(train)
    assert score > MAP().score(validation, alone.predict(validation.X)) + 0.1
    budget = {"population": 8, "generations": 2}
    settings = {"tune": False, "ensemble": False, "feature_selection": budget, "random_state": 0, "workers": 2}
    solver = MOFSRank(clone(alone), refit=ranker, tuning=MAP(), **settings).fit(train, validation=validation)
    features = solver.support_
    again = clone(ranker).fit(train.with_features(features), validation=validation.with_features(features))
    np.testing.assert_array_equal(solver.predict(train.X), again.predict(train.X[:, features]))
    assert solver.shapes_["feature_2"].notna().any()


def test_one_feature_has_no_interactions_and_many_have_those_of_the_largest_spread(parts, monkeypatch):
    train, _ = parts
    one = train.with_features(np.array([True, False, False, False]))
    ranker = AdditiveRLS(interactions=2).fit(one)
    assert len(ranker.interactions_) == 1
    np.testing.assert_allclose(ranker.predict(one.X), AdditiveRLS().fit(one).predict(one.X), atol=1e-12)
    monkeypatch.setattr("moerank.rankers.additive.MAX_PAIRED_FEATURES", 2)
    few = AdditiveRLS(interactions=5).fit(train)
    spread = AdditiveRLS().fit(train).shapes_["feature"].drop_duplicates().tolist()[:2]
    assert {few.interactions_["first"][1], few.interactions_["second"][1]} == set(spread)
    assert len(few.interactions_) == 2


def test_a_feature_of_the_query_interacts_with_the_features_that_it_switches():
    rng = np.random.default_rng(3)
    query = np.repeat(np.arange(60), 12)
    X = np.column_stack([rng.normal(size=(720, 4)), rng.integers(0, 2, 60)[query], rng.random(60)[query]])
    utility = np.where(X[:, 4] == 1, X[:, 0], X[:, 1]) + 0.2 * rng.normal(size=720)
    data = RankingData(X, np.digitize(utility, np.quantile(utility, [0.6, 0.85])), query)
    plain, paired = AdditiveRLS().fit(data), AdditiveRLS(interactions=2).fit(data)
    assert {(row.first, row.second) for row in paired.interactions_[1:].itertuples()} == {("1", "5"), ("2", "5")}
    assert np.flatnonzero(paired.support_).tolist() == [0, 1, 2, 3, 4] and not plain.support_[4:].any()
    assert NDCG(10).score(data, paired.predict(data)) > NDCG(10).score(data, plain.predict(data)) + 0.08
