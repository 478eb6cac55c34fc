"""Bins, and the moments of step functions against sums over explicit pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from moerank.data import RankingData
from moerank.training.bins import Bins, step_moments, thresholds
from moerank.training.masks import read_masks
from moerank.training.pair_loss import DIFFERENCE, UNIT

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
    found = moments.gram, moments.moment(UNIT), moments.moment(DIFFERENCE)
    for value, total in zip(found, expected, strict=True):
        if weighted:
            np.testing.assert_allclose(value, total / weight.sum(), rtol=1e-12, atol=1e-13)
        else:
            np.testing.assert_array_equal(value, total / weight.sum())
    assert step_moments(data, bins, masks) is moments
