import numpy as np
import pytest
from helpers.plain import all_subsets, front, ndcg, ordered_scores, ridge
from helpers.third_objective import QueriesHurt

from moerank.evolution import ALGORITHMS, make_algorithm, search
from moerank.metrics import NDCG
from moerank.mofsrank import Ensemble, FeatureSelection, MOFSRank
from moerank.mofsrank.objectives import OBJECTIVES, Error, Objective, Risk, read_objectives
from moerank.rankers import RankRLS

ALPHA = 1e-3
THREE = ("features", "error", QueriesHurt())


def per_query(data, w, k):
    """NDCG@k of each query by the helper that shares nothing with the package."""
    scores = ordered_scores(data.X, w[None])
    values = []
    for q, (begin, end) in enumerate(zip(data.offsets[:-1], data.offsets[1:], strict=True)):
        alone = type(data)(data.X[begin:end], data.y[begin:end], np.full(end - begin, q))
        values.append(ndcg(alone, scores[begin:end], k)[0])
    return np.array(values)


@pytest.fixture(scope="module")
def exact(small_data):
    """All 31 subsets, and their three objectives by hand."""
    X = all_subsets(5)
    baseline = per_query(small_data, ridge(small_data, ALPHA), 5)
    values = np.array([per_query(small_data, ridge(small_data, ALPHA, features=mask), 5) for mask in X])
    hurt = (values < baseline - 1e-12).sum(axis=1)
    return X, np.column_stack([X.sum(axis=1), 1.0 - values.mean(axis=1), hurt])


def stage_of(data, objectives):
    return FeatureSelection(data, RankRLS(ALPHA), NDCG(5), objectives=objectives)


def sorted_rows(F):
    return F[np.lexsort(F.T[::-1])]


