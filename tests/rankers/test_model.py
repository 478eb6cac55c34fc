"""Models against the rankers that they are made of, through the text of their JSON, and damaged ones."""

import copy
import json
from functools import reduce
from operator import getitem

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lightgbm import LGBMRanker
from sklearn.base import clone

from moerank.data import PER_QUERY, FittedScaling, RankingData, fit_scaling
from moerank.mofsrank import MOFSRank
from moerank.rankers import AdditiveRLS, BaggedLambdaMART, FRank, KernelRankSVM, LambdaMART, RankBoost, RankRLS, RankSVM
from moerank.rankers.model import Forest, Model
from moerank.selectors.filter import SingleFeatures
from moerank.selectors.fs_ed import FSED

NAMES = [f"feature {number}" for number in range(14)]
BAGS = BaggedLambdaMART(n_bags=3, n_trees=30, document_share=0.8, patience=5, random_state=0)
LINEAR = {
    "ranker": RankSVM(),
    "selector": SingleFeatures(n_features_to_select=3),
    "search": MOFSRank(
        instance_selection=False,
        feature_selection={"population": 6, "generations": 2},
        ensemble={"population": 6, "generations": 2},
        random_state=0,
    ),
}
FORESTS = {
    "RankBoost": RankBoost(25),
    "additive": AdditiveRLS(),
    "interactions": AdditiveRLS(interactions=3),
    "FRank": FRank(25, n_thresholds=None),
    "no stump": RankBoost(1),
    "LambdaMART": LambdaMART(40),
    "bags": BAGS,
    "selector": SingleFeatures(n_features_to_select=4, ranker=LambdaMART(10)),
}
NEITHER = {
    "kernel": KernelRankSVM(),
    "another package": FSED(n_features_to_select=3, ranker=LGBMRanker(n_estimators=5, verbose=-1)),
}


@pytest.fixture(scope="module")
def data(noisy_data):
    """Two of its columns are constant, so that columns of the table are not those of the training."""
    X = np.insert(np.insert(noisy_data.X, 4, 0.5, axis=1), 0, 1.0, axis=1)
    return RankingData(np.round(X, 3), noisy_data.y, noisy_data.qid)


@pytest.fixture(scope="module")
def unseen(data):
    """Random rows; then rows of values on thresholds and next to them."""
    rng = np.random.default_rng(3)
    forest = fitted(FORESTS["LambdaMART"], data).forest_
    ties = rng.choice(forest.thresholds, (200, data.n_features))
    return np.concatenate([rng.random((200, data.n_features)), ties, np.nextafter(ties, 2), np.nextafter(ties, -2)])


def fitted(ranker, data):
    ranker = copy.deepcopy(ranker)
    if isinstance(ranker, RankBoost) and ranker.n_rounds == 1:
        data = RankingData(-data.y[:, None] * np.ones((1, data.n_features)), data.y, data.qid)
    # By labels that nothing can be learned from, so that boosting ends long before its last tree.
    noise = RankingData(data.X, np.random.default_rng(5).permutation(data.y), data.qid)
    return ranker.fit(data, validation=noise)


def model_of(ranker):
    return Model.of(ranker, NAMES, PER_QUERY)


def read_again(model):
    return Model.from_json(model.to_json())


@pytest.mark.parametrize("ranker", LINEAR.values(), ids=LINEAR)
def test_linear_scores_are_the_rankers_to_the_bit(data, unseen, ranker):
    ranker = fitted(ranker, data)
    model = model_of(ranker)
    assert model.trees is None
    assert model.columns == tuple(np.flatnonzero(ranker.support_))
    assert model.names == tuple(NAMES[column] for column in model.columns)
    assert model.weights == tuple(ranker.coef_[ranker.support_])
    again = read_again(model)
    assert again == model
    np.testing.assert_array_equal(model.scores(unseen), ranker.predict(unseen))
    np.testing.assert_array_equal(again.scores(unseen), ranker.predict(unseen))
    assert np.ptp(model.scores(unseen)) > 0


