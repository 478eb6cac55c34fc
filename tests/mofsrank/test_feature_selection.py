import moocore
import numpy as np
import pytest
from helpers.plain import all_subsets, front, ndcg, ordered_scores, ridge
from pymoo.algorithms.moo.nsga2 import NSGA2
from sklearn.tree import DecisionTreeRegressor

from moerank.data import make_planted
from moerank.evolution import AdaptiveBitFlip, SparseBitFlip, SubsetSizeSampling, search
from moerank.metrics import NDCG
from moerank.mofsrank import FeatureSelection
from moerank.mofsrank.settings import Limits
from moerank.rankers import RankRLS, RankSVM

ALPHA = 1e-3


@pytest.fixture(scope="module")
def planted():
    """16 features of which half are noise or redundant."""
    return make_planted(n_queries=15, n_documents=20, n_relevant=8, n_redundant=4, n_noise=4, noise=1.0, seed=3).data


@pytest.fixture(scope="module")
def stage(planted):
    return FeatureSelection(planted, RankRLS(ALPHA), NDCG(10))


def test_objectives_equal_the_enumeration_of_all_subsets(planted):
    fewer = planted.with_features(np.arange(16) % 5 != 2)
    X = all_subsets(13)
    assert len(X) == 8_191
    W = np.array([ridge(fewer, ALPHA, features=mask) for mask in X])
    errors = 1.0 - ndcg(fewer, ordered_scores(fewer.X, W), 10)
    F = FeatureSelection(fewer, RankRLS(ALPHA), NDCG(10)).evaluate(X)
    np.testing.assert_allclose(F, np.column_stack([X.sum(axis=1), errors]), rtol=0, atol=1e-12)


def test_search_finds_the_exact_front_and_random_search_does_not(stage):
    reference = np.array([17.0, 1.0])
    F = stage.evaluate(all_subsets(16))
    least = [[size, F[F[:, 0] == size, 1].min()] for size in range(1, 17)]
    best = moocore.hypervolume(front(np.array(least)), ref=reference)
    found, random = [], []
    for seed in range(2):
        result = search(stage, NSGA2(100, **stage.operators()), ("n_gen", 100), seed=seed)
        found.append(result.hypervolume(reference)[-1])
        rng = np.random.default_rng(seed)
        X = SubsetSizeSampling()._do(stage, result.history[-1].n_eval, random_state=rng)
        random.append(moocore.hypervolume(stage.evaluate(X), ref=reference))
    assert min(found) >= 0.999 * best
    assert min(found) > max(random)


def test_pair_subsets_count_by_the_best_of_their_rankers(small_data):
    rng = np.random.default_rng(1)
    masks = rng.random((3, len(small_data.pairs))) < 0.3
    X = all_subsets(5)
    stage = FeatureSelection(small_data, RankRLS(ALPHA), NDCG(5), masks)
    W = np.array([[ridge(small_data, ALPHA, keep, mask) for keep in masks] for mask in X])
    errors = np.array([1.0 - ndcg(small_data, ordered_scores(small_data.X, w), 5) for w in W])
    np.testing.assert_allclose(stage.evaluate(X)[:, 1], errors.min(axis=1), rtol=0, atol=1e-12)
    rows = np.arange(len(X))
    np.testing.assert_allclose(stage.rankers(X).coefs, W[rows, errors.argmin(axis=1)], rtol=1e-8, atol=1e-10)


def test_adaptive_mutation_is_a_switch(small_data):
    assert isinstance(FeatureSelection(small_data).operators()["mutation"], AdaptiveBitFlip)
    assert isinstance(FeatureSelection(small_data, adaptive=False).operators()["mutation"], SparseBitFlip)


def test_importance_is_the_better_direction_of_each_single_feature(small_data):
    mutation = FeatureSelection(small_data, metric=NDCG(5)).operators()["mutation"]
    up, down = ndcg(small_data, small_data.X, 5), ndcg(small_data, -small_data.X, 5)
    accuracy = np.maximum(up, down)
    np.testing.assert_allclose(mutation.importance, accuracy / accuracy.sum(), rtol=1e-12)


