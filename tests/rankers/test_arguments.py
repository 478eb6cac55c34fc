"""Scaling and missing values of what `fit` and `predict` are given."""

import math
import re
import statistics
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRanker

from moerank.data import RankingData, fit_scaling, query_level_norm
from moerank.data.describe import feature_correlations
from moerank.kernels.scores import linear_scores
from moerank.metrics import MAP, NDCG
from moerank.mofsrank import MOFSRank
from moerank.rankers import (
    CombinedRegressionRanking,
    FRank,
    FSMRank,
    KernelRankSVM,
    LambdaMART,
    RankBoost,
    RankerAdapter,
    RankRLS,
    RankSVM,
    ScaleWarning,
    nested_masks,
    varying_in_queries,
)
from moerank.rankers.arguments import as_validation_data, warn_of_scales
from moerank.rankers.importance import single_feature_values
from moerank.selectors.filter import SingleFeatures
from moerank.selectors.gas import GAS, NGAS


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
    for data in (scaled["standard"], scaled["query"], other):
        message = rf"the features of set . are scaled \({data.scaling.kind}\), but not by .* \(minmax\); fit to"
        with pytest.raises(ValueError, match=message):
            ranker.predict(data)
        with pytest.raises(ValueError, match=message):
            RankSVM().fit(scaled["minmax"], validation=data)
    with pytest.raises(ValueError, match=r"scaled \(minmax\), but not by .* of the training data \(none\); fit to"):
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
    X = np.where(test._missing, np.nan, test.X)
    scores = ranker.predict(test)
    for table in (X, pd.DataFrame(X), pd.DataFrame(X).convert_dtypes()):
        np.testing.assert_array_equal(ranker.predict(table), scores)
    np.testing.assert_array_equal(ranker.transform(X), test.X[:, ranker.support_])
    assert np.isnan(X).any()
    found = as_validation_data((X, test.y, test.qid), train)
    np.testing.assert_array_equal(found.X, test.X)
    with pytest.raises(
        ValueError, match=r"missing values of set 1 follow the rule missing='query-min', .* missing=0\.5; use"
    ):
        ranker.predict(raw(1, missing="query-min", share=0.2))
    assert len(ranker.predict(raw(1, missing="query-min"))) == 40, "nothing was missing"


def test_a_rule_that_looks_at_queries_needs_them():
    train = raw(missing="query-worst", share=0.2)
    ranker = RankRLS().fit(train)
    test = raw(1, missing="query-worst", share=0.2)
    X = np.where(test._missing, np.nan, test.X)
    row, column = np.argwhere(np.isnan(X))[0]
    message = rf"X\[{row}, {column}\] is NaN .* missing='query-worst' needs the whole query; give a RankingData"
    with pytest.raises(ValueError, match=message):
        ranker.predict(X)
    assert len(ranker.predict(test.X)) == 40
    with pytest.raises(ValueError, match=r"is NaN .*there is no rule; give a RankingData with a number, 'query-min'"):
        RankRLS().fit(raw()).predict(X)


def test_tables_keep_their_precision_and_linear_rankers_score_in_it():
    test = raw(dtype=np.float32)
    ranker = RankRLS().fit(raw())
    assert ranker._table(test).dtype == np.float32
    assert ranker._table(test.X).dtype == np.float32
    assert ranker._table(test.X.tolist()).dtype == np.float64
    scores = ranker.predict(test)
    assert scores.dtype == np.float64
    np.testing.assert_array_equal(scores, linear_scores(test.X, ranker.coef_[None])[:, 0])
    np.testing.assert_allclose(scores, ranker.predict(test.X64), rtol=1e-5)


def test_many_rows_of_single_precision_are_scored_piece_by_piece():
    X = np.random.default_rng(0).random((150_000, 3)).astype(np.float32)
    ranker = RankBoost(n_rounds=3).fit(raw())  # which has no weights
    np.testing.assert_array_equal(ranker.predict(X), ranker.predict(X.astype(np.float64)))
    assert ranker.predict(X[:0]).shape == (0,)


def data_of_scales(*scales, seed=0, sizes=(5, 1, 12, 3)):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X = (rng.random((len(qid), len(scales))) + rng.random(len(sizes))[qid][:, None] * 100) * scales
    return RankingData(X, rng.integers(0, 3, len(qid)), qid)


