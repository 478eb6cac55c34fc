"""Moments by label sums against explicit differences."""

from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from moerank.data import RankingData, fit_scaling, make_planted
from moerank.mofsrank import FeatureSelection
from moerank.rankers import RankRLS
from moerank.training import pair_moments
from moerank.training.bins import Bins, step_moments, thresholds
from moerank.training.masks import read_masks
from moerank.training.pair_moments import DIFFERENCE, UNIT, PairMoments, QueryMoments, backward_path, forward_path


def ranking_data(n_labels, dtype=np.float64, mean=0.0):
    rng = np.random.default_rng(n_labels)
    sizes = np.append(rng.integers(1, 30, 40), [200, 1])
    X = (mean + rng.normal(size=(sizes.sum(), 6))).astype(dtype)
    return RankingData(X, rng.integers(0, n_labels, sizes.sum()), np.repeat(np.arange(42), sizes))


def explicit(data):
    d = data.X[data.pairs.better].astype(float) - data.X[data.pairs.worse]
    t = data.y[data.pairs.better] - data.y[data.pairs.worse]
    return d.T @ d / len(d), d.mean(axis=0), t @ d / len(d)


@pytest.mark.parametrize("block", [1, 64, 100_000])
@pytest.mark.parametrize("n_labels", [2, 5, 300])
def test_moments_are_those_of_the_differences(n_labels, block, monkeypatch):
    monkeypatch.setattr(pair_moments, "MOMENT_BLOCK", block)
    data = ranking_data(n_labels)
    gram, unit, difference = explicit(data)
    moments = PairMoments.of(data)
    np.testing.assert_allclose(moments.gram, gram, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(UNIT.moment(moments), unit, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(DIFFERENCE.moment(moments), difference, rtol=1e-11, atol=1e-12 * n_labels)


def test_single_precision_with_a_large_mean_keeps_its_digits():
    data = ranking_data(5, np.float32, mean=100.0)
    gram, _, difference = explicit(data)
    moments = PairMoments.of(data)
    np.testing.assert_allclose(moments.gram, gram, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(moments.difference, difference, rtol=1e-10, atol=1e-11)
    assert PairMoments.of(data) is moments


@pytest.mark.parametrize("weights", [None, np.arange(1, 43)])
def test_large_labels_do_not_multiply_rounding_errors(weights):
    data = ranking_data(5, mean=100.0)
    large = RankingData(data.X, data.y + 10**9, data.qid, query_weights=weights)
    small = RankingData(data.X, data.y, data.qid, query_weights=weights)
    if weights is None:
        np.testing.assert_allclose(PairMoments.of(large).difference, explicit(data)[2], rtol=1e-10, atol=1e-11)
    for of in (PairMoments.of, QueryMoments.of, partial(QueryMoments.of, every_pair=True)):
        np.testing.assert_allclose(of(large).difference, of(small).difference, rtol=1e-10, atol=1e-9)


def loss(A, b, features):
    """The least of wᵀA w − 2 bᵀw over the weights of these features, up to its sign and factor."""
    features = list(features)
    return -b[features] @ np.linalg.solve(A[np.ix_(features, features)], b[features]) if features else 0.0


def forward_by_hand(A, b):
    order = []
    while len(order) < len(b):
        left = [j for j in range(len(b)) if j not in order]
        order.append(min(left, key=lambda j: loss(A, b, [*order, j])))
    return order


def backward_by_hand(A, b):
    left, gone = list(range(len(b))), []
    while left:
        gone.append(min(left, key=lambda j: loss(A, b, [i for i in left if i != j])))
        left.remove(gone[-1])
    return gone[::-1]


@pytest.mark.parametrize("seed", range(4))
def test_paths_are_those_of_solving_every_subset(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 12)) @ rng.normal(size=(12, 12))
    A, b = X.T @ X / 30 + 0.01 * np.eye(12), X.T @ rng.normal(size=30) / 30
    given = A.copy(), b.copy()
    assert forward_path(A, b).tolist() == forward_by_hand(A, b)
    assert forward_path(A, b, 5).tolist() == forward_by_hand(A, b)[:5]
    assert backward_path(A, b).tolist() == backward_by_hand(A, b)
    assert forward_by_hand(A, b) != backward_by_hand(A, b)
    np.testing.assert_array_equal(A, given[0])
    np.testing.assert_array_equal(b, given[1])


def test_a_stage_offers_the_beginning_of_one_path_and_the_whole_of_the_other():
    data = make_planted(n_queries=10, n_documents=15, n_relevant=4, n_redundant=4, n_noise=4, seed=2).data
    better, worse = data.X[data.pairs.better], data.X[data.pairs.worse]
    A = (better - worse).T @ (better - worse) / len(better) + 0.02 * np.eye(12)
    b = (better - worse).mean(axis=0)
    strings = FeatureSelection(data, RankRLS(0.02)).starting_strings(8)
    forward, backward = forward_by_hand(A, b), backward_by_hand(A, b)
    assert [set(np.flatnonzero(row)) for row in strings[:4]] == [set(forward[:k]) for k in (1, 2, 3, 4)]
    assert [set(np.flatnonzero(row)) for row in strings[4:]] == [set(backward[:k]) for k in (1, 5, 8, 12)]


COLUMNS = arrays(
    np.float64,
    st.integers(1, 60),
    elements=st.one_of(st.integers(-4, 4).map(float), st.floats(-1e30, 1e30), st.floats(1.0, 1.0 + 1e-6)),
)


@given(COLUMNS, st.integers(1, 20))
def test_thresholds_divide_values_and_their_roundings_alike(column, n_bins):
    cuts = thresholds(column, n_bins)
    distinct = np.unique(column.astype(np.float32))
    assert len(cuts) <= n_bins
    assert (np.diff(cuts) > 0).all()
    if len(distinct) <= n_bins + 1:
        assert len(cuts) == len(distinct) - 1
    code = (column[:, None] > cuts).sum(axis=1)
    np.testing.assert_array_equal((column.astype(np.float32)[:, None] > cuts).sum(axis=1), code)
    assert len(np.unique(code)) == len(cuts) + 1, "no bin is empty"
    far = np.append(cuts[:1] - 1, cuts) if len(cuts) else cuts
    assert np.isfinite(far).all()


MAGNITUDES = st.one_of(
    st.floats(-300, 300).map(lambda power: 10.0**power),
    st.floats(-25, -2).map(lambda power: 10.0**power),
    st.floats(1.0, 1.0 + 1e-14),
)


@pytest.mark.parametrize("scaling", ["query", "minmax", "standard"])
@given(arrays(np.float64, st.integers(1, 60), elements=MAGNITUDES), st.integers(0, 60), st.integers(1, 20))
@example(10.0 ** np.random.default_rng(0).uniform(-25, -2, 60), 0, 16)
def test_no_bin_of_scaled_values_is_empty(scaling, column, n_negative, n_bins):
    column[:n_negative] *= -1
    raw = RankingData(column[:, None], np.zeros(len(column), int), np.zeros(len(column), int))
    data = fit_scaling(raw, scaling).apply(raw)
    bins = Bins.of(data, n_bins)
    assert (np.diff(bins.thresholds[0]) > 0).all()
    assert len(np.unique(bins.codes(data))) == len(bins.thresholds[0]) + 1


DENSE = st.one_of(
    st.integers(1, 200).map(lambda digits: 8 + digits * 1e-6),
    st.integers(2**24, 2**24 + 40).map(float),  # some lie in the middle between numbers of single precision
    st.floats(-1e30, 1e30),
)


@given(arrays(np.float64, st.integers(1, 60), elements=DENSE), st.integers(1, 60))
def test_numbers_are_in_the_bins_of_what_they_round_to(column, n_bins):
    rounded = column.astype(np.float32)
    cuts = thresholds(rounded, n_bins)
    np.testing.assert_array_equal(np.searchsorted(cuts, column), np.searchsorted(cuts, rounded.astype(float)))


def test_thresholds_stand_in_the_middle_at_equal_counts():
    values = np.random.default_rng(0).permutation(1000).astype(float)
    cuts = thresholds(values, 16)
    assert (cuts % 1 == 0.5).all()
    counts = np.bincount(np.searchsorted(cuts, values))
    assert counts.min() >= 58
    assert counts.max() <= 59
    assert thresholds([3.0, 3.0], 5).tolist() == []
    assert thresholds([0.0] * 900 + [1.0, 2.0, 3.0], 2).tolist() == [0.5]


def random_data(weighted):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (130, 5)) * 1.0
    X[:, 3] = 1.0
    weights = {"query_weights": rng.random(13) + 0.1, "document_weights": rng.random(130)} if weighted else {}
    return RankingData(X, rng.integers(0, 3, 130), np.repeat(np.arange(13), 10), **weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unit", [None, "query", "document"])
def test_moments_are_the_sums_over_pairs_exactly_in_integers(unit, weighted, monkeypatch):
    monkeypatch.setattr("moerank.training.bins.STEP_BLOCK", 25)
    monkeypatch.setattr("moerank.training.bins.GROUPS_AT_ONCE", 9)
    data = random_data(weighted)
    i, j = data.pairs.better, data.pairs.worse
    query = np.searchsorted(data.offsets, i, side="right") - 1
    size = {None: 1, "query": data.n_queries, "document": data.n_documents}[unit]
    mask = np.random.default_rng(1).random(size) < 0.6
    weight = np.ones(len(i))
    if unit is not None:
        weight = 1.0 * (mask[query] if unit == "query" else mask[i] & mask[j])
    if weighted:
        weight = weight * data.query_weights[query] * data.document_weights[i] * data.document_weights[j]
    bins = Bins.of(data, 3)
    masks = read_masks(data, None if unit is None else mask, None, unit or "pair")
    moments = step_moments(data, bins, masks)
    columns = np.column_stack([data.X[:, f] > t for f in range(5) for t in bins.thresholds[f]]) * 1.0
    D = columns[i] - columns[j]
    expected = D.T @ (weight[:, None] * D), weight @ D, (weight * (data.y[i] - data.y[j])) @ D
    found = moments.gram, UNIT.moment(moments), DIFFERENCE.moment(moments)
    for value, total in zip(found, expected, strict=True):
        if weighted:
            np.testing.assert_allclose(value, total / weight.sum(), rtol=1e-12, atol=1e-13)
        else:
            np.testing.assert_array_equal(value, total / weight.sum())
    assert step_moments(data, bins, masks) is moments