class Fitted:
    """What a backend may return: scores, and nothing else."""

    def __init__(self, rankers, masks):
        self.rankers, self.masks = rankers, masks

    def scores(self, X):
        return np.column_stack([tree.predict(X[:, mask]) for tree, mask in zip(self.rankers, self.masks, strict=True)])


class Trees:
    """A backend of another package: trees on the documents that take part in the kept pairs."""

    def fit_population(self, train, *, pair_mask=None, feature_mask=None, start=None):
        keep = np.ones(len(train.pairs), bool) if pair_mask is None else pair_mask
        rows = np.union1d(train.pairs.better[keep], train.pairs.worse[keep])
        fits = [
            DecisionTreeRegressor(max_depth=2, random_state=0).fit(train.X[rows][:, mask], train.y[rows])
            for mask in feature_mask
        ]
        return Fitted(fits, feature_mask)


@pytest.mark.parametrize("n_subsets", [None, 1, 3])
def test_a_backend_may_return_any_object_that_scores(small_data, n_subsets):
    masks = None if n_subsets is None else np.random.default_rng(5).random((n_subsets, len(small_data.pairs))) < 0.02
    X = all_subsets(5)
    stage = FeatureSelection(small_data, Trees(), NDCG(5), masks)
    subsets = [None] if masks is None else masks
    direct = [Trees().fit_population(small_data, pair_mask=mask, feature_mask=X) for mask in subsets]
    scores = np.stack([population.scores(small_data.X) for population in direct])
    errors = np.array([1.0 - ndcg(small_data, table, 5) for table in scores])
    np.testing.assert_allclose(stage.evaluate(X)[:, 1], errors.min(axis=0), rtol=0, atol=1e-12)
    population = stage.rankers(X)
    assert population.coefs is None
    expected = scores[errors.argmin(axis=0), :, np.arange(len(X))].T
    np.testing.assert_array_equal(population.scores(small_data.X), expected)


@pytest.mark.parametrize("limits", [Limits(), Limits(max_features=3, include=[2], exclude=[0])])
def test_a_proved_front_is_that_of_all_strings(small_data, limits):
    stage = FeatureSelection(small_data, RankRLS(0.05), objectives=("features", "loss"), limits=limits)
    X = all_subsets(small_data.n_features)
    X = X[stage.strings.keeps_limits(X)]
    F = stage.evaluate(X)
    better, worse = small_data.pairs.better, small_data.pairs.worse
    D = small_data.X[better] - small_data.X[worse]
    for mask, value in zip(X, F[:, 1], strict=True):
        w = ridge(small_data, 0.05, features=mask)
        assert value == pytest.approx(np.mean((1 - D @ w) ** 2) + 0.05 * w @ w)
    np.testing.assert_array_equal(stage.pareto_front(), front(F))


def test_a_front_without_a_proof_is_none(small_data):
    masks = np.ones((1, len(small_data.pairs)), bool)
    assert FeatureSelection(small_data, RankRLS(), pair_masks=masks).pareto_front() is None
    assert FeatureSelection(small_data, RankRLS()).pareto_front() is None
    with pytest.raises(ValueError, match='"loss" needs the backend RankRLS with loss="pair"'):
        FeatureSelection(small_data, RankSVM(), objectives=("features", "loss")).pareto_front()


@pytest.mark.parametrize("max_cost", [3.0, 4.0])
def test_a_front_is_not_proved_while_the_search_may_lack_a_size(max_cost, monkeypatch):
    data = make_planted(n_queries=15, n_documents=20, n_relevant=4, n_redundant=2, n_noise=2, noise=1.0, seed=3).data
    limits, fronts = Limits(costs=[5, 2, 1, 2, 3, 5, 3, 1], max_cost=max_cost), []
    for n_nodes in [*range(1, 100, 5), 1_000]:
        monkeypatch.setattr("moerank.selectors.best_subset.WORK", n_nodes * 8**2)
        stage = FeatureSelection(data, RankRLS(0.05), objectives=("features", "loss"), limits=limits)
        fronts.append(stage.pareto_front())
    X = all_subsets(8)
    truth = front(stage.evaluate(X[stage.strings.keeps_limits(X)]))
    assert fronts[0] is None and fronts[-1] is not None and len(truth) > 1
    for found in fronts:
        assert found is None or np.array_equal(found, truth)
