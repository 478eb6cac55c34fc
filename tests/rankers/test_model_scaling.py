"""What a model knows of scaling and missing values, against the estimators that it is made of."""

import json

import numpy as np
import pytest
from sklearn.base import clone

from moerank.data import PER_QUERY, UNSCALED, FittedScaling, RankingData, fit_scaling
from moerank.rankers import LambdaMART, RankRLS, RankSVM
from moerank.rankers.model import Model
from moerank.selectors.filter import SingleFeatures

NAMES = [f"feature {number}" for number in range(13)]


@pytest.fixture(scope="module")
def data(noisy_data):
    """One column is constant, so that not all columns of the table are features of a model."""
    return RankingData(np.insert(noisy_data.X, 4, 0.5, axis=1), noisy_data.y, noisy_data.qid)


def again_of(model):
    return Model.from_json(model.to_json())


def stored_scaled():
    scaling = FittedScaling("standard", (0.5, -1.0), (2.0, 1e-3))
    model = Model(names=("a", "b"), columns=(2, 5), weights=(0.5, -1.0), scaling=scaling, missing=0.0)
    return json.loads(model.to_json())


@pytest.mark.parametrize("ranker", [RankSVM(), LambdaMART(20), SingleFeatures(n_features_to_select=3)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_fitted_scaling_goes_with_the_model_and_is_applied_to_raw_values(data, ranker, dtype):
    raw = RankingData((50 * data.X - 3).astype(dtype), data.y, data.qid)
    scaled = fit_scaling(raw, "minmax").apply(raw)
    ranker = clone(ranker).fit(scaled)
    model = Model.of(ranker, NAMES)
    assert model.scaling == scaled.scaling.of_features(ranker.support_)
    assert len(model.scaling.offset) == ranker.support_.sum() < data.n_features
    again = again_of(model)
    assert again == model
    np.testing.assert_array_equal(again.scores(raw.X), ranker.predict(raw.X))
    np.testing.assert_array_equal(ranker.predict(raw.X), ranker.predict(scaled))
    assert np.ptp(again.scores(raw.X)) > 0
    others = raw.X.copy()
    others[:, ~ranker.support_] = np.nan  # no feature of the model
    np.testing.assert_array_equal(again.scores(others), ranker.predict(raw.X))
    with pytest.raises(ValueError, match="this is the scaled table of data, and raw values are scaled here"):
        model.scores(scaled.X)


def test_the_text_of_a_scaled_model():
    stored = stored_scaled()
    assert stored["scaling"] == {"kind": "standard", "offset": [0.5, -1.0], "scale": [2.0, 1e-3]}
    assert stored["missing"] == 0.0
    model = Model.from_json(json.dumps(stored))
    X = np.zeros((2, 6))
    X[:, [2, 5]] = [[2.5, -1.0], [0.5, -0.998]]
    np.testing.assert_allclose(model.scores(X), [0.5, -2.0], rtol=1e-12)


def test_missing_values_follow_the_rule_of_the_training_data():
    X = np.array([[0.0, 0.3], [0.5, np.nan], [1.0, 0.2], [0.2, 0.4]])
    by_number = RankRLS().fit(RankingData(X, [0, 1, 2, 0], missing=0.25))
    model = again_of(Model.of(by_number, ["a", "b"]))
    assert model.missing == by_number.missing_ == 0.25
    filled = np.where(np.isnan(X), 0.25, X)
    np.testing.assert_array_equal(model.scores(X), model.scores(filled))
    np.testing.assert_array_equal(by_number.predict(X), by_number.predict(filled))
    assert np.isnan(X).any()
    by_query = again_of(Model.of(RankRLS().fit(RankingData(X, [0, 1, 2, 0], missing="query-min")), ["a", "b"]))
    assert by_query.missing == "query-min"
    with pytest.raises(ValueError, match=r"X\[1, 1\] \(b\) is nan; replace .* by the rule 'query-min' of the training"):
        by_query.scores(X)
    assert Model.of(RankRLS().fit(filled, [0, 1, 2, 0]), ["a", "b"]).missing is None


def test_the_scaling_is_that_of_the_estimator_unless_it_is_said(data):
    ranker = RankRLS().fit(data.declared("query"))
    assert Model.of(ranker, NAMES).scaling == PER_QUERY
    assert Model.of(ranker, NAMES, UNSCALED).scaling == UNSCALED
    assert Model.of(RankRLS().fit(data), NAMES).scaling == UNSCALED


GONE = object()
DAMAGE = [
    (["scaling", "kind"], "query", r"scaling.query.offset: Unexpected keyword argument"),
    (["scaling", "offset"], GONE, "scaling.standard.offset: Field required"),
    (["scaling", "offset"], [1.0], "scaling.standard: 1 offsets and 2 scales are not those of one table"),
    (["scaling", "scale", 1], None, "scaling.standard.scale.1: Input should be a valid number"),
    (["scaling", "scale", 1], 0.0, r"scaling.standard: offset .* and scale 0\.0 of feature 1 cannot be applied"),
    (["scaling", "scale", 1], "1", "scaling.standard.scale.1: Input should be a valid number"),
    (["missing"], "query-max", "missing"),
    (["missing"], float("inf"), ""),
    (["missing"], True, "missing"),
]


@pytest.mark.parametrize(("keys", "value", "message"), DAMAGE)
def test_a_damaged_scaling_is_refused_by_name(keys, value, message):
    damaged = stored_scaled()
    *above, last = keys
    place = damaged
    for key in above:
        place = place[key]
    if value is GONE:
        del place[last]
    else:
        place[last] = value
    with pytest.raises(ValueError, match=f"^not a model: {message}"):
        Model.from_json(json.dumps(damaged))
