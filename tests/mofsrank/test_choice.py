"""The choice from a front by hand; guarantees against direct calculations, and their level by simulation."""

import itertools
from threading import Lock
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from moerank.data import RankingData, load_planted_fold
from moerank.data.folds import of_queries
from moerank.kernels.scores import linear_scores
from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.mofsrank.objectives import Measured, decide, guaranteed_member, halves, knee, values_of
from moerank.mofsrank.settings import InstanceSelectionSettings, Settings
from moerank.rankers import FSMRank, RankSVM
from moerank.statistics import e_value, largest_loss, level_of_each, mean_interval, p_above, p_differs, shown_above

SIZES = np.array([1, 2, 6, 9])


def test_the_knee_equals_the_largest_distance_from_the_line_between_the_ends():
    rng = np.random.default_rng(0)
    for _ in range(30):
        means = np.sort(rng.random(4))
        ends = np.array([[1, means[0]], [9, means[-1]]])
        scaled = (np.column_stack([SIZES, means]) - ends[0]) / (ends[1] - ends[0])
        distance = (scaled[:, 1] - scaled[:, 0]) / np.sqrt(2)
        expected = int(distance.argmax()) if distance.max() > 1e-12 else 3
        assert knee(SIZES, means) == expected


SMALL = dict(instance_selection=False, ensemble=False, feature_selection={"population": 12, "generations": 6})


def test_the_knee_of_a_front_that_only_falls_is_its_first_member():
    assert knee(SIZES, np.array([0.5, 0.4, 0.3, 0.2])) == 0
    assert knee(np.array([4]), np.array([0.5])) == 0
    assert knee(SIZES, np.full(4, 0.5)) == 0


def test_advice_names_the_smallest_member_that_does_no_harm():
    rng = np.random.default_rng(0)
    reference = rng.random(50)
    losses = np.array([-0.3, -0.2, -0.001, 0.01])
    per_query = reference[:, None] + losses + rng.normal(0, 0.02, (50, 4))
    measured = Measured(per_query, reference, np.arange(50) < 30)
    assert decide(2, SIZES, measured, all_allowed=True) == ("use", "")
    assert decide(3, SIZES, measured, all_allowed=True) == ("use", "")
    few = measured._replace(can_differ=np.arange(50) < 29)
    reason = "Only 29 validation queries can tell, too few to rely on"
    assert decide(2, SIZES, few, all_allowed=True) == ("try", reason)
    none = measured._replace(can_differ=np.zeros(50, bool))
    reason = "No validation query can tell sets of features apart, so their sizes alone chose"
    assert decide(2, SIZES, none, all_allowed=True) == ("none", reason)
    decision, reason = decide(1, SIZES, measured, all_allowed=True)
    assert decision == "loss"
    assert reason.startswith("On validation this set ranked worse than all features, by .1")
    assert reason.endswith("; the smallest set that did not has 6 features")
    for all_allowed, expected in ((True, "keep"), (False, "limits")):
        smaller = measured._replace(members=per_query[:, :2])
        decision, reason = decide(1, SIZES[:2], smaller, all_allowed=all_allowed)
        assert decision == expected
        assert reason.startswith("On validation every set of the front ranked worse than all features, the chosen one")
    reference = np.full(30, 0.5)  # without spread any loss counts
    for loss, expected in ((0.0, "use"), (0.25, "keep")):
        equal = Measured(reference[:, None] - loss, reference, np.ones(30, bool))
        assert decide(0, SIZES[:1], equal, all_allowed=True)[0] == expected


def test_a_guarantee_counts_queries_by_their_weights():
    d, weights = np.array([0.5, -0.1, 0.0, 0.2]), np.array([1.0, 6.0, 9.0, 1.0])
    measured = Measured((d * weights / weights.mean())[:, None], np.zeros(4), d != 0, weights)
    assert measured.differences.mean() == pytest.approx((0.5 - 0.6 + 0.2) / 8, abs=1e-15)
    d = np.random.default_rng(0).normal(0.0, 0.02, 2000)
    for heavy, elsewhere, shown in ((1.0, 1.0, True), (1.0, 3.0, False), (9.0, 1.0, True), (300.0, 1.0, False)):
        weights = np.where(np.arange(2000) < 20, heavy, 1.0)
        measured = Measured((d * weights / weights.mean())[:, None], 0 * d, d != 9, weights)
        values, scale = measured.weighed(elsewhere * heavy)
        found = guaranteed_member(np.array([2]), np.array([0.5]), values, 0.02, scale)
        assert (found.shown, found.largest_loss < 0.02) == (shown, shown)
        if shown:
            assert found.largest_loss > -mean_interval(measured.differences[:, 0], 0.92)[0] * (1 - 1e-9)
        assert found.largest_loss <= 1.0


