import warnings

import numpy as np
import pytest
from helpers.pair_problems import differences, minimum, pair_objective
from helpers.returning import Columns, Returns
from lightgbm import LGBMRanker
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVC
from sklearn.tree import DecisionTreeRegressor

from moerank import MOFSRank
from moerank.data import RankingData, make_planted
from moerank.rankers import (
    FittedPopulation,
    FSMRank,
    LambdaMART,
    LinearPopulation,
    ListNet,
    Population,
    RankerAdapter,
    RankRLS,
    RankSVM,
    as_backend,
    side_by_side,
    train_population,
)
from moerank.rankers.adapter import ForeignRanker, train_on
from moerank.rankers.model import Model
from moerank.solvers import solvers


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


class OfRoots(Ridge):
    """A ranker whose weights are those of roots."""

    def fit(self, X, y):
        return super().fit(np.sqrt(X), y)

    def predict(self, X):
        return super().predict(np.sqrt(X))


class Logarithms(RankRLS):
    """A ranker of a user with scores of its own."""

    def _scores(self, X):
        return np.log(1.1 + super()._scores(X) - super()._scores(X).min())


def test_a_ranker_is_linear_only_if_it_scores_by_its_weights(noisy_data, features):
    positive = RankingData(noisy_data.X - noisy_data.X.min(), noisy_data.y, noisy_data.qid)
    population = RankerAdapter(OfRoots()).fit_population(positive, feature_mask=features)
    assert isinstance(population, FittedPopulation)
    by_hand = OfRoots().fit(positive.X[:, features[0]], positive.y).predict(positive.X[:, features[0]])
    np.testing.assert_array_equal(population.scores(positive.X)[:, 0], by_hand)
    for ranker in (ForeignRanker(OfRoots()), Logarithms()):
        assert Model.of(ranker.fit(positive), positive.feature_names).weights is None
    for linear in (Ridge(), SVR(kernel="linear")):
        fitted = ForeignRanker(linear).fit(positive)
        weights = Model.of(fitted, positive.feature_names).weights
        np.testing.assert_allclose(weights, np.ravel(fitted.ranker_.coef_), rtol=1e-12)
    binary = RankingData(positive.X, positive.y > 0, positive.qid)
    W = RankerAdapter(LinearSVC()).fit_population(binary, feature_mask=features)
    assert isinstance(W, np.ndarray), "a classifier scores by its decision function"


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


def test_an_ensemble_without_a_length_judges_a_search(noisy_data):
    forest = RandomForestRegressor(2, max_depth=3, random_state=0)
    quick = {"instance_selection": False, "ensemble": False, "feature_selection": {"population": 4, "generations": 1}}
    solver = MOFSRank(forest, random_state=0, **quick).fit(noisy_data)
    own = clone(forest).fit(noisy_data.X[:, solver.support_], noisy_data.y)
    np.testing.assert_array_equal(solver.predict(noisy_data.X), own.predict(noisy_data.X[:, solver.support_]))


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


def linear(data):
    return LinearPopulation(np.random.default_rng(0).normal(size=(4, data.n_features)))


def trees(data):
    masks = np.eye(4, data.n_features, dtype=bool)
    fits = [DecisionTreeRegressor(max_depth=3).fit(data.X[:, mask], data.y) for mask in masks]
    return FittedPopulation(tuple(fits), masks)


def scored(data):
    return train_population(Returns(Columns(4)), data, feature_mask=np.ones((4, data.n_features), bool))


KINDS = [linear, trees, scored, lambda data: side_by_side([linear(data).take(np.array([0])), scored(data)])]


@pytest.mark.parametrize("make", KINDS)
def test_what_is_taken_scores_as_before_and_nothing_scores_zero(noisy_data, make):
    population = make(noisy_data)
    assert isinstance(population, Population)
    scores = population.scores(noisy_data.X)
    assert scores.shape == (noisy_data.n_documents, len(population))
    assert (np.ptp(scores, axis=0) > 0).all()
    rows = np.array([2, -1, 0, 2])
    taken = population.take(rows)
    expected = scores[:, [2, 0, 0, 2]] * [1, 0, 1, 1]
    assert len(taken) == 4
    np.testing.assert_array_equal(taken.scores(noisy_data.X), expected)
    assert taken.scores(noisy_data.X).flags.c_contiguous
    again = taken.take(np.array([1, 3, -1]))
    np.testing.assert_array_equal(again.scores(noisy_data.X), expected[:, [1, 3, 1]])


