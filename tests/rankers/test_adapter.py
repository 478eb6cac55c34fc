import warnings

import numpy as np
import pytest
from lightgbm import LGBMRanker
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from moerank.data import RankingData, make_planted
from moerank.rankers import (
    FittedPopulation,
    LambdaMART,
    ListNet,
    RankerAdapter,
    RankSVM,
    as_backend,
    train_population,
)
from moerank.rankers.adapter import ForeignRanker, train_on


@pytest.fixture(scope="module")
def features(noisy_data):
    features = np.random.default_rng(0).random((4, noisy_data.n_features)) < 0.5
    features[:, 0] = True
    return features


@pytest.mark.parametrize("ranker", [Ridge(alpha=0.3), LinearRegression(fit_intercept=False)])
def test_linear_rankers_give_the_weights_of_a_direct_fit(noisy_data, features, ranker):
    W = RankerAdapter(ranker).fit_population(noisy_data, feature_mask=features)
    for w, mask in zip(W, features, strict=True):
        np.testing.assert_array_equal(w[mask], clone(ranker).fit(noisy_data.X[:, mask], noisy_data.y).coef_)
    assert not W[~features].any()
    assert not hasattr(ranker, "coef_"), "the ranker itself is not fitted"


def xgboost():
    return pytest.importorskip("xgboost").XGBRanker(n_estimators=4, max_depth=2, n_jobs=1)


def lightgbm():
    settings = dict(deterministic=True, force_row_wise=True, n_jobs=1, verbose=-1)
    return LGBMRanker(n_estimators=5, num_leaves=4, min_child_samples=5, **settings)


def sizes(data):
    return np.diff(data.offsets)


@pytest.mark.parametrize(
    ("make", "queries"),
    [
        (lambda: make_pipeline(StandardScaler(), Ridge()), {}),
        (lambda: SVR(kernel="rbf"), {}),
        (lightgbm, {"group": sizes}),
        (xgboost, {"qid": lambda data: data.qid}),
    ],
    ids=["pipeline", "svr", "lightgbm", "xgboost"],
)
def test_rankers_without_weights_score_as_when_they_are_fitted_directly(noisy_data, features, make, queries):
    population = as_backend(make()).fit_population(noisy_data, feature_mask=features)
    assert isinstance(population, FittedPopulation)
    assert len(population) == len(features)
    scores = population.scores(noisy_data.X)
    assert scores.flags.c_contiguous
    for individual, mask in enumerate(features):
        X, given = noisy_data.X[:, mask], {name: of(noisy_data) for name, of in queries.items()}
        np.testing.assert_array_equal(scores[:, individual], make().fit(X, noisy_data.y, **given).predict(X))
    assert len(np.unique(scores)) > 20


class OneThread(Ridge):
    """Has CatBoost's interface: queries as `group_id`, threads as `thread_count`."""

    def __init__(self, thread_count=None, alpha=1.0):
        super().__init__(alpha=alpha)
        self.thread_count = thread_count

    def fit(self, X, y=None, group_id=None):
        self.seen_ = (group_id, self.thread_count)
        return super().fit(X, y)


@pytest.mark.parametrize(("given", "used"), [(None, 1), (2, 2), (-1, -1)])
def test_catboosts_interface_is_known_and_open_threads_are_one(noisy_data, given, used):
    adapter = RankerAdapter(OneThread(given))
    group_id, threads = train_on(adapter.ranker, noisy_data, np.ones(noisy_data.n_features, bool)).seen_
    np.testing.assert_array_equal(group_id, noisy_data.qid)
    assert (threads, adapter.ranker.thread_count) == (used, given)


@pytest.mark.parametrize(
    ("steps", "size"),
    [
        ([SelectKBest(f_regression, k=2), Ridge()], 2),
        ([StandardScaler(), SelectKBest(f_regression, k=3), "passthrough", SelectKBest(f_regression, k=1), Ridge()], 1),
        ([SelectKBest(f_regression, k=2), PCA(1), Ridge()], 2),
        ([PCA(3), SelectKBest(f_regression, k=1), Ridge()], None),
        ([Ridge()], None),
    ],
)
def test_a_pipeline_uses_the_features_that_its_selectors_leave(steps, size):
    data = make_planted(n_queries=6, n_documents=10, seed=1).data
    ranker = ForeignRanker(Pipeline([(str(position), step) for position, step in enumerate(steps)])).fit(data)
    assert ranker.support_.sum() == (size or data.n_features)
    moved = np.where(ranker.support_, data.X, 7.0)
    np.testing.assert_allclose(ranker.predict(moved), ranker.predict(data.X), rtol=1e-9)  # the others do not matter
    if size == 2:
        scores = f_regression(data.X, data.y)[0]
        assert np.flatnonzero(ranker.support_).tolist() == sorted(np.argsort(-scores)[:2].tolist())


@pytest.mark.parametrize("ranker", [LambdaMART(n_trees=3), ListNet(n_epochs=5), RankSVM()])
def test_individuals_of_constant_features_score_all_documents_alike(noisy_data, ranker):
    X = noisy_data.X.copy()
    X[:, 2] = 0.5
    data = RankingData(X, noisy_data.y, noisy_data.qid)
    features = np.zeros((3, data.n_features), bool)
    features[0, 2] = features[1, [2, 0]] = features[2, 0] = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        population = train_population(RankerAdapter(ranker), data, feature_mask=features)
    scores = population.scores(data.X)
    assert np.ptp(scores[:, 0]) == 0 < np.ptp(scores[:, 2])
    np.testing.assert_array_equal(scores[:, 1], scores[:, 2])
