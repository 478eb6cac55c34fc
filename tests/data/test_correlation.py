import numpy as np
import pytest
from scipy.stats import pearsonr

from moerank.data import RankingData
from moerank.data.describe import feature_correlations, label_correlations


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 3)) @ rng.normal(size=(3, 6)) + 0.5 * rng.normal(size=(60, 6)) + 10.0


def test_correlations_of_features_are_those_of_scipy(X):
    expected = [[abs(pearsonr(a, b).statistic) for a in X.T] for b in X.T]
    found = feature_correlations(X)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (found < 0.9).any()
    np.testing.assert_array_equal(found, found.T)


def test_correlations_with_the_labels_are_those_of_scipy(X):
    y = np.random.default_rng(1).integers(0, 4, 60)
    np.testing.assert_allclose(
        label_correlations(RankingData(X, y)), [abs(pearsonr(x, y).statistic) for x in X.T], rtol=1e-12
    )
    rising = np.arange(60)
    both_ways = RankingData(np.column_stack([rising, -3.0 * rising]), rising)
    np.testing.assert_allclose(label_correlations(both_ways), 1.0, rtol=1e-14)


def test_a_constant_feature_correlates_with_nothing(X):
    level = np.insert(X, 2, 0.1, axis=1)  # 0.1 has no exact mean
    np.testing.assert_array_equal(feature_correlations(level)[2], 0.0)
    np.testing.assert_array_equal(feature_correlations(level)[:, 2], 0.0)
    y = np.random.default_rng(1).integers(0, 4, 60)
    assert label_correlations(RankingData(level, y))[2] == 0.0
    np.testing.assert_allclose(
        np.delete(label_correlations(RankingData(level, y)), 2), label_correlations(RankingData(X, y)), rtol=1e-12
    )


@pytest.mark.parametrize("factor", [1e-160, 1e-300])
def test_features_whose_squares_vanish_correlate_as_if_they_were_larger(X, factor):
    y = np.random.default_rng(1).integers(0, 4, 60)
    faint = X * [1.0, factor, 1.0, factor, 1.0, 1.0]
    np.testing.assert_allclose(feature_correlations(faint), feature_correlations(X), rtol=1e-9)
    np.testing.assert_allclose(
        label_correlations(RankingData(faint, y)), label_correlations(RankingData(X, y)), rtol=1e-9
    )