def test_side_by_side_keeps_the_order_and_the_weights(noisy_data):
    one, other, mixed = linear(noisy_data), linear(noisy_data), trees(noisy_data)
    W = side_by_side([one, other.take(np.array([3]))]).coefs
    np.testing.assert_array_equal(W, np.concatenate([one.coefs, other.coefs[3:]]))
    assert side_by_side([mixed]) is mixed
    together = side_by_side([mixed, one])
    assert together.coefs is None
    expected = np.hstack([mixed.scores(noisy_data.X), one.scores(noisy_data.X)])
    np.testing.assert_array_equal(together.scores(noisy_data.X), expected)


BACKENDS = [RankSVM(2.0), RankRLS(0.05), RankRLS(0.05, target="difference"), FSMRank(lambda2=1e-4)]
KINDS = [entry.kind for entry in solvers().values() if entry.backend and entry.linear]
BACKENDS += [kind() for kind in dict.fromkeys(KINDS) if kind not in map(type, BACKENDS)]  # those of later rows


N_PAIRS = 2552  # of the data
KEPT = np.array([[True], [True], [False]]).repeat(N_PAIRS, axis=1)


@pytest.fixture(params=BACKENDS, ids=repr)
def backend(request):
    return request.param


def test_without_masks_it_is_the_fit(noisy_data, backend):
    fitted = clone(backend).fit(noisy_data.X, noisy_data.y, qid=noisy_data.qid)
    np.testing.assert_array_equal(backend.fit_population(noisy_data), fitted.coef_[None])


def test_a_shared_row_is_that_row_for_everybody(noisy_data, backend):
    rng = np.random.default_rng(0)
    pairs = rng.random(len(noisy_data.pairs)) < 0.5
    features = rng.random((6, noisy_data.n_features)) < 0.5
    features[:, 1] = True
    W = backend.fit_population(noisy_data, pair_mask=pairs, feature_mask=features)
    single = [backend.fit_population(noisy_data, pair_mask=pairs, feature_mask=row) for row in features]
    np.testing.assert_array_equal(W, np.concatenate(single))


def test_single_rows_have_the_bits_of_the_batch(noisy_data, backend):
    rng = np.random.default_rng(1)
    pairs = rng.random((18, len(noisy_data.pairs))) < 0.3
    features = rng.random((18, noisy_data.n_features)) < 0.5
    features[:, 1] = True
    W = backend.fit_population(noisy_data, pair_mask=pairs, feature_mask=features)
    for row in (0, 7, 17):
        one = slice(row, row + 1)
        single = backend.fit_population(noisy_data, pair_mask=pairs[one], feature_mask=features[one])
        np.testing.assert_array_equal(single, W[one])
    assert not W[~features].any()


def test_packed_pairs_train_the_same_rankers(backend):
    """Of 18 individuals two groups of lanes are not full; the last byte of a row is not full, either."""
    data = make_planted(n_queries=20, seed=1).data
    assert data.n_pairs % 8
    pairs = np.random.default_rng(2).random((18, data.n_pairs)) < 0.3
    packed = np.packbits(pairs, axis=1)
    W = backend.fit_population(data, pair_mask=pairs)
    np.testing.assert_array_equal(backend.fit_population(data, pair_mask=np.asfortranarray(packed)), W)
    with pytest.raises(ValueError, match="must be an array of bool, not of uint8"):  # a bit behind the last pair
        backend.fit_population(data, pair_mask=packed | 1)
    with pytest.raises(ValueError, match="must be an array of bool, not of uint8"):
        backend.fit_population(data, pair_mask=pairs.astype(np.uint8))


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (dict(feature_mask=np.zeros((2, 12), bool)), "feature_mask: row 0 selects no feature"),
        (dict(pair_mask=np.zeros((1, 99), bool)), "pair_mask must have shape"),
        (dict(feature_mask=np.ones((2, 11), bool)), "feature_mask must have shape"),
        (dict(feature_mask=np.ones((2, 12))), "must be an array of bool"),
        (dict(pair_mask=KEPT), "row 2 selects no pair"),
        (
            dict(pair_mask=KEPT | True, feature_mask=np.ones((2, 12), bool)),
            "pair_mask has 3 rows but feature_mask has 2",
        ),
    ],
)
def test_masks_that_select_nothing_or_do_not_fit_are_refused(noisy_data, backend, masks, message):
    with pytest.raises(ValueError, match=message):
        backend.fit_population(noisy_data, **masks)


