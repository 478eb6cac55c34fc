import itertools
import pickle
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from moerank.data import (
    PER_QUERY,
    UNSCALED,
    FittedScaling,
    RankingData,
    centre_in_queries,
    fit_scaling,
    query_level_norm,
)
from moerank.data.preparation import ROWS
from moerank.data.scaling import negative_features
from moerank.rankers.lambda_mart import LambdaMART
from moerank.rankers.model import Model


def restated(data):
    X = np.zeros_like(data.X)
    for begin, end in zip(data.offsets, data.offsets[1:], strict=False):
        for f in range(data.n_features):
            values = data.X[begin:end, f]
            least, greatest = min(values), max(values)
            if greatest > least:
                X[begin:end, f] = [(value - least) / (greatest - least) for value in values]
    return X


@pytest.mark.parametrize("kind", ["none", "minmax", "standard"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_with_negative_raw_values_are_known_whatever_the_scaling(kind, dtype):
    X = np.random.default_rng(0).lognormal(size=(ROWS + 50, 5)).astype(dtype)
    X[3, 0], X[-1, 1], X[5, 2], X[7, 3] = 0.0, -1e-3, np.nan, -0.5
    for missing in (-0.5, 0.0, -999.1):
        data = RankingData(X, np.arange(len(X)) % 3, np.arange(len(X)) // 50, missing=missing)
        found = negative_features(fit_scaling(data, kind).apply(data))
        assert found.tolist() == [False, True, False, missing != -0.5, False]


def test_equals_the_formula_query_by_query():
    rng = np.random.default_rng(0)
    qid = np.repeat([3, 1, 2, 9], [5, 1, 7, 2])
    X = rng.normal(size=(15, 4)) * [1, 1e-300, 1e300, 1]
    X[qid == 2, 3] = 0.1
    data = RankingData(X, rng.integers(0, 3, 15), qid, list("abcd"), name="raw")
    scaled = query_level_norm(data)
    np.testing.assert_array_equal(scaled.X, restated(data))
    np.testing.assert_array_equal(scaled.y, data.y)
    np.testing.assert_array_equal(scaled.qid, data.qid)
    assert (scaled.feature_names, scaled.name) == (data.feature_names, "raw")
    assert not scaled.X[qid == 1].any()
    assert not scaled.X[qid == 2, 3].any()


@given(arrays(np.float64, (7, 2), elements=st.floats(allow_nan=False, allow_infinity=False)))
@settings(max_examples=200, deadline=None)
def test_any_finite_values_land_in_the_unit_interval_in_their_order(X):
    data = RankingData(X, np.zeros(7), [1, 1, 1, 1, 1, 2, 2])
    scaled = query_level_norm(data).X
    assert scaled.min() >= 0.0
    assert scaled.max() <= 1.0
    for rows in (slice(0, 5), slice(5, 7)):
        for f in range(2):
            order = np.argsort(X[rows, f], kind="stable")
            assert (np.diff(scaled[rows, f][order]) >= 0).all()


def test_centring_subtracts_the_mean_of_the_query_and_leaves_constants_at_exactly_zero():
    rng = np.random.default_rng(5)
    sizes = [3, 1, 7, 4]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = np.column_stack([rng.random(15), np.repeat([0.1, 0.2, 0.3, 0.7], sizes)])
    centred = centre_in_queries(values, offsets)
    for begin, end in itertools.pairwise(offsets):
        expected = values[begin:end, 0] - values[begin:end, 0].mean()
        np.testing.assert_allclose(centred[begin:end, 0], expected, rtol=0, atol=1e-15)
    assert not centred[:, 1].any()
    np.testing.assert_array_equal(centre_in_queries(values[:, 0], offsets), centred[:, 0])


def raw(dtype=np.float64, seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(n, 4))) * [1, 1e-4, 1e6, 1]
    X[:, 3] = 0.1
    return RankingData(
        X.astype(dtype), rng.integers(0, 3, n), np.repeat(np.arange(n // 6), 6), list("abcd"), name="raw"
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["minmax", "standard"])
def test_fitted_scalings_are_the_formulas_of_the_training_part(kind, dtype):
    train, test = raw(dtype), raw(dtype, seed=1)
    scaling = fit_scaling(train, kind)
    tolerance = 1e-13 if dtype == np.float64 else 1e-6
    for f in range(4):
        column = [float(value) for value in train.X[:, f]]
        if f == 3:
            offset, scale = column[0], 1.0
        elif kind == "minmax":
            offset, scale = min(column), max(column) - min(column)
        else:
            offset, scale = statistics.fmean(column), statistics.pstdev(column)
        assert scaling.offset[f] == pytest.approx(offset, rel=1e-13)
        assert scaling.scale[f] == pytest.approx(scale, rel=1e-13)
        for data in (train, test):
            expected = [(float(value) - offset) / scale for value in data.X[:, f]]
            np.testing.assert_allclose(scaling.apply(data).X[:, f], expected, rtol=tolerance, atol=tolerance)
    scaled = scaling.apply(train)
    assert scaled.X.dtype == dtype
    assert scaled.X.flags.c_contiguous
    assert (scaled.scaling, scaling.kind, train.scaling) == (scaling, kind, UNSCALED)
    assert (scaled.given_names, scaled.name) == (tuple("abcd"), "raw")
    assert not scaled.X[:, 3].any()
    assert scaled.pairs is train.pairs
    with pytest.raises(ValueError, match="read-only"):
        scaled.X[0, 0] = 1.0


def test_longer_tables_than_a_block_are_scaled_throughout():
    train = raw(n=6 * (2 * ROWS // 6 + 1), seed=3)
    scaled = fit_scaling(train, "standard").apply(train).X
    np.testing.assert_allclose(scaled[:, :3].mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(scaled[:, :3].std(axis=0), 1, rtol=1e-10)
    np.testing.assert_array_equal(query_level_norm(train).X, restated(train))


def test_values_whose_squares_or_differences_leave_the_numbers():
    for values in ([1e300, -1e300, 0.0], [1e-300, 2e-300, 3e-300], [1e-322, 0.0, 0.0]):
        data = RankingData(np.array(values)[:, None], [0, 1, 2], 0)
        for kind in ("minmax", "standard"):
            scaled = fit_scaling(data, kind).apply(data).X.ravel()
            assert np.isfinite(scaled).all()
            if kind == "minmax":
                assert (scaled.min(), scaled.max()) == (0.0, 1.0)
    largest = np.finfo(float).max
    with pytest.raises(ValueError, match="scale inf of feature 0 cannot be applied"):
        fit_scaling(RankingData([[largest], [-largest]], [0, 1], 0, feature_names=["a"]), "minmax")
    tiny = fit_scaling(RankingData([[0.0], [1e-300]], [0, 1], 0), "minmax")
    with pytest.raises(ValueError, match=r"far, scaled \(minmax\): X\[1, 0\] is inf \(row 1, feature 1\)"):
        tiny.apply(RankingData([[0.0], [1e300]], [0, 1], 0, name="far"))
    for dtype in (np.float32, np.float64):
        largest = np.finfo(dtype).max
        extreme = RankingData(np.array([[-largest], [0.0], [largest]], dtype), [0, 0, 0], 0)
        assert query_level_norm(extreme).X.ravel().tolist() == [0.0, 0.5, 1.0]


def test_what_is_scaled_is_not_scaled_again():
    train = raw()
    scaled = fit_scaling(train, "minmax").apply(train)
    with pytest.raises(ValueError, match=r"raw: the features are scaled already \(minmax\); fit to raw values"):
        fit_scaling(scaled, "standard")
    for other in (PER_QUERY, scaled.scaling):
        with pytest.raises(ValueError, match=r"raw: the features are scaled already \(minmax\), and cannot"):
            other.apply(scaled)
    with pytest.raises(ValueError, match="scaled already"):
        scaled.mark_scaled("query")
    with pytest.raises(ValueError, match="the scaling has 4 features, but the table has shape"):
        scaled.scaling.apply(RankingData([[1.0]], [0]))


def test_data_can_be_declared_scaled_per_query():
    data = raw()
    declared = data.mark_scaled("query")
    assert (declared.scaling, data.scaling) == (PER_QUERY, UNSCALED)
    assert np.shares_memory(declared.X, data.X)
    assert declared.pairs is data.pairs
    assert declared.mark_scaled("query").scaling == PER_QUERY
    with pytest.raises(ValueError, match="kind must be one of 'query', not 'minmax'"):
        data.mark_scaled("minmax")


def test_parts_keep_their_scaling():
    train = raw()
    scaled = fit_scaling(train, "standard").apply(train)
    mask = np.array([True, False, True, False])
    part = scaled.with_features(mask)
    assert part.scaling == fit_scaling(train.with_features(mask), "standard")
    np.testing.assert_array_equal(part.scaling.apply(train.with_features(mask)).X, part.X)
    assert scaled.with_rows(np.arange(6)).scaling == scaled.scaling
    assert query_level_norm(train).with_features(mask).scaling == PER_QUERY
    assert pickle.loads(pickle.dumps(scaled)).scaling == scaled.scaling


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("minmax", (0.0,), ()), "shorter"),
        (("minmax", (0.0,), (0.0,)), r"offset 0.0 and scale 0.0 of feature 0 cannot"),
        (("minmax", (float("nan"),), (1.0,)), "offset nan"),
        (("minmax", (0.0,), (float("inf"),)), "scale inf"),
    ],
)
def test_fitted_values_that_cannot_be_applied_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        FittedScaling(*arguments)


@pytest.mark.parametrize("kind", ["query", "minmax", "standard"])
def test_single_precision_stays_unless_scaling_merges_values_that_it_tells_apart(kind):
    rng = np.random.default_rng(0)
    X, y, qid = (rng.random((600, 2)) * [1e-5, 1]).astype(np.float32), rng.integers(0, 3, 600), np.arange(600) // 20
    n_distinct = len(np.unique(X[:, 0]))
    for missing, dtype in ((0.0, np.float32), (-999.0, np.float64)):
        X[::20, 0] = missing
        single, double = (RankingData(X.astype(given), y, qid) for given in (np.float32, np.float64))
        scaling = fit_scaling(single, kind)
        scaled = scaling.apply(single)
        assert scaled.X.dtype == dtype
        assert scaling.apply(single.with_rows(np.arange(20))).X.dtype == dtype
        if missing:
            np.testing.assert_array_equal(scaled.X, scaling.apply(double).X)
            assert kind == "query" or len(np.unique(scaled.X[:, 0])) == n_distinct - 29
        ranker = LambdaMART(n_trees=5).fit(scaled)
        scores = ranker.predict(double)
        np.testing.assert_array_equal(ranker.predict(single), scores)
        if kind != "query":
            stored = Model.from_json(Model.of(ranker, ["a", "b"]).to_json())
            for table in (X, X.astype(np.float64)):
                np.testing.assert_array_equal(ranker.predict(table), scores)
                np.testing.assert_array_equal(stored.scores(table), scores)
