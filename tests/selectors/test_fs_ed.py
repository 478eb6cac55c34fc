import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import gaussian_kde

from moerank.data import RankingData
from moerank.metrics import MAP, NDCG
from moerank.rankers import RankSVMStruct
from moerank.selectors.fs_ed import FLOOR, FSED, expected_divergence


def silverman(sample):
    spread = np.subtract(*np.percentile(sample, [75, 25])) / 1.34
    deviation = np.std(sample, ddof=1)
    return 0.9 * (min(deviation, spread) if spread > 0 else deviation) * len(sample) ** -0.2


def by_scipy(x, y, points):
    """Expected divergence of one feature, with the densities and the distance of scipy."""
    densities = {}
    for label in np.unique(y):
        sample = x[y == label]
        density = gaussian_kde(sample, silverman(sample) / np.std(sample, ddof=1))(points)
        densities[label] = np.maximum(density / density.sum(), FLOOR)
    return sum((b - a) * jensenshannon(densities[a], densities[b]) ** 2 for a in densities for b in densities if a < b)


@pytest.mark.parametrize("labels", [[0, 1], [0, 1, 2], [0, 2, 5]])
def test_expected_divergence_equals_scipys(labels):
    rng = np.random.default_rng(len(labels))
    y = np.asarray(labels)[rng.integers(0, len(labels), 300)]
    X = np.column_stack(
        [rng.normal(size=300) + y, rng.random(300) ** 4, rng.random(300) * (rng.random(300) < 0.2) + 0.01 * y]
    )
    train = RankingData(X, y, np.arange(300) // 30)
    points = rng.normal(size=(120, 3))
    expected = [by_scipy(X[:, f], y, points[:, f]) for f in range(3)]
    np.testing.assert_allclose(expected_divergence(train, points), expected, rtol=1e-8, atol=1e-10)


def test_a_label_without_width_adds_nothing():
    x = np.array([0.0, 0.1, 0.3, 0.4, 0.5, 0.5, 0.9])
    train = RankingData(np.column_stack([x, x[::-1]]), [0, 0, 0, 0, 1, 1, 2], 0)
    points = np.random.default_rng(0).random((9, 2))
    assert expected_divergence(train, points)[0] == 0.0
    varying = [0, 1, 2, 3, 4, 5]
    alone = by_scipy(x[::-1][varying], train.y[varying], points[:, 1])
    assert expected_divergence(train, points)[1] == pytest.approx(alone, abs=1e-10)


def test_orders_by_importance_plus_divergence(data, held_out):
    for metric in (NDCG(10), MAP()):
        selector = FSED(3, metric=metric).fit(data.X, data.y, qid=data.qid, validation=held_out)
        total = [metric.score(data, x) for x in data.X.T] + expected_divergence(data, held_out.X)
        assert selector.order_.tolist() == np.argsort(-total).tolist()
        np.testing.assert_allclose(selector.importance_ + selector.divergence_, total, rtol=1e-12)
    ranker = RankSVMStruct().fit(data.X[:, selector.support_], data.y, qid=data.qid)
    np.testing.assert_allclose(selector.coef_[selector.support_], ranker.coef_, rtol=1e-9)
    plain = FSED(3).fit(data.X, data.y, qid=data.qid, validation=held_out)
    explicit = FSED(3, metric=NDCG(10)).fit(data.X, data.y, qid=data.qid, validation=held_out)
    assert plain.order_.tolist() == explicit.order_.tolist()


def test_other_validation_data_are_not_mistaken_for_those_before(data, held_out):
    train = RankingData(data.X, data.y, data.qid)
    far = RankingData(held_out.X * 3.0, held_out.y, held_out.qid)
    first, second = (FSED(3)._learn(train, part).order_.tolist() for part in (held_out, far))
    assert first != second
    assert FSED(3).fit(data.X, data.y, qid=data.qid, validation=far).order_.tolist() == second


@pytest.mark.parametrize("factor", [1e-155, 1e-200, 1e-300])
def test_a_feature_whose_squares_vanish_diverges_as_if_it_were_larger(factor):
    rng = np.random.default_rng(4)
    X, y, points = rng.random((60, 2)), rng.integers(0, 3, 60), rng.random((20, 2))
    expected = expected_divergence(RankingData(X, y, 0), points)
    np.testing.assert_allclose(expected_divergence(RankingData(factor * X, y, 0), factor * points), expected, rtol=1e-9)


def test_quartiles_that_coincide_but_for_the_last_digits_do_not_count():
    x = np.array([0.0, 1e-300, 0.0, 1e-300, 0.0, 0.7, 0.2, 0.4, 0.6, 0.8])
    y, points = np.repeat([0, 1], 5), np.linspace(0.0, 1.0, 9)[:, None]
    data = RankingData(np.append(x[:5], x[5:])[:, None], y, 0)
    assert np.isfinite(expected_divergence(data, points)).all()
