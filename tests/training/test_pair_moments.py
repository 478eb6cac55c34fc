"""Moments by label sums against explicit differences."""

import numpy as np
import pytest

from moerank.data import RankingData
from moerank.training import pair_moments
from moerank.training.pair_loss import DIFFERENCE, UNIT
from moerank.training.pair_moments import PairMoments


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
    np.testing.assert_allclose(moments.moment(UNIT), unit, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(moments.moment(DIFFERENCE), difference, rtol=1e-11, atol=1e-12 * n_labels)


def test_single_precision_with_a_large_mean_keeps_its_digits():
    data = ranking_data(5, np.float32, mean=100.0)
    gram, _, difference = explicit(data)
    moments = PairMoments.of(data)
    np.testing.assert_allclose(moments.gram, gram, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(moments.difference, difference, rtol=1e-10, atol=1e-11)
    assert PairMoments.of(data) is moments