@pytest.mark.parametrize("limit", [{"max_features": 1}, {"max_cost": 1.0}, {"max_features": 5}])
def test_advice_keeps_the_limits(limit):
    train, validation, _ = load_planted_fold(1, n_queries=40, n_relevant=4, n_redundant=0, n_noise=2, seed=3)
    budget = {"population": 4, "generations": 2}
    stages = {"instance_selection": False, "feature_selection": budget, "ensemble": False}
    solver = MOFSRank(**stages, limits={**limit, "costs": np.ones(train.n_features)}, random_state=0)
    verdict = solver.fit(train, validation=validation).verdict_
    assert verdict.decision != "keep"
    if limit != {"max_features": 5}:
        assert verdict.decision == "limits"


@pytest.fixture(scope="module")
def fitted():
    budget = {"population": 12, "generations": 4}
    stages = dict(instance_selection=False, feature_selection=budget, ensemble=budget, metric=NDCG(5), random_state=0)
    train, validation, test = load_planted_fold(1, n_queries=40, n_documents=14, seed=5)

    def fit(final, held_out=validation):
        return MOFSRank(**stages, final=final).fit(train, validation=held_out)

    return fit, validation, test


def test_mofsrank_chooses_by_these_rules_on_validation_or_else_training(fitted):
    fit, validation, _ = fitted
    for held_out in (None, validation):
        solvers = {rule: fit(rule, held_out) for rule in ("auto", "train", "half-se", "one-se", "knee")}
        table = solvers["train"].front_
        data = validation if held_out is not None else load_planted_fold(1, n_queries=40, n_documents=14, seed=5)[0]
        per_query = NDCG(5).per_query(data, linear_scores(data.X, solvers["train"].front_coefs_))
        sizes = table["n_features"].to_numpy()
        for rule, errors in (("half-se", 0.5), ("one-se", 1.0)):
            behind = per_query[:, [per_query.mean(axis=0).argmax()]] - per_query
            near = np.flatnonzero(behind.mean(axis=0) <= errors * stats.sem(behind))
            assert solvers[rule].chosen_ == min(near, key=lambda i: (sizes[i], behind[:, i].mean()))
        assert solvers["knee"].chosen_ == knee(sizes, per_query.mean(axis=0))
        assert (solvers["train"].verdict_ is None) == (held_out is None)
        assert solvers["train"].chosen_ == table["error"].argmin()
        assert solvers["auto"].chosen_ == solvers["train" if held_out is None else "half-se"].chosen_
    assert fit("validation").chosen_ == per_query.mean(axis=0).argmax()  # the first of equals is the smallest
    assert fit("train", None).front_["validation"].isna().all()
    with pytest.raises(ValueError, match="needs validation data"):
        fit("validation", None)


def test_the_verdict_compares_with_the_same_ranker_on_all_features(fitted):
    fit, validation, test = fitted
    solver = fit("one-se")
    everything = clone(solver.backend_).fit(load_planted_fold(1, n_queries=40, n_documents=14, seed=5)[0])
    for data, found in ((test, solver.verdict(test)), (validation, solver.verdict_)):
        d = NDCG(5).per_query(data, solver.predict(data)) - NDCG(5).per_query(data, everything.predict(data))
        assert found.difference == pytest.approx(d.mean(), abs=1e-12)
        assert found.error == pytest.approx(stats.sem(d), rel=1e-9)
        assert found.p == pytest.approx(p_differs(d), rel=1e-6)
        assert (found.n_features, found.n_allowed) == (solver.support_.sum(), test.n_features)
        assert found.n_queries == data.n_queries
    assert (solver.verdict_.part, solver.verdict(test).part) == ("validation", "test")
    train, sizes = load_planted_fold(1, n_queries=40, n_documents=14, seed=5)[0], []
    for part, factor in ((train, 2), (validation, 1)):
        d = NDCG(5).per_query(part, solver.predict(part)) - NDCG(5).per_query(part, everything.predict(part))
        sizes.append(factor * np.abs(d).max())
    expected = train.n_queries + validation.n_queries, pytest.approx(max(sizes), abs=1e-12), 1.0
    assert solver.verdict(test).tail == expected
    assert solver.verdict_.tail == (train.n_queries, pytest.approx(sizes[0], abs=1e-12), 1.0)
    raw = solver.verdict(test.X, test.y, qid=test.qid)
    assert raw == solver.verdict(test)
    with pytest.raises(ValueError, match="test data: y is missing: give the relevance labels"):
        solver.verdict((test.X, test.y, test.qid))


