import numpy as np
import pytest
from helpers.plain import all_subsets

from moerank.data import FeatureCosts
from moerank.metrics import NDCG
from moerank.mofsrank import Ensemble, FeatureSelection
from moerank.mofsrank.objectives import Risk
from moerank.rankers import RankRLS

PRICES = [3.0, 0.0, 1.5, 2.0, 8.0]
GROUPS = ["a", "b", "a", None, "b"]
SHARED = {"a": 4.0, "b": 1.0}


def priced(data):
    return data.with_costs(FeatureCosts.of(PRICES, GROUPS, SHARED))


def price(mask):
    used = {group for group, one in zip(GROUPS, mask, strict=True) if one and group}
    return sum(p for p, one in zip(PRICES, mask, strict=True) if one) + sum(SHARED[group] for group in used)


def risk_by_hand(candidate, baseline, a):
    gains = sum(x - y for x, y in zip(candidate, baseline, strict=True) if x > y)
    losses = sum(y - x for x, y in zip(candidate, baseline, strict=True) if y > x)
    return -(gains - (1 + a) * losses) / len(candidate)


def stage_of(data, *objectives):
    return FeatureSelection(data, RankRLS(1e-3), NDCG(5), objectives=objectives)


def test_cost_equals_the_sum_by_hand_for_all_subsets(small_data):
    X = all_subsets(5)
    F = stage_of(priced(small_data), "features", "error", "cost").evaluate(X)
    np.testing.assert_array_equal(F[:, 2], [price(mask) for mask in X])
    np.testing.assert_array_equal(F[:, :2], stage_of(small_data, "features", "error").evaluate(X))


@pytest.mark.parametrize(("a", "is_given"), [(0.0, False), (1.0, False), (5.0, False), (1.0, True)])
def test_risk_equals_its_formula_against_all_features_or_given_scores(small_data, a, is_given):
    X = all_subsets(5)
    metric, ranker = NDCG(5), RankRLS(1e-3)
    scores = small_data.X @ ranker.fit_population(small_data)[0]
    if is_given:
        scores = np.random.default_rng(0).random(small_data.n_documents)
    F = stage_of(small_data, Risk(a, scores if is_given else None)).evaluate(X)
    baseline = metric.per_query(small_data, scores)
    for mask, value in zip(X, F[:, 0], strict=True):
        w = ranker.fit_population(small_data, feature_mask=mask[None])[0]
        by_hand = risk_by_hand(metric.per_query(small_data, small_data.X @ w), baseline, a)
        assert value == pytest.approx(by_hand, abs=1e-12)
    assert is_given or F[X.all(axis=1), 0] == 0.0


def test_what_cannot_be_measured_is_refused_by_name(small_data):
    with pytest.raises(ValueError, match='the objective "cost" needs to know what the features cost: give Ranking'):
        stage_of(small_data, "cost", "error")
    scores = np.arange(float(small_data.n_documents))
    assert repr(Risk(baseline=scores)) != repr(Risk(baseline=scores + 1))
    assert repr(Risk()) == "Risk(a=1)"
    with pytest.raises(ValueError, match=r"a must not be negative, not -1"):
        Risk(a=-1.0)
    stage = Ensemble(small_data, np.eye(5)[:2], NDCG(5), objectives=("risk", "error"))
    with pytest.raises(ValueError, match=r"needs a backend to compare with, or Risk\(baseline=scores\)"):
        stage.evaluate(np.ones((1, stage.n_var)))