@pytest.mark.filterwarnings("ignore:RankBoost found no feature")
@pytest.mark.parametrize("name", FORESTS)
def test_scores_by_trees_are_the_rankers(data, unseen, name):
    ranker = fitted(FORESTS[name], data)
    model = model_of(ranker)
    assert model.weights is None
    assert model.columns == tuple(np.flatnonzero(ranker.support_))
    assert set(model.trees.columns) <= set(model.columns)
    again = read_again(model)
    assert again == model
    np.testing.assert_allclose(model.scores(unseen), ranker.predict(unseen), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(again.scores(unseen), model.scores(unseen))
    np.testing.assert_array_equal(model.scores(unseen[150:300]), model.scores(unseen)[150:300])
    assert (name == "no stump") == (len(model.trees.roots) == 0) == (np.ptp(model.scores(unseen)) == 0)


@pytest.mark.parametrize("ranker", NEITHER.values(), ids=NEITHER)
def test_a_ranker_without_weights_and_trees_says_what_to_train(data, unseen, ranker):
    ranker = fitted(ranker, data)
    model = model_of(ranker)
    assert (model.weights, model.trees) == (None, None)
    assert len(model.columns) == ranker.support_.sum()
    assert model.score == "not a sum of weights: train this solver with these parameters on these features"
    assert read_again(model) == model
    with pytest.raises(ValueError, match="neither weights nor trees"):
        model.scores(unseen)


def test_the_text_of_a_linear_model():
    X = [[0.0, 7.0, 0.25], [1.0, 7.0, 0.5]]
    ranker = RankRLS(alpha=0.5).fit(X, [0, 1], qid=0)
    ranker.coef_ = np.array([0.1, 0.0, -3.0])
    stored = {
        "score": "the sum of weight times value of the feature; the largest ranks first",
        "names": ["BM25", "Länge"],
        "columns": [0, 2],
        "weights": [0.1, -3.0],
        "trees": None,
        "scaling": {"kind": "none"},
        "missing": None,
        "missing_values": [],
        "negative": [],
        "parameters": {"alpha": 0.5, "loss": "pair", "target": "unit", "tol": 1e-07},
    }
    text = json.dumps(stored, indent=1, ensure_ascii=False) + "\n"
    model = Model.of(ranker, ["BM25", "constant", "Länge"])
    assert model.to_json() == text
    assert Model.from_json(text).scores(X).tolist() == [-0.75, -1.4]


def test_a_table_without_the_features_or_with_others_is_refused(data):
    model = model_of(fitted(RankSVM(), data))
    assert model.columns[-1] == 13
    with pytest.raises(ValueError, match=r"the columns of the training data, 14 or more, not shape \(200, 13\)"):
        model.scores(data.X[:, :13])
    with pytest.raises(ValueError, match=r"the columns of the training data, 14 or more, not shape \(14,\)"):
        model.scores(data.X[0])
    holes = data.X.copy()
    holes[:, 0] = np.nan  # constant in training, so the model does not need it
    np.testing.assert_array_equal(model.scores(holes), model.scores(data.X))
    holes[7, 3] = np.inf
    with pytest.raises(ValueError, match=r"X\[7, 3\] \(feature 3\) is inf"):
        model.scores(holes)
    frame = pd.DataFrame(data.X, columns=NAMES)
    np.testing.assert_array_equal(model.scores(frame), model.scores(data.X))
    with pytest.raises(ValueError, match="column 3 of X must be 'feature 3', as in training, not 'other'"):
        model.scores(frame.rename(columns={"feature 3": "other"}))
    with pytest.raises(ValueError, match="feature_names must have 14 entries, not 13"):
        Model.of(fitted(RankSVM(), data), NAMES[:13])


def stored_forest():
    """Two trees: one of two splits, one that is a leaf."""
    trees = {
        "columns": [2, 5],
        "thresholds": [0.5, 1.5],
        "left": [1, -1],
        "right": [-2, -3],
        "leaves": [1.0, 2.0, 3.0, 0.25],
        "roots": [0, -4],
    }
    score = Model(names=(), columns=(), trees=Forest((), (), (), (), (), ())).score
    return {"score": score, "names": ["a", "b"], "columns": [2, 5], "trees": trees, "parameters": {"n_trees": 2}}


def stored_weights():
    model = Model(names=("a", "b"), columns=(2, 5), weights=(0.5, -1.0), parameters={"C": 1.0, "deep": True})
    return json.loads(model.to_json(problem="p", fold=1, solver="s"))


def stored_scaled():
    scaling = FittedScaling("standard", (0.5, -1.0), (2.0, 1e-3))
    model = Model(names=("a", "b"), columns=(2, 5), weights=(0.5, -1.0), scaling=scaling, missing=0.0)
    return json.loads(model.to_json())


def read(values):
    return Model.from_json(json.dumps(values))


def test_a_column_that_is_given_twice_and_scores_that_are_not_finite_are_refused():
    model = Model(names=("a", "b"), columns=(0, 1), weights=(1e308, -1e308))
    with pytest.raises(ValueError, match="X has the feature 'a' more than once; leave the column that training had"):
        model.predict(pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "a"]))
    assert model.predict(pd.DataFrame([[1.0, 1.0, 2.0, 3.0]], columns=["a", "b", "c", "c"])).tolist() == [0.0]
    for row, score in (([2.0, 2.0], "nan"), ([2.0, 0.0], "inf")):
        with pytest.raises(ValueError, match=f"this model scores row 1 by {score}, because its weights or"):
            model.predict([[0.5, 0.5], row])


def test_a_forest_written_by_hand_is_read():
    model = read(stored_forest())
    X = np.zeros((4, 6))
    X[:, [2, 5]] = [[0.5, 1.5], [0.5, 1.6], [0.6, 1.5], [-9, 9]]
    assert model.scores(X).tolist() == [1.25, 3.25, 2.25, 3.25]


