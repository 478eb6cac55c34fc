"""The rules for missing values against loops over queries, features and documents in plain Python."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from moerank.data import RankingData, fit_scaling
from moerank.data.preparation import ROWS, fill_missing
from moerank.exports.deployable import obstacles
from moerank.rankers import RankRLS
from moerank.rankers.model import Model

RULES = ("query-min", "query-mean", "query-worst")


def in_loops(X, offsets, rule):
    filled = X.copy()
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        for f in range(X.shape[1]):
            known = [float(v) for v in X[begin:end, f] if not math.isnan(v)]
            value = rule
            if isinstance(rule, str):
                distinct = sorted(set(known))
                if not known:
                    value = 0.0
                elif rule == "query-min":
                    value = distinct[0]
                elif rule == "query-mean":
                    value = math.fsum(known) / len(known)
                else:
                    value = distinct[0] - (distinct[1] - distinct[0] if len(distinct) > 1 else 1.0)
            for i in range(begin, end):
                if math.isnan(X[i, f]):
                    filled[i, f] = value
    return filled


def filled_copy(X, offsets, rule):
    filled = X.copy()
    fill_missing(filled, offsets, rule)
    return filled


def table(n_queries, dtype, seed=0, share=0.4):
    """Values on a grid, so that equal ones are frequent, with queries in which a feature is unknown throughout."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 9, n_queries))])
    X = rng.integers(-8, 8, (offsets[-1], 4)) / 8 * [1.0, 1e-3, 1e6, 1.0]
    X[rng.random(X.shape) < share] = np.nan
    X[:, 3] = 0.25  # nothing is missing here
    return X.astype(dtype), offsets


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", [*RULES, -0.5, 3])
def test_every_rule_equals_the_loops(rule, dtype):
    X, offsets = table(300, dtype)
    filled = filled_copy(X, offsets, rule)
    assert filled.dtype == dtype
    tolerance = (1e-14 if dtype == np.float64 else 1e-6) if rule == "query-mean" else 0.0
    np.testing.assert_allclose(filled, in_loops(X, offsets, rule), rtol=tolerance, atol=tolerance * 1e-3)
    unknown = [(b, e) for b, e in itertools.pairwise(offsets) if np.isnan(X[b:e, 0]).all()]
    assert unknown
    if isinstance(rule, str):
        assert all(not filled[b:e, 0].any() for b, e in unknown)


def test_queries_longer_and_shorter_than_a_block():
    rng = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum([5, ROWS + 7, 3, ROWS // 2, ROWS // 2 + 1, 4])])
    X = rng.integers(0, 50, (offsets[-1], 2)).astype(float)
    X[rng.random(X.shape) < 0.3] = np.nan
    np.testing.assert_array_equal(filled_copy(X, offsets, "query-worst"), in_loops(X, offsets, "query-worst"))


@given(
    arrays(np.float64, 6, elements=st.floats(allow_infinity=False, width=64)),
    st.sampled_from(RULES),
    st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=300, deadline=None)
def test_what_is_filled_is_finite_and_where_the_rule_says(column, rule, dtype):
    with np.errstate(over="ignore"):
        X = column.astype(dtype)[:, None]
    X[np.isinf(X)] = np.nan
    known = X[~np.isnan(X)]
    filled = filled_copy(X, np.array([0, 6]), rule)
    assert np.isfinite(filled).all()
    replaced = filled[np.isnan(X)]
    if not len(known):
        assert not replaced.any()
    elif rule == "query-worst":
        assert (replaced < known.min()).all() or known.min() == np.finfo(dtype).min
    else:
        assert ((known.min() <= replaced) & (replaced <= (known.min() if rule == "query-min" else known.max()))).all()


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("query-worse", "not 'query-worse'; did you mean 'query-worst'"),
        ("zero", "must be a finite number, 'query-min', 'query-mean' or 'query-worst', not 'zero'$"),
        (float("inf"), "not inf"),
        (True, "not True"),
        (1e39, "missing is 1e.39, which is too large"),
        ([0.0], "not "),
    ],
)
def test_other_rules_are_refused(rule, message):
    with pytest.raises(ValueError, match=message):
        RankingData(np.array([[np.nan]], np.float32), [0], missing=rule, name="mine")


def test_a_read_only_table_without_gaps_is_returned_as_it_is():
    X = np.ones((3, 2))
    X.setflags(write=False)
    for rule in (0.0, "query-mean"):
        assert np.shares_memory(RankingData(X, [0, 1, 2], 0, missing=rule).X, X)


def test_data_know_their_rule_and_what_was_missing():
    X, offsets = table(40, np.float64, seed=4)
    y, qid = np.arange(len(X)) % 3, np.repeat(np.arange(40), np.diff(offsets))
    data = RankingData(X, y, qid, list("abcd"), missing="query-mean")
    n_missing = np.array([sum(math.isnan(v) for v in column) for column in X.T])
    np.testing.assert_array_equal(data.X, filled_copy(X, offsets, "query-mean"))
    np.testing.assert_array_equal(data.n_missing, n_missing)
    np.testing.assert_array_equal(data._missing, np.isnan(X))
    assert data.missing == "query-mean"
    part = data.with_features(np.array([True, False, True, False]))
    assert (part.missing, part.n_missing.tolist()) == ("query-mean", n_missing[[0, 2]].tolist())
    np.testing.assert_array_equal(part._missing, np.isnan(X[:, [0, 2]]))
    rows = np.arange(*offsets[[3, 9]])
    some = data.with_rows(rows, name="some")
    np.testing.assert_array_equal(some._missing, np.isnan(X[rows]))
    assert (some.missing, some.name, some.given_names) == ("query-mean", "some", tuple("abcd"))
    assert not RankingData([[1.0]], [0]).n_missing.any()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_that_stand_for_missing_ones_stay_so_in_models(dtype):
    X = np.array([[1, 5], [-999, 4], [3, 1e9], [2, 0]], dtype)
    known = RankingData(np.where(np.isin(X, [-999, 1e9]), np.nan, X), [0, 2, 1, 0], 0, list("ab"), missing=0.5)
    data = RankingData(X, known.y, 0, list("ab"), missing=0.5, missing_values=[-999, 1e9])
    np.testing.assert_array_equal(data.X, known.X)
    for scaled, same in ((data, known), *((fit_scaling(d, "standard").apply(d) for d in (data, known)),)):
        ranker, other = RankRLS().fit(scaled), RankRLS().fit(same)
        raw = pd.DataFrame(X, columns=list("ab"))
        expected = other.predict(known)
        np.testing.assert_array_equal(ranker.predict(raw), expected)
        model = Model.of(ranker, data.feature_names)
        np.testing.assert_allclose(model.predict(raw), expected, rtol=1e-6)
        assert "-999, 1e+09 counted as missing in training" in obstacles(model)[0]
        with pytest.raises(ValueError, match=r"give missing_values=\(-999.0, 1000000000.0\), as in the training data"):
            ranker.predict(RankingData(X, known.y, 0, list("ab")))
