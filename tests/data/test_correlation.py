import numpy as np
import pytest
from scipy.stats import pearsonr

from moerank.data import RankingData
from moerank.data.describe import feature_correlations, label_correlations

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) @ RNG.normal(size=(3, 6)) + 0.5 * RNG.normal(size=(60, 6)) + 10.0
Y = np.random.default_rng(1).integers(0, 4, 60)
FAINT = np.array([1.0, 1e-160, 1.0, 1e-300, 1.0, 1.0])  # whose squares vanish
LEVEL = np.insert(X, 2, 0.1, axis=1)  # 0.1 has no exact mean


@pytest.mark.parametrize("factors", [1.0, FAINT, FAINT[::-1]])
def test_correlations_are_those_of_scipy(factors):
    expected = [[abs(pearsonr(a, b).statistic) for a in X.T] for b in X.T]
    correlations, rtol = feature_correlations(X * factors), 1e-9 if np.ndim(factors) else 1e-12
    np.testing.assert_allclose(correlations, expected, rtol=rtol)
    assert (correlations < 0.9).any()
    np.testing.assert_array_equal(correlations, correlations.T)
    labels = label_correlations(RankingData(X * factors, Y, 0))
    np.testing.assert_allclose(labels, [abs(pearsonr(x, Y).statistic) for x in X.T], rtol=rtol)


def test_rising_and_falling_features_correlate_with_their_own_labels():
    rising = np.arange(60)
    both_ways = RankingData(np.column_stack([rising, -3.0 * rising]), rising, 0)
    np.testing.assert_allclose(label_correlations(both_ways), 1.0, rtol=1e-14)


def test_a_constant_feature_correlates_with_nothing():
    features, labels = feature_correlations(LEVEL), label_correlations(RankingData(LEVEL, Y, 0))
    for constant in (features[2], features[:, 2], labels[2]):
        np.testing.assert_array_equal(constant, 0.0)
    np.testing.assert_allclose(np.delete(labels, 2), label_correlations(RankingData(X, Y, 0)), rtol=1e-12)