@pytest.mark.parametrize("objectives", [THREE, ("error",), (QueriesHurt(), "features")], ids=["three", "one", "two"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_searches_with_any_number_of_objectives(small_data, exact, objectives, algorithm):
    stage = stage_of(small_data, objectives)
    if stage.n_obj == 1 and algorithm in ("rvea", "moead"):
        with pytest.raises(ValueError, match=f"{algorithm} needs several objectives, .* choose one of nsga2, "):
            make_algorithm(algorithm, 10, stage.operators(), stage.n_obj)
        return
    if (algorithm == "mffs" and stage.n_obj != 2) or (algorithm == "prdh" and stage.n_obj == 1):
        with pytest.raises(ValueError, match=rf"is made for 2 objectives.*, not for {stage.n_obj}; choose another"):
            make_algorithm(algorithm, 10, stage.operators(), stage.n_obj)
        return
    X, F = exact
    columns = {"features": 0, "error": 1, "hurt": 2}
    reference = F[:, [columns[entry.name] for entry in stage.objectives]]
    population = 40 if algorithm == "staircase" else 10  # it begins with a quarter
    found = search(stage, make_algorithm(algorithm, population, stage.operators(), stage.n_obj), 30, seed=1)
    # There are 31 subsets: 30 generations of 10 come across all of them but for chance.
    rows = {row.tobytes(): values for row, values in zip(X, reference, strict=True)}
    expected = np.array([rows[row.tobytes()] for row in found.archive.X])
    np.testing.assert_allclose(found.archive.F, expected, rtol=0, atol=1e-12)
    if algorithm in ("nsga2", "nsga3", "smsemoa", "sparseea", "daea", "staircase", "prdh"):
        np.testing.assert_allclose(sorted_rows(found.archive.F), front(reference.round(12)), rtol=0, atol=1e-11)
    assert (np.diff(found.hypervolume(stage.bounds_of_objectives[1])) >= 0).all()


def test_three_objectives_equal_those_by_hand_and_an_empty_individual_is_worst_in_each(small_data, exact):
    F = stage_of(small_data, THREE).evaluate(np.vstack([np.zeros((1, 5), bool), exact[0]]))
    np.testing.assert_array_equal(F[0], [6.0, 2.0, small_data.n_queries + 1.0])
    np.testing.assert_allclose(F[1:], exact[1], rtol=0, atol=1e-12)
    assert (F[1:] < F[0]).all()
    coefs = RankRLS(ALPHA).fit_population(small_data)
    ensemble = Ensemble(small_data, coefs, NDCG(5), objectives=THREE, backend=RankRLS(ALPHA))
    np.testing.assert_array_equal(ensemble.evaluate(np.zeros((1, 6))), [[7.0, 2.0, small_data.n_queries + 1.0]])


def test_mofsrank_carries_further_objectives_to_its_front(small_data):
    budget = {"population": 12, "generations": 12}
    settings = dict(instance_selection=budget, feature_selection=budget, ensemble=budget, random_state=0)
    prices, objectives = np.array([3.0, 0.0, 1.5, 2.0, 8.0]), (*THREE, "cost")
    priced = small_data.with_costs(prices)
    for algorithm in ("nsga2", "nsga3", "smsemoa"):
        solver = MOFSRank(RankRLS(ALPHA), NDCG(5), objectives=objectives, algorithm=algorithm, **settings).fit(priced)
        columns = ["n_features", "error", "hurt", "cost", "validation", "features"]
        assert solver.front_.columns.tolist() == columns
        assert {name: F.shape[1] for name, F in solver.fronts_.items()} == {
            "instance_selection": 2,
            "feature_selection": 4,
            "ensemble": 4,
        }
        baseline = per_query(small_data, ridge(small_data, ALPHA), 5)
        for row, w in zip(solver.front_.itertuples(), solver.front_coefs_, strict=True):
            assert row.features == tuple(np.flatnonzero(w))
            assert row.cost == prices[list(row.features)].sum()
            assert row.hurt == (per_query(small_data, w, 5) < baseline - 1e-12).sum()
        F = solver.front_[["n_features", "error", "hurt", "cost"]].to_numpy(float)
        np.testing.assert_array_equal(sorted_rows(F), sorted_rows(front(F)))
        for table in solver.history_.values():
            assert table["hypervolume"].is_monotonic_increasing
            assert table["hypervolume"].between(0, 1).all()
        assert (solver.path(small_data).feature_mask.sum(axis=1) <= np.arange(1, 6)).all()


def test_one_objective_gives_the_best_alone(small_data, exact):
    budget = {"population": 12, "generations": 12}
    stages = dict(instance_selection=False, feature_selection=budget, ensemble=False)
    solver = MOFSRank(RankRLS(ALPHA), NDCG(5), objectives=("error",), **stages, random_state=0).fit(small_data)
    assert len(solver.front_) == 1
    assert solver.front_["error"][0] == pytest.approx(exact[1][:, 1].min(), abs=1e-12)
    assert solver.front_["n_features"][0] == solver.support_.sum()


def test_objectives_are_read_by_name_or_as_they_are():
    own = QueriesHurt()
    assert read_objectives(("error", own)) == (OBJECTIVES["error"], own)
    for wrong, message in (
        ((), "at least one"),
        (("errors",), "unknown objective 'errors'; did you mean 'error'"),
        (("error", Error()), "not all different"),
        ((3,), "3 is neither a name nor an Objective"),
    ):
        with pytest.raises(ValueError, match=message):
            read_objectives(wrong)


def risk_by_hand(candidate, baseline, a):
    gains = sum(x - y for x, y in zip(candidate, baseline, strict=True) if x > y)
    losses = sum(y - x for x, y in zip(candidate, baseline, strict=True) if y > x)
    return -(gains - (1 + a) * losses) / len(candidate)


@pytest.mark.parametrize(("a", "is_given"), [(0.0, False), (1.0, False), (5.0, False), (1.0, True)])
def test_risk_equals_its_formula_against_all_features_or_given_scores(small_data, a, is_given):
    X = all_subsets(5)
    metric, ranker = NDCG(5), RankRLS(1e-3)
    scores = small_data.X @ ranker.fit_population(small_data)[0]
    if is_given:
        scores = np.random.default_rng(0).random(small_data.n_documents)
    F = stage_of(small_data, (Risk(a, scores if is_given else None),)).evaluate(X)
    baseline = metric.per_query(small_data, scores)
    for mask, value in zip(X, F[:, 0], strict=True):
        w = ranker.fit_population(small_data, feature_mask=mask[None])[0]
        by_hand = risk_by_hand(metric.per_query(small_data, small_data.X @ w), baseline, a)
        assert value == pytest.approx(by_hand, abs=1e-12)
    assert is_given or F[X.all(axis=1), 0] == 0.0


def test_what_cannot_be_measured_is_refused_by_name(small_data):
    with pytest.raises(ValueError, match='the objective "cost" needs to know what the features cost: give Ranking'):
        stage_of(small_data, ("cost", "error"))
    with pytest.raises(ValueError, match='the objective "pairs" is for instance selection'):
        stage_of(small_data, ("pairs", "error")).evaluate(np.ones((1, 5), bool))
    scores = np.arange(float(small_data.n_documents))
    assert repr(Risk(baseline=scores)) != repr(Risk(baseline=scores + 1))
    assert repr(Risk()) == "Risk(a=1)"
    with pytest.raises(ValueError, match=r"a must not be negative, not -1"):
        Risk(a=-1.0)
    stage = Ensemble(small_data, np.eye(5)[:2], NDCG(5), objectives=("risk", "error"))
    with pytest.raises(ValueError, match=r"needs a backend to compare with, or Risk\(baseline=scores\)"):
        stage.evaluate(np.ones((1, stage.n_var)))


def test_an_objective_of_a_user_is_refused_where_its_values_leave_its_bounds_and_where_these_are_no_box(small_data):
    class Latency(Objective):
        name, title, values, bounds = "latency", "Latency, ms", None, None

    mask, own = all_subsets(5), Latency()
    for values, bounds, message in (
        (
            lambda c: 10 + c.feature_mask.sum(1),
            (0, 12),
            'objective "latency" returned 13. Return 31 numbers within its bounds, 0 and 12',
        ),
        (lambda c: np.full(len(c.feature_mask), np.nan), (0, 1), "returned nan. "),
        (lambda c: np.full(len(c.feature_mask), -np.inf), (0, 1), "returned -inf. "),
        (lambda c: 0.5, (0, 1), r"returned float64 of shape \(\). Return 31 numbers"),
        (lambda c: None, (0, 1), "returned object of shape"),
        (None, (0.0, 0.0), r'"latency" has the bounds \(0.0, 0.0\). Return two finite numbers, the smaller one first'),
        (None, (0, np.inf), "two finite numbers"),
        (None, (1, 0), "two finite numbers"),
        (None, (0,), "two finite numbers"),
        (None, None, "has the bounds None"),
    ):
        own.values, own.bounds = values, lambda data, n_var, bounds=bounds: bounds
        with pytest.raises(ValueError, match=message):
            stage_of(small_data, (own, "error")).evaluate(mask)
    # But for rounding.
    own.values, own.bounds = lambda c: [0.1 + 0.2] * len(c.feature_mask), lambda data, n_var: (0, 0.3)
    assert stage_of(small_data, (own, "error")).evaluate(mask)[0, 0] == 0.1 + 0.2