@pytest.mark.parametrize("solver", [MOFSRank(random_state=0, **SMALL), FSMRank()])
def test_a_constant_feature_counts_nowhere(solver):
    train, validation, test = (
        RankingData(np.column_stack([part.X, np.full(part.n_documents, 3.0)]), part.y, part.qid)
        for part in load_planted_fold(1, n_queries=40, n_documents=14, seed=5)
    )
    solver.fit(train, validation=validation)
    verdict = solver.verdict(test) if isinstance(solver, MOFSRank) else solver.verdict(test, train, validation)
    assert verdict.n_allowed == train.n_features - 1
    assert f" {train.n_features - 1} features" in verdict.sentence


FIVE_SIZES = np.array([1, 2, 4, 6, 9])


def test_the_e_value_has_an_expectation_of_at_most_1():
    """Over all outcomes of differences of mean `value`, with equality, by enumeration."""
    for value, outcomes in [(0.0, (-0.5, 0.5)), (-0.2, (-1.0, 0.6)), (-0.02, (-0.52, 0.48))]:
        draws = itertools.product(outcomes, repeat=8)
        assert np.mean([e_value(d, value) for d in draws]) == pytest.approx(1.0, rel=1e-12)


def test_the_smallest_member_before_the_first_failure_is_chosen():
    rng = np.random.default_rng(0)
    ordering = np.array([0.2, 0.5, 0.6, 0.7, 0.8])
    noise = rng.normal(0, 0.02, (400, 5))
    d = noise - noise.mean(axis=0) - np.array([0.0, 0.1, 0.01, 0.005, 0.0])
    found = guaranteed_member(FIVE_SIZES, ordering, d, 0.02)
    assert (found.chosen, found.shown, found.smaller, found.n_queries) == (2, True, True, 400)
    assert found.largest_loss == pytest.approx(-mean_interval(d[:, 2], 0.92)[0])
    assert found.sentence(FIVE_SIZES, 12, "MAP", 0.02) == (
        "4 of 12 features lose less than 0.02 MAP against all of them, with 95 % confidence by 400 validation queries "
        "that chose nothing else; the next smaller set fails the test"
    )


def test_what_cannot_be_shown_is_said_with_the_loss_that_can():
    d = np.random.default_rng(0).normal(-0.03, 0.02, (100, 5))
    found = guaranteed_member(FIVE_SIZES, np.array([0.2, 0.5, 0.6, 0.7, 0.8]), d, 0.02)
    assert (found.chosen, found.shown) == (4, False)
    assert found.sentence(FIVE_SIZES, 12, "MAP", 0.02).endswith("chose nothing else; 9 features lose less than 0.058")
    few = guaranteed_member(FIVE_SIZES, np.array([0.2, 0.5, 0.6, 0.7, 0.8]), np.full((2, 5), -1.0), 0.02)
    assert few.sentence(FIVE_SIZES, 12, "MAP", 0.02).endswith("chose nothing else")


@pytest.mark.parametrize("n", [5, 29, 30, 200])
def test_the_largest_loss_is_where_the_test_turns(n):
    d = np.random.default_rng(1).normal(0.01, 0.05, n)
    bound = largest_loss(d)
    assert bound == 1.0 or (shown_above(d, -bound - 0.001) and not shown_above(d, 0.002 - bound))
    if n >= 30:
        assert p_above(d, -bound) == pytest.approx(0.04)
    assert largest_loss(np.zeros(400)) < 0.02


def test_a_false_guarantee_is_as_rare_as_it_says():
    """Members that lose as much as the margin or more: 400 draws, and a bound that .05 exceeds once in 10⁴ runs."""
    rng, losses = np.random.default_rng(2), np.array([0.05, 0.03, 0.02, 0.01, 0.0])
    false = 0
    for _ in range(400):
        d = rng.normal(0, 0.05, (60, 1)) + rng.normal(0, 0.05, (60, 5)) - losses
        ordering = -losses + rng.normal(0, 0.01, 5)
        found = guaranteed_member(FIVE_SIZES, ordering, d, 0.02)
        false += found.shown and losses[found.chosen] >= 0.02
    assert false <= 38


