"""Strings that keep limits against literal readings of them, and limits as a user of MOFSRank gives them."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from helpers.plain import all_subsets
from pydantic import ValidationError
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.optimize import minimize
from sklearn.base import clone

from moerank.data import FeatureCosts, RankingData, load_planted_fold
from moerank.evolution import ALGORITHMS
from moerank.metrics import NDCG
from moerank.mofsrank import Ensemble, FeatureSelection, Limits, MOFSRank
from moerank.mofsrank.limits import FeatureStrings, with_costs
from moerank.rankers import RankRLS

NAMES = ["tf", "idf", "bm25", "age", "clicks"]
PRICES = [3.0, 0.0, 1.5, 2.0, 8.0]
GROUPS = ["a", "b", "a", None, "b"]
SHARED = {"a": 4.0, "b": 1.0}
COSTS = FeatureCosts.of(PRICES, GROUPS, SHARED)
BUDGET = {"population": 16, "generations": 6}


def data(**more):
    X = np.random.default_rng(0).random((12, 5))
    return RankingData(X, [0, 1, 2] * 4, [1] * 6 + [2] * 6, feature_names=NAMES, costs=COSTS, **more)


def keeps(mask, limits):
    """The limits read literally, one set of names at a time."""
    selected = {name for name, one in zip(NAMES, mask, strict=True) if one}
    cost = sum(PRICES[NAMES.index(name)] for name in selected)
    cost += sum(SHARED[group] for group in {GROUPS[NAMES.index(name)] for name in selected} - {None})
    return (
        set(limits.include) <= selected
        and (limits.max_features is None or len(selected) <= limits.max_features)
        and (limits.max_cost is None or cost <= limits.max_cost)
        and not set(limits.exclude) & selected
    )


def random_limits(rng):
    some = lambda: rng.choice(NAMES, rng.integers(1, 4), replace=False).tolist()  # noqa: E731
    kinds = {
        "max_features": lambda: int(rng.integers(1, 5)),
        "max_cost": lambda: float(rng.uniform(2, 20)),
        "include": lambda: some()[:1],
        "exclude": some,
    }
    chosen = {name: kinds[name]() for name in kinds if rng.random() < 0.5}
    return Limits(**chosen)


def test_limits_are_refused_where_enumeration_finds_no_selection_and_else_kept_with_whatever_fits():
    rng = np.random.default_rng(0)
    X = all_subsets(5)
    refused = 0
    for _ in range(300):
        limits = random_limits(rng)
        possible = [mask for mask in X if mask.any() and keeps(mask, limits)]
        if not possible:
            refused += 1
            with pytest.raises(ValueError, match=r"no selection can keep the limits|is both in include and in exclude"):
                FeatureStrings(data(), limits)
            continue
        strings = FeatureStrings(data(), limits)
        repaired, included = strings.repaired(X, rng), np.isin(NAMES, limits.include)
        np.testing.assert_array_equal(strings.keeps_limits(X), [keeps(mask, limits) for mask in X])
        for before, after in zip(X, repaired, strict=True):
            # Without an included feature a string may end empty, which is the worst individual.
            assert keeps(after, limits), limits
            assert not (after & ~before & ~included).any()
            if keeps(before, limits):
                np.testing.assert_array_equal(after, before)
            for dropped in np.flatnonzero(before & ~after):
                assert not keeps(after | (np.arange(5) == dropped), limits)
    assert 20 < refused < 280


def test_what_is_dropped_is_left_to_chance():
    strings = FeatureStrings(data(), Limits(max_features=2))
    repaired = strings.repaired(np.ones((4000, 5), bool), np.random.default_rng(0))
    counts = np.unique(repaired, axis=0, return_counts=True)[1]
    assert len(counts) == 10
    assert np.abs(counts - 400).max() < 5 * np.sqrt(400)


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (Limits(), 5),
        (Limits(max_features=2), 2),
        (Limits(max_cost=3.0), 2),
        (Limits(max_cost=12, include=["clicks"]), 3),
    ],
)
def test_the_most_ones_are_those_of_the_largest_string_that_keeps_the_limits(limits, most):
    strings = FeatureStrings(data(), limits)
    assert strings.max_ones == most == max(sum(mask) for mask in all_subsets(5) if keeps(mask, limits))


def test_a_bit_stands_for_a_group():
    strings = FeatureStrings(data(), Limits(include=["clicks"]), by_group=True)
    assert strings.bit_of.tolist() == [0, 1, 0, 2, 1]
    assert strings.included.tolist() == [False, True, False, False, True]
    X = np.array(list(product([False, True], repeat=3)))
    for bits, mask in zip(X, strings.columns(X), strict=True):
        assert mask.tolist() == [bits[0], bits[1], bits[0], bits[2], bits[1]]
    np.testing.assert_array_equal(strings.bits(strings.columns(X)), X)
    np.testing.assert_array_equal(strings.bits(np.eye(5, dtype=bool)).argmax(axis=1), strings.bit_of)


def test_groups_are_repaired_as_a_whole():
    limits = Limits(max_features=3, max_cost=11.0)
    strings = FeatureStrings(data(), limits, by_group=True)
    repaired = strings.repaired(np.ones((200, 3), bool), np.random.default_rng(0))
    assert {tuple(strings.columns(row[None])[0]) for row in repaired} == {
        (True, False, True, True, False),  # 3 + 1.5 + 2 and 4 for the group
        (False, True, False, True, True),  # 0 + 8 + 2 and 1 for the group
    }


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(max_cost=0.5), r"the smallest feature alone costs 1, and max_cost is 0\.5"),
        (Limits(max_features=1, include=["tf", 1]), "include alone has 2 features, and max_features is 1"),
        (Limits(max_cost=6, include=["tf"]), "include alone costs 7, and max_cost is 6"),
        (Limits(include=[5]), "include: there is no column 5; give a column from 0 to 4"),
    ],
)
def test_limits_that_no_selection_can_keep_are_refused(limits, message):
    with pytest.raises(ValueError, match=message):
        FeatureStrings(data(), limits)


def test_a_stage_refuses_strings_that_break_a_limit():
    stage = FeatureSelection(data(), metric=NDCG(5), limits={"max_features": 2, "include": "idf"})
    X = np.array([[0, 1, 0, 0, 1], [0, 1, 1, 1, 0]], bool)
    with pytest.raises(ValueError, match="string 1 of 2 has 3 features, and max_features is 2; give strings that keep"):
        stage.evaluate(X)
    with pytest.raises(ValueError, match="string 0 of 1 lacks feature 'idf', which is included in every selection"):
        stage.evaluate(np.eye(5, dtype=bool)[:1])
    assert stage.evaluate(np.zeros((1, 5), bool)).tolist() == [[6.0, 2.0]]
    stage = FeatureSelection(data(), metric=NDCG(5), limits=Limits(exclude="age"))
    with pytest.raises(ValueError, match="string 0 of 2 has feature 'age', which is in exclude; give strings"):
        stage.evaluate(X[::-1])


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        (Limits(max_features=3, include=[2]), lambda mask: mask[2] and mask.sum() <= 3),
        (Limits(exclude=[1, 3], max_features=2), lambda mask: not mask[[1, 3]].any() and mask.sum() <= 2),
    ],
    ids=["size", "excluded"],
)
def test_a_search_without_the_repair_is_refused_and_one_with_it_finds_the_exact_front(small_data, limits, allowed):
    stage = FeatureSelection(small_data, RankRLS(1e-3), NDCG(5), limits=limits)
    without = {name: operator for name, operator in stage.operators().items() if name != "repair"}
    with pytest.raises(ValueError, match="give strings that keep the limits, or give the search the repair"):
        minimize(stage, NSGA2(8, **without), ("n_gen", 5), seed=1)
    found = minimize(stage, NSGA2(8, **stage.operators()), ("n_gen", 30), seed=1)
    X = np.array([mask for mask in all_subsets(5) if mask.any() and allowed(mask)])
    F = FeatureSelection(small_data, RankRLS(1e-3), NDCG(5)).evaluate(X)
    best = [f for f in F if not any((g <= f).all() and (g < f).any() for g in F)]
    np.testing.assert_array_equal(np.unique(found.F, axis=0), np.unique(best, axis=0))


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_every_string_that_any_search_evaluates_keeps_the_limits(algorithm, monkeypatch):
    train = load_planted_fold(1, n_queries=10, n_documents=10, n_relevant=3, n_redundant=2, n_noise=7, seed=5)[0]
    prices = 1.0 + np.arange(12) % 4
    seen = []

    def watched(stage, X, measure=FeatureSelection.measure):
        seen.append(X)
        return measure(stage, X)

    monkeypatch.setattr(FeatureSelection, "measure", watched)
    solver = MOFSRank(
        metric=NDCG(5), instance_selection=False, feature_selection=BUDGET, ensemble=BUDGET, algorithm=algorithm,
        random_state=0, limits=Limits(
            max_features=6, max_cost=14.0, include=[3], exclude=["noise 7", 0], costs=prices,
            groups=["x"] * 6 + ["y"] * 6, group_costs={"x": 2.0},
        ),
    )  # fmt: skip
    solver.fit(train)
    kept = np.arange(12) != 0
    kept[train.feature_names.index("noise 7")] = False
    X = np.zeros((len(np.concatenate(seen)), 12), bool)
    X[:, kept] = np.concatenate(seen)
    assert len(X) > 15
    for masks in (X, solver.front_support_):
        assert masks[:, 3].all()
        assert not masks[:, ~kept].any()
        assert masks.sum(axis=1).max() <= 6
        assert (masks @ prices + 2.0 * masks[:, :6].any(axis=1)).max() <= 14.0


MEMBERS = np.array([[1.0, 0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 0.0]])


def test_an_ensemble_counts_what_is_included_and_drops_what_exceeds():
    limits = Limits(max_features=3, include=["idf"])
    stage = Ensemble(data(), MEMBERS, NDCG(5), objectives=("features", "cost", "error"), limits=limits)
    assert stage._bits.tolist() == [0, 2, 3]
    X = np.array([[0, 1, 1, 0.5, 0.5], [1, 0, 0, 1.0, 0.0]])
    assert stage.evaluate(X)[:, :2].tolist() == [[3.0, 1.5 + 2 + 4 + 0 + 1], [2.0, 3 + 4 + 0 + 1]]
    with pytest.raises(ValueError, match="string 0 of 1 has 4 features, and max_features is 3"):
        stage.evaluate(np.array([[1, 1, 1, 0.5, 0.5]]))
    found = minimize(stage, NSGA2(12, **stage.operators()), ("n_gen", 4), seed=1)
    assert set(found.pop.get("F")[:, 0]) <= {2.0, 3.0, 6.0 + 1}  # the last is an empty string's


def test_an_ensemble_leaves_out_what_is_excluded():
    for by_group in (False, True):
        stage = Ensemble(data(), MEMBERS, NDCG(5), limits=Limits(exclude="tf"), by_group=by_group)
        X = np.hstack([np.ones((1, stage.n_bits)), [[0.5, 0.5]]])
        assert stage.combined(X).coefs.tolist() == [[0.0, 0.0, 1.5, 0.5, 0.0]]
        assert stage.evaluate(X)[0, 0] == 2.0


def test_an_ensemble_of_groups_counts_whole_groups():
    coefs = np.array([[1.0, 0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]])
    stage = Ensemble(data(), coefs, NDCG(5), objectives=("features", "cost"), by_group=True)
    assert stage._bits.tolist() == [0, 2]
    assert stage.evaluate(np.array([[1, 0, 1.0, 1.0], [1, 1, 1.0, 1.0]])).tolist() == [[2.0, 8.5], [3.0, 10.5]]
    assert stage.members().tolist() == [[1, 0, 1, 0], [0, 1, 0, 1]]


@pytest.mark.parametrize("by_group", [False, True])
def test_the_strings_to_start_from_keep_the_limits(by_group):
    train = load_planted_fold(1, n_queries=10, n_documents=10, n_relevant=3, n_redundant=2, n_noise=7, seed=5)[0]
    groups = [f"group {k // 2}" for k in range(12)]
    limits = Limits(max_cost=6.0, include=[7], exclude=[1], costs=np.ones(12), groups=groups)
    stage = FeatureSelection(train, limits=limits, by_group=by_group)
    strings = stage.starting_strings(12)
    masks = stage.strings.columns(strings)
    assert len(np.unique(strings, axis=0)) >= 2
    assert masks[:, 7].all()
    assert not masks[:, 1].any()
    assert masks.sum(axis=1).max() <= 6


SMALL = dict(
    metric=NDCG(5), instance_selection=False, feature_selection=BUDGET, ensemble=BUDGET, random_state=0
)  # fmt: skip


@pytest.fixture(scope="module")
def fold():
    return load_planted_fold(1, n_queries=25, n_documents=14, n_relevant=3, n_redundant=2, n_noise=3, seed=5)


def test_excluded_columns_leave_the_data_tuning_and_reference_included(fold):
    train, vali, test = fold
    allowed = np.isin(train.feature_names, [train.feature_names[1], "noise 2"], invert=True)
    solver = MOFSRank(**SMALL, limits=Limits(exclude=[1, "noise 2"])).fit(train, validation=vali)
    without = MOFSRank(**SMALL).fit(train.with_features(allowed), validation=vali.with_features(allowed))
    assert repr(solver.backend_) == repr(without.backend_)
    np.testing.assert_array_equal(solver.front_coefs_[:, allowed], without.front_coefs_)
    assert not solver.front_coefs_[:, ~allowed].any()
    assert [tuple(np.flatnonzero(allowed)[list(features)]) for features in without.front_["features"]] == solver.front_[
        "features"
    ].tolist()
    np.testing.assert_array_equal(solver.predict(test.X), without.predict(test.X[:, allowed]))
    assert solver.verdict_ == without.verdict_
    assert solver.verdict(test).sentence == without.verdict(test.with_features(allowed)).sentence
    assert "of 6 features" in solver.verdict(test).sentence
    path, plain = solver.path(train), without.path(train.with_features(allowed))
    np.testing.assert_array_equal(path.feature_mask[:6, allowed], plain.feature_mask)


EIGHT_PRICES = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
EIGHT_NAMES = [f"f{k}" for k in range(8)]


@pytest.mark.parametrize(
    "costs",
    [
        EIGHT_PRICES,
        FeatureCosts.of(EIGHT_PRICES),
        dict(zip(reversed(EIGHT_NAMES), reversed(EIGHT_PRICES), strict=True)),
        pd.Series(EIGHT_PRICES[::-1], index=EIGHT_NAMES[::-1]),
        pd.Series(EIGHT_PRICES),
    ],
    ids=["list", "FeatureCosts", "mapping", "named series", "series"],
)
def test_costs_may_be_given_in_order_or_by_name(fold, costs):
    train = fold[0]
    frame = pd.DataFrame(train.X, columns=EIGHT_NAMES)
    solver = MOFSRank(**SMALL, objectives=("features", "error", "cost"), limits=Limits(costs=costs))
    solver.fit(frame, train.y, qid=train.qid)
    np.testing.assert_array_equal(solver.front_["cost"], solver.front_support_ @ np.array(EIGHT_PRICES))


def test_groups_are_selected_as_a_whole(fold):
    train = fold[0]
    groups = ["a", "a", "b", "b", "b", None, None, "a"]
    settings = {**SMALL, "feature_selection": {**BUDGET, "by_group": True}}
    limits = Limits(groups=groups, group_costs={"a": 5, "b": 2})
    solver = MOFSRank(**settings, objectives=("error", "cost"), limits=limits).fit(train)
    for mask, cost in zip(solver.front_support_, solver.front_["cost"], strict=True):
        assert mask[0] == mask[1] == mask[7]
        assert mask[2] == mask[3] == mask[4]
        assert cost == 5 * mask[0] + 2 * mask[2]
    assert len(solver.front_) > 1


def test_an_included_feature_counts_at_weight_0(fold):
    train = fold[0]
    solver = MOFSRank(**SMALL, limits=Limits(include=7)).fit(train)
    assert solver.front_support_[:, 7].all()
    np.testing.assert_array_equal(solver.front_["n_features"], solver.front_support_.sum(axis=1))
    assert solver.transform(train).shape[1] == solver.support_.sum()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"include": [1], "exclude": ["relevant 3"]}, "feature 'relevant 3' is both in include and in exclude"),
        ({"include": ["relevant 4"]}, "include: unknown feature 'relevant 4'; did you mean"),
        ({"include": 1.5}, "include: there is no column 1.5; give a column from 0"),
        ({"exclude": range(8)}, "exclude leaves none of the 8 features"),
        ({"max_feature": 3}, "unknown limit 'max_feature'; did you mean 'max_features'"),
        ({"max_features": 2.5}, "max_features must be an integer, not 2.5"),
        ({"max_features": 0}, "max_features must be at least 1, not 0"),
        ({"max_cost": -1}, "max_cost should be greater than or equal to 0, not -1"),
        ({"max_cost": 3.0}, "max_cost needs to know what the features cost"),
        ({"costs": {"f0": 1.0}}, "costs: unknown feature 'f0'"),
        ({"costs": {0: 1.0}}, "costs: no value for feature 'relevant 3'"),
        ({"costs": [1.0] * 7}, "7 costs were given for 8 features"),
        ({"costs": FeatureCosts.of(EIGHT_PRICES), "groups": ["a"] * 8}, "costs is a FeatureCosts"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_the_search(fold, limits, message, monkeypatch):
    monkeypatch.setattr("moerank.mofsrank.estimator.StagedSearch", lambda *_: pytest.fail("the search has begun"))
    with pytest.raises(ValueError, match=message):
        MOFSRank(**SMALL, limits=limits).fit(fold[0])
    with pytest.raises(ValueError, match=message):
        FeatureSelection(fold[0], limits=Limits(**limits))
    with pytest.raises(ValueError, match="by_group needs groups of features"):
        MOFSRank(**SMALL | {"feature_selection": {"by_group": True}}).fit(fold[0])


def test_limits_show_what_is_set_and_are_set_one_by_one():
    limits = Limits(max_features=np.int64(4), include=np.array([2, 3]))
    assert repr(limits) == "Limits(include=(2, 3), max_features=4)"
    solver = MOFSRank(limits=limits).set_params(limits__max_cost=2.0, limits__costs=[1.0, 2.0])
    assert clone(solver).limits == {"max_features": 4, "include": (2, 3), "max_cost": 2.0, "costs": [1.0, 2.0]}
    assert (limits.max_cost, solver.get_params()["limits__max_features"]) == (None, 4)
    assert MOFSRank().get_params()["limits__include"] == ()
    with pytest.raises(ValueError, match="unknown setting of limits 'max_price'"):
        solver.set_params(limits__max_price=3)
    with pytest.raises(ValidationError, match="frozen"):
        limits.max_features = 5


def test_every_way_to_give_limits_is_one_front(fold):
    train, vali, _ = fold
    prices = dict(zip(train.feature_names, EIGHT_PRICES, strict=True))
    limits = Limits(max_features=3, max_cost=14.0, include="noise 1", costs=prices)
    one = MOFSRank(**SMALL, limits=limits).fit(train, validation=vali)
    two = MOFSRank(
        **SMALL, limits={"max_features": 3, "max_cost": 14.0, "include": [train.feature_names.index("noise 1")]}
    )
    two.fit(train.with_costs(FeatureCosts.of(EIGHT_PRICES)), validation=vali)
    assert one.front_.equals(two.front_)
    assert one.verdict_ == two.verdict_


def test_groups_keep_the_costs_and_numbers_of_the_data():
    train = RankingData(np.eye(2), [0, 1], qid=0).with_costs(
        FeatureCosts.of([3.0, 4.0], numbers={"latency": [0.1, 0.2]})
    )
    costs = with_costs(train, Limits(groups=["a", "a"], group_costs={"a": 5.0})).costs
    assert (costs.own.tolist(), costs.shared.tolist()) == ([3.0, 4.0], [5.0])
    assert costs.numbers["latency"].tolist() == [0.1, 0.2]