@pytest.mark.parametrize(
    "backend", [RankSVM(C=5000.0, tol=0.0), RankRLS(alpha=1e-4, tol=0.0)], ids=lambda b: type(b).__name__
)
def test_a_population_that_is_not_solved_is_told(backend):
    train = make_planted(n_queries=20, seed=1).data
    some = np.arange(len(train.pairs)) % 5 == np.arange(4)[:, None]
    name, tol = type(backend).__name__, backend.tol
    with pytest.warns(
        ConvergenceWarning, match=f"^{name} stopped at 60 Newton steps .* tol={tol} .*; raise tol, regularise more, or"
    ) as told:
        backend.fit_population(train, pair_mask=some)
    assert [entry.filename for entry in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        type(backend)().fit_population(train, pair_mask=some)


RIDGES = [RankRLS(alpha) for alpha in 10.0 ** np.arange(-5, 2)]
MARGINS = [RankSVM(C) for C in (0.005, 0.5, 5.0, 50.0)]


@pytest.mark.parametrize("unit", ["pair", "document", "query"])
@pytest.mark.parametrize(("n_queries", "size"), [(12, 8), (2, 40)])
@pytest.mark.parametrize("backends", [RIDGES, MARGINS], ids=["RankRLS", "RankSVM"])
def test_individuals_with_few_pairs_beside_their_features_reach_their_minima(backends, n_queries, size, unit):
    """60 features of 96 or 80 documents, ten of them twice."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_queries * size, 50)), rng.integers(0, 3, n_queries * size)
    y[:2] = 0, 1
    train = RankingData(np.hstack([X, X[:, :10]]), y, np.repeat(np.arange(n_queries), size))
    ends = np.array([train.pairs.better, train.pairs.worse])
    unit_of = {"pair": np.tile(np.arange(train.n_pairs), (2, 1)), "document": ends, "query": train.qid[ends]}[unit]
    chosen = rng.random((6, unit_of.max() + 1)) < np.array([[0.01, 0.05, 0.1, 0.3, 0.6, 0.9]]).T
    chosen[:, : 2 if unit == "document" else 1] = True
    features = rng.random((6, 60)) < 0.8
    for backend in backends:
        W = backend.fit_population(train, pair_mask=chosen, feature_mask=features, unit=unit)
        for w, of_individual, used in zip(W, chosen, features, strict=True):
            D = differences(train, of_individual[unit_of].all(axis=0))[:, used]
            if backends is RIDGES:
                objective = pair_objective(D, 0.5 / backend.alpha, one_sided=False)
                A = D.T @ D / len(D) + backend.alpha * np.eye(used.sum())
                best, _ = objective(np.linalg.solve(A, D.mean(axis=0)))
            else:
                objective = pair_objective(D, backend.C)
                best = minimum(objective, used.sum()).fun
            assert objective(w[used])[0] <= best * (1.0 + 1e-7)
            assert not w[~used].any()


def test_the_differences_of_few_pairs_ask_the_rule_for_memory(noisy_data, monkeypatch):
    few = np.arange(noisy_data.n_pairs)[None] < 9
    RankRLS().fit_population(noisy_data, pair_mask=few)  # remembers the list of all pairs
    monkeypatch.setenv("MOERANK_MEMORY", "1e-9")
    with pytest.raises(ValueError, match="a table of 9 pairs × 12 features would take"):
        RankRLS().fit_population(noisy_data, pair_mask=few)