DAMAGE = [
    (stored_weights, ["scaling", "kind"], "robust", "scaling: Input tag 'robust' found using 'kind' does not match"),
    (stored_weights, ["parameters", "C"], float("inf"), "Infinity is not a finite number"),
    (stored_weights, ["score"], "the largest weight", "score: this version scores such a model by .* not 'the lar"),
    (stored_weights, ["names", 1], "a", "names must be distinct"),
    (stored_weights, ["columns", 1], 2, "columns must count from 0 and ascend"),
    (stored_forest, ["columns", 1], 6, "trees split by column 5, which is not one of the features"),
    (stored_forest, ["trees", "thresholds"], [0.5], "trees: thresholds must have one entry per split, 2 in all, not 1"),
    (stored_forest, ["trees", "left", 1], 0, "trees: .* lead to each of 2 splits"),
    (
        stored_forest,
        ["trees", "leaves"],
        [1.0, 2.0, 3.0, 0.25, 7.0],
        "trees: .* lead to each of 2 splits and 5 leaves once",
    ),
    (stored_scaled, ["scaling", "scale", 1], 0.0, r"scaling.standard: .* scale 0\.0 of feature 1 cannot be applied"),
]


@pytest.mark.parametrize(("make", "keys", "value", "message"), DAMAGE)
def test_a_damaged_model_is_refused_by_name(make, keys, value, message):
    damaged = make()
    read(damaged)
    *above, last = keys
    table = reduce(getitem, above, damaged)
    table[last] = value
    with pytest.raises(ValueError, match=f"^not a model: .*({message})"):
        read(damaged)


def paths(value, path=()):
    """The paths of all that stands in nested lists and tables."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from paths(child, (*path, key))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
JSON = st.recursive(SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_stands_somewhere_a_model_that_is_read_can_score(drawn):
    """Anything at any place is refused with a sentence, or makes a model that scores and is written as it was read."""
    values = stored_forest() if drawn.draw(st.booleans()) else stored_weights()
    *above, last = drawn.draw(st.sampled_from(list(paths(values))))
    reduce(getitem, above, values)[last] = drawn.draw(JSON | st.just(10**400))
    try:
        model = read(values)
    except ValueError as error:
        assert str(error).startswith("not a model: ")
        return
    assert read(json.loads(model.to_json())) == model
    if not model.columns or model.columns[-1] < 1000:
        assert np.isfinite(model.scores(np.ones((3, 1000)))).all()


@pytest.mark.parametrize("ranker", [RankSVM(), LambdaMART(20), SingleFeatures(n_features_to_select=3)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fitted_scaling_goes_with_the_model_and_is_applied_to_raw_values(data, ranker, dtype):
    raw = RankingData((50 * data.X - 3).astype(dtype), data.y, data.qid)
    scaled = fit_scaling(raw, "minmax").apply(raw)
    ranker = clone(ranker).fit(scaled)
    model = Model.of(ranker, NAMES)
    assert model.scaling == scaled.scaling.of_features(ranker.support_)
    assert len(model.scaling.offset) == ranker.support_.sum() < data.n_features
    again = read_again(model)
    assert again == model
    np.testing.assert_array_equal(again.scores(raw.X), ranker.predict(raw.X))
    np.testing.assert_array_equal(ranker.predict(raw.X), ranker.predict(raw.X.astype(np.float64)))
    rounding = 0 if dtype == np.float64 else 1e-6  # of the scaled table, not of the raw one
    np.testing.assert_allclose(ranker.predict(raw.X), ranker.predict(scaled), rtol=0, atol=rounding)
    assert np.ptp(again.scores(raw.X)) > 0
    others = raw.X.copy()
    others[:, ~ranker.support_] = np.nan  # no feature of the model
    np.testing.assert_array_equal(again.scores(others), ranker.predict(raw.X))


def test_missing_values_follow_the_rule_of_the_training_data():
    X = np.array([[0.0, 0.3], [0.5, np.nan], [1.0, 0.2], [0.2, 0.4]])
    by_number = RankRLS().fit(RankingData(X, [0, 1, 2, 0], 0, missing=0.25))
    model = read_again(Model.of(by_number, ["a", "b"]))
    assert model.missing == by_number.missing_ == 0.25
    filled = np.where(np.isnan(X), 0.25, X)
    np.testing.assert_array_equal(model.scores(X), model.scores(filled))
    np.testing.assert_array_equal(by_number.predict(X), by_number.predict(filled))
    assert np.isnan(X).any()
    by_query = read_again(Model.of(RankRLS().fit(RankingData(X, [0, 1, 2, 0], 0, missing="query-min")), ["a", "b"]))
    assert by_query.missing == "query-min"
    with pytest.raises(ValueError, match=r"X\[1, 1\] \(b\) is nan; replace .* by the rule 'query-min' of the training"):
        by_query.scores(X)
    assert Model.of(RankRLS().fit(filled, [0, 1, 2, 0], qid=0), ["a", "b"]).missing is None
