import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from moerank.data import load_planted_fold
from moerank.kernels.scores import linear_scores
from moerank.metrics import NDCG
from moerank.mofsrank import MOFSRank
from moerank.mofsrank.objectives import advice_against, knee
from moerank.statistics import p_differs

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


def test_the_knee_of_a_front_that_only_falls_is_its_first_member():
    assert knee(SIZES, np.array([0.5, 0.4, 0.3, 0.2])) == 0
    assert knee(np.array([4]), np.array([0.5])) == 0
    assert knee(SIZES, np.full(4, 0.5)) == 0


def test_advice_names_the_smallest_member_that_does_no_harm():
    rng = np.random.default_rng(0)
    reference = rng.random(50)
    losses = np.array([-0.3, -0.2, -0.001, 0.01])
    per_query = reference[:, None] + losses + rng.normal(0, 0.02, (50, 4))
    assert advice_against(2, SIZES, per_query, reference, all_allowed=True) == ""
    assert advice_against(3, SIZES, per_query, reference, all_allowed=True) == ""
    said = advice_against(1, SIZES, per_query, reference, all_allowed=True)
    assert said.startswith("On validation this member ranked worse than all features, by 0.1")
    assert said.endswith("; the smallest member that did not has 6 features")
    said = advice_against(1, SIZES[:2], per_query[:, :2], reference, all_allowed=True)
    assert said.startswith("Keep all features: on validation every member of the front ranked worse, this one by 0.")
    reference = np.full(10, 0.5)  # without spread any loss counts
    assert advice_against(0, SIZES[:1], reference[:, None], reference, all_allowed=True) == ""
    assert advice_against(0, SIZES[:1], reference[:, None] - 0.25, reference, all_allowed=True) != ""


@pytest.mark.parametrize("limit", [{"max_features": 1}, {"max_cost": 1.0}, {"max_features": 5}])
def test_advice_keeps_the_limits(limit):
    train, validation, _ = load_planted_fold(1, n_queries=40, n_relevant=4, n_redundant=0, n_noise=2, seed=3)
    budget = {"population": 4, "generations": 2}
    stages = {"instance_selection": False, "feature_selection": budget, "ensemble": False}
    solver = MOFSRank(**stages, limits={**limit, "costs": np.ones(train.n_features)}, random_state=0)
    verdict = solver.fit(train, validation=validation).verdict_
    assert "eep all features" not in verdict.advice
    if limit != {"max_features": 5}:
        assert verdict.advice.startswith("Allow more features or a larger cost: on validation every member")


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
    raw = solver.verdict(test.X, test.y, qid=test.qid)
    assert raw == solver.verdict(test)