def test_the_corrected_level_holds_for_the_best_of_many():
    """A plain interval misses the mean of the best of 20 equal members far more often than 1 time in 20."""
    rng, missed, corrected = np.random.default_rng(3), 0, 0
    for _ in range(200):
        d = rng.normal(0, 0.5, (200, 20)).clip(-1, 1)
        best = d[:, d.mean(axis=0).argmax()]
        missed += mean_interval(best)[0] > 0
        corrected += mean_interval(best, 1 - level_of_each(d, draws=500))[0] > 0
    assert missed > 40
    assert corrected <= 14


def test_the_queries_of_the_tests_tune_and_order_nothing():
    train, vali, test = load_planted_fold(1, n_queries=200)
    solver = MOFSRank(final="guaranteed", margin=0.1, random_state=0, **SMALL).fit(train, validation=vali)
    first, second = halves(vali, 0)
    assert sorted([*set(first.qid), *set(second.qid)]) == sorted(set(vali.qid))
    alone = MOFSRank(final="validation", margin=0.1, random_state=0, **SMALL).fit(train, validation=first)
    assert solver.front_.equals(alone.front_)
    means = values_of(first, NDCG(10), solver.front_rankers_).mean(axis=0)
    d = values_of(second, NDCG(10), solver.front_rankers_) - values_of(second, NDCG(10), solver.reference_)
    expected = guaranteed_member(solver.front_support_.sum(axis=1), means, d, 0.1)
    assert solver.guarantee_ == expected
    assert solver.chosen_ == expected.chosen
    assert "20 validation queries that chose nothing else" in solver.verdict(test).sentence
    with pytest.raises(ValueError, match='final="guaranteed" needs validation data'):
        MOFSRank(final="guaranteed", **SMALL).fit(train)
    with pytest.raises(ValueError, match="one query has no halves"):
        MOFSRank(final="guaranteed", **SMALL).fit(train, validation=of_queries(vali, np.array([0])))


def test_every_setting_is_listed_with_its_value_or_its_default():
    solver = MOFSRank(feature_selection={"population": 8, "termination": ("n_eval", 5)}, ensemble=False)
    listed = solver.get_params()
    assert listed["feature_selection__population"] == 8
    assert listed["feature_selection__termination"] == ("n_eval", 5)
    assert not [name for name in listed if name.startswith("ensemble__")]
    for name, value in InstanceSelectionSettings():
        assert listed[f"instance_selection__{name}"] == value
    assert not [name for name in solver.get_params(deep=False) if "__" in name]


def test_settings_are_set_one_by_one_and_the_users_mapping_stays():
    given = {"population": 8}
    solver = MOFSRank(RankSVM(), feature_selection=given)
    solver.set_params(feature_selection__generations=5, ensemble__inject=True, backend__C=2.0, final="knee")
    assert given == {"population": 8}
    assert solver.feature_selection == {"population": 8, "generations": 5}
    assert (solver.ensemble, solver.backend.C, solver.final) == ({"inject": True}, 2.0, "knee")
    copy = clone(solver)
    assert copy.get_params(deep=False)["feature_selection"] == solver.feature_selection
    client = SimpleNamespace(scatter=Lock())  # like a Dask client it cannot be copied
    assert clone(clone(solver).set_params(workers=client)).workers is client
    copy.set_params(**solver.get_params())
    given, copied = (estimator.set_params(random_state=0).get_params(deep=False) for estimator in (solver, copy))
    assert Settings.of(copied) == Settings.of(given)
    solver.set_params(ensemble__generations=4, ensemble={"population": 6})  # the whole first, in whatever order
    assert solver.ensemble == {"population": 6, "generations": 4}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ensemble__generatons": 5}, "unknown setting of ensemble 'generatons'; did you mean 'generations'"),
        ({"ensemble": False, "ensemble__generations": 5}, r"ensemble__generations: the stage is left out \(ensemble=F"),
        ({"backend__C": 5}, "backend__C: backend is None, and so has no parameters of its own; set backend itself"),
        ({"nonsense__C": 5}, "Invalid parameter 'nonsense'"),
    ],
)
def test_what_cannot_be_set_is_refused_in_words(changes, message):
    with pytest.raises(ValueError, match=message):
        MOFSRank().set_params(**changes)
