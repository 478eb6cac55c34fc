"""Costs, groups, limits and exclusions as a user of MOFSRank gives them."""

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from sklearn.base import clone

from moerank.data import FeatureCosts, load_planted_fold
from moerank.metrics import NDCG
from moerank.mofsrank import FeatureSelection, Limits, MOFSRank

BUDGET = {"population": 16, "generations": 6}
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


PRICES = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
NAMES = [f"f{k}" for k in range(8)]


@pytest.mark.parametrize(
    "costs",
    [
        PRICES,
        FeatureCosts.of(PRICES),
        dict(zip(reversed(NAMES), reversed(PRICES), strict=True)),
        pd.Series(PRICES[::-1], index=NAMES[::-1]),
        pd.Series(PRICES),
    ],
    ids=["list", "FeatureCosts", "mapping", "named series", "series"],
)
def test_costs_may_be_given_in_order_or_by_name(fold, costs):
    train = fold[0]
    frame = pd.DataFrame(train.X, columns=NAMES)
    solver = MOFSRank(**SMALL, objectives=("features", "error", "cost"), limits=Limits(costs=costs))
    solver.fit(frame, train.y, qid=train.qid)
    np.testing.assert_array_equal(solver.front_["cost"], solver.front_support_ @ np.array(PRICES))


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
    assert solver.transform(train.X).shape[1] == solver.support_.sum()


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
        ({"costs": {0: 1.0}}, "costs: nothing is given for feature 'relevant 3'"),
        ({"costs": [1.0] * 7}, "7 costs were given for 8 features"),
        ({"costs": FeatureCosts.of(PRICES), "groups": ["a"] * 8}, "costs is a FeatureCosts"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_the_search(fold, limits, message, monkeypatch):
    monkeypatch.setattr("moerank.mofsrank.estimator._tuned", lambda *_: pytest.fail("the search has begun"))
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
    prices = dict(zip(train.feature_names, PRICES, strict=True))
    limits = Limits(max_features=3, max_cost=14.0, include="noise 1", costs=prices)
    one = MOFSRank(**SMALL, limits=limits).fit(train, validation=vali)
    two = MOFSRank(
        **SMALL, limits={"max_features": 3, "max_cost": 14.0, "include": [train.feature_names.index("noise 1")]}
    )
    two.fit(train.with_costs(FeatureCosts.of(PRICES)), validation=vali)
    assert one.front_.equals(two.front_)
    assert one.verdict_ == two.verdict_
