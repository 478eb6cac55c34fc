"""Scaling and missing values of what `fit` and `predict` are given."""

import numpy as np
import pandas as pd
import pytest

from moerank.data import RankingData, fit_scaling, query_level_norm
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP
from moerank.rankers import RankBoost, RankRLS, RankSVM
from moerank.rankers.arguments import as_feature_table, as_validation_data


def raw(seed=0, missing=None, share=0.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3)) * [1, 50, 0.01] + [0, 1000, 0]
    X[rng.random(X.shape) < share] = np.nan
    y = rng.integers(0, 3, 40)
    return RankingData(X.astype(dtype), y, np.repeat(np.arange(5), 8), name=f"set {seed}", missing=missing)


@pytest.mark.parametrize("kind", ["minmax", "standard", "query"])
def test_predictions_of_raw_and_scaled_data_are_the_same_bits(kind):
    train, test = raw(), raw(1)
    scaling = fit_scaling(train, kind)
    ranker = RankSVM().fit(scaling.apply(train))
    assert (ranker.scaling_, ranker.missing_) == (scaling, None)
    scores = ranker.predict(scaling.apply(test))
    np.testing.assert_array_equal(ranker.predict(test), scores)
    by_hand = (test.X - scaling.offset) / scaling.scale if kind != "query" else query_level_norm(test).X
    np.testing.assert_allclose(scores, by_hand @ ranker.coef_, rtol=1e-12, atol=1e-12)
    if kind == "query":  # an array has no queries, and is taken for scaled
        np.testing.assert_array_equal(ranker.predict(by_hand), scores)
        np.testing.assert_array_equal(ranker.predict(query_level_norm(test).X), scores)
    else:
        for table in (test.X, pd.DataFrame(test.X), test.X.tolist()):
            np.testing.assert_array_equal(ranker.predict(table), scores)


def test_other_scalings_than_that_of_the_fit_are_refused():
    train, test = raw(), raw(1)
    scaled = {kind: fit_scaling(train, kind).apply(train) for kind in ("minmax", "standard", "query")}
    ranker = RankSVM().fit(scaled["minmax"])
    other = fit_scaling(test, "minmax").apply(test)
    for data, how in (
        (scaled["standard"], r"\(minmax\)"),
        (scaled["query"], r"\(minmax\)"),
        (other, "by other values"),
    ):
        message = rf"the features of set . are scaled \({data.scaling.kind}\), .* {how}; fit to"
        with pytest.raises(ValueError, match=message):
            ranker.predict(data)
        with pytest.raises(ValueError, match=message):
            RankSVM().fit(scaled["minmax"], validation=data)
    with pytest.raises(ValueError, match=r"scaled \(minmax\), and those of the training data are not; fit to"):
        RankSVM().fit(train).predict(scaled["minmax"])
    unscaled = RankSVM().fit(scaled["query"].X, train.y, qid=train.qid)
    np.testing.assert_array_equal(unscaled.predict(scaled["query"]), unscaled.predict(scaled["query"].X))


@pytest.mark.parametrize("kind", ["minmax", "standard", "query", "none"])
def test_validation_data_are_scaled_as_the_training_data(kind):
    train, vali = raw(), raw(1)
    scaling = fit_scaling(train, kind)
    scaled = scaling.apply(train)
    found = as_validation_data(vali, scaled)
    assert found.scaling == scaling
    np.testing.assert_array_equal(found.X, scaling.apply(vali).X)
    assert as_validation_data(scaling.apply(vali), scaled).scaling == scaling
    arrays = as_validation_data((vali.X, vali.y, vali.qid), scaled)
    np.testing.assert_array_equal(arrays.X, vali.X if kind == "query" else found.X)
    tuned = RankSVM().tune(scaled, found)
    assert MAP().score(found, tuned.fit(scaled).predict(vali)) == MAP().score(found, tuned.fit(scaled).predict(found))


def test_missing_values_follow_the_rule_of_the_training_data():
    train = raw(missing=0.5, share=0.2)
    test = raw(1, missing=0.5, share=0.2)
    ranker = RankRLS().fit(train)
    assert ranker.missing_ == 0.5
    X = np.where(test.is_missing, np.nan, test.X)
    scores = ranker.predict(test)
    for table in (X, pd.DataFrame(X), pd.DataFrame(X).convert_dtypes()):
        np.testing.assert_array_equal(ranker.predict(table), scores)
    np.testing.assert_array_equal(ranker.transform(X), test.X[:, ranker.support_])
    assert np.isnan(X).any()
    found = as_validation_data((X, test.y, test.qid), train)
    np.testing.assert_array_equal(found.X, test.X)
    with pytest.raises(
        ValueError, match=r"missing in set 1 follows the rule missing='query-min', .* missing=0\.5; follow"
    ):
        ranker.predict(raw(1, missing="query-min", share=0.2))
    assert len(ranker.predict(raw(1, missing="query-min"))) == 40, "nothing was missing"


def test_a_rule_that_looks_at_queries_needs_them():
    train = raw(missing="query-worst", share=0.2)
    ranker = RankRLS().fit(train)
    test = raw(1, missing="query-worst", share=0.2)
    X = np.where(test.is_missing, np.nan, test.X)
    row, column = np.argwhere(np.isnan(X))[0]
    message = rf"X\[{row}, {column}\] is NaN .* missing='query-worst' looks at the whole query; give a RankingData"
    with pytest.raises(ValueError, match=message):
        ranker.predict(X)
    assert len(ranker.predict(test.X)) == 40
    with pytest.raises(ValueError, match=r"is NaN .*no rule is known; give a RankingData with a number, 'query-min'"):
        RankRLS().fit(raw()).predict(X)


def test_tables_keep_their_precision_and_linear_rankers_score_in_it():
    test = raw(dtype=np.float32)
    ranker = RankRLS().fit(raw())
    assert as_feature_table(test, ranker).dtype == np.float32
    assert as_feature_table(test.X, ranker).dtype == np.float32
    assert as_feature_table(test.X.tolist(), ranker).dtype == np.float64
    scores = ranker.predict(test)
    assert scores.dtype == np.float64
    np.testing.assert_array_equal(scores, linear_scores(test.X, ranker.coef_[None])[:, 0])
    np.testing.assert_allclose(scores, ranker.predict(test.X64), rtol=1e-5)


def test_many_rows_of_single_precision_are_scored_piece_by_piece():
    X = np.random.default_rng(0).random((150_000, 3)).astype(np.float32)
    ranker = RankBoost(n_rounds=3).fit(raw())  # which has no weights
    np.testing.assert_array_equal(ranker.predict(X), ranker.predict(X.astype(np.float64)))
    assert ranker.predict(X[:0]).shape == (0,)