def deviations(data):
    result = []
    for f in range(data.n_features):
        total = 0.0
        for begin, end in zip(data.offsets[:-1].tolist(), data.offsets[1:].tolist(), strict=True):
            values = [float(value) for value in data.X[begin:end, f]]
            total += len(values) * statistics.pvariance(values)
        result.append(math.sqrt(total / data.n_documents))
    return result


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_two_features_and_their_deviations(dtype):
    data = data_of_scales(1.0, 1e5, 0.0, 3.0, 1e-2)
    data = RankingData(data.X.astype(dtype), data.y, data.qid)
    expected = deviations(data)
    said = (
        rf"by a factor of {expected[1] / expected[4]:.0e}: .* '2' .* of {expected[1]:.2g}, .* '5' .* {expected[4]:.2g},"
    )
    with pytest.warns(ScaleWarning, match=re.escape(said).replace(r"\.\*", ".*")):
        warn_of_scales(data)
    assert varying_in_queries(data).tolist() == [True, True, False, True, True]


@pytest.mark.parametrize(
    "ranker", [RankSVM(), RankRLS(), KernelRankSVM(), SingleFeatures(1), SingleFeatures(1, RankSVM())]
)
def test_one_warning_names_both_features_and_the_remedies_at_the_users_call(ranker):
    data = data_of_scales(1.0, 1e7)
    named = RankingData(data.X, data.y, data.qid, ["small", "large"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ranker.fit(named)
    (warning,) = [entry for entry in caught if entry.category is ScaleWarning]
    assert warning.filename == __file__
    said = str(warning.message)
    for part in ("factor of 1e+07", "'large'", "'small'", "query_level_norm", "fit_scaling", 'normalize = "query"'):
        assert part in said, said


@pytest.mark.parametrize(
    "ranker",
    [
        LambdaMART(2),
        RankBoost(2),
        FRank(2),
        SingleFeatures(1, LambdaMART(2)),
        MOFSRank(
            RankerAdapter(LGBMRanker(n_estimators=2, min_child_samples=1, verbose=-1)),
            instance_selection=False,
            feature_selection={"population": 4, "generations": 1},
            ensemble=False,
        ),
    ],
)
def test_trees_rankers_from_elsewhere_and_scaled_data_are_spared(ranker):
    data = data_of_scales(1.0, 1e7)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScaleWarning)
        ranker.fit(data)
        for scaled in (query_level_norm(data), fit_scaling(data, "standard").apply(data), data.mark_scaled("query")):
            RankSVM().fit(scaled)


SQUARES = {
    "RankRLS": lambda data: RankRLS().fit(data),
    "RankRLS of queries": lambda data: RankRLS(loss="query").fit(data),
    "RankSVM": lambda data: RankSVM().fit(data),
    "RankSVM of a subset": lambda data: RankSVM().fit_population(data, pair_mask=np.arange(data.n_pairs) > 0),
    "CRR": lambda data: CombinedRegressionRanking().fit(data),
    "FSMRank": lambda data: FSMRank().fit(data),
    "GAS": lambda data: GAS().fit(data),
    "NGAS": lambda data: NGAS().fit(data),
    "MOFSRank": lambda data: MOFSRank(random_state=0).fit(data),
    "correlations": lambda data: feature_correlations(data.X),
}


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    return RankingData(rng.random((100, 400)), rng.integers(0, 3, 100), np.repeat(np.arange(10), 10))


@pytest.mark.parametrize("name", SQUARES)
def test_tables_of_all_pairs_of_features_ask_the_rule_for_memory(wide, name, monkeypatch):
    monkeypatch.setenv("MOERANK_MEMORY", "0.001")
    data = RankingData(wide.X, wide.y, wide.qid)  # which remembers nothing
    with pytest.raises(ValueError, match=r"a .*40[01] × 40[01].* would take 0\.00\d.* limit is 0\.001"):
        SQUARES[name](data)


def test_single_features_of_a_wide_table_take_no_square_table():
    rng = np.random.default_rng(0)
    data = RankingData(rng.random((60, 3000)), rng.integers(0, 3, 60), np.repeat(np.arange(6), 10))
    expected = [NDCG(5).score(data, sign * data.X[:, f]) for sign in (1, -1) for f in (0, 255, 256, 2999)]
    tracemalloc.start()
    values = single_feature_values(data, NDCG(5))
    first = nested_masks(np.arange(3000), 3000, np.array([2, 5]))
    assert tracemalloc.get_traced_memory()[1] < 3000 * 3000
    tracemalloc.stop()
    assert values[:, [0, 255, 256, 2999]].ravel().tolist() == expected
    assert first.sum(axis=1).tolist() == [2, 5]
