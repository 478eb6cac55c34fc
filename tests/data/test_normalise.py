import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from moerank.data import RankingData, centre_in_queries, load_fold, query_level_norm


def restated(data):
    X = np.zeros_like(data.X)
    for begin, end in zip(data.offsets, data.offsets[1:], strict=False):
        for f in range(data.n_features):
            values = data.X[begin:end, f]
            least, greatest = min(values), max(values)
            if greatest > least:
                X[begin:end, f] = [(value - least) / (greatest - least) for value in values]
    return X


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


def test_values_whose_difference_overflows():
    largest = np.finfo(np.float64).max
    assert query_level_norm(RankingData([[-largest], [0.0], [largest]], [0, 0, 0])).X.ravel().tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("name", ["MQ2008", "OHSUMED"])
def test_scaling_twice_changes_nothing(letor_folder, name):
    once = query_level_norm(load_fold(letor_folder / name / "Fold1")[2])
    np.testing.assert_array_equal(query_level_norm(once).X, once.X)


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
