"""FSMRank against scipy on the explicit problem, and by passes over counted pairs against listed ones."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import kendalltau, spearmanr
from sklearn.base import clone

from moerank.data import RankingData, load_fold
from moerank.metrics import NDCG
from moerank.rankers import FSMRank
from moerank.rankers.importance import feature_importance, feature_similarity

TIGHT = {"max_iter": 50_000, "tol": 1e-13}


def oracle(data, lambda1, lambda2, keep=None, features=None, convex=True, s=None, A=None):
    """Problem (2) on explicit differences: the function of the kept variables, with gradient, and their number."""
    features = np.ones(data.n_features, bool) if features is None else features
    s = np.array([abs(np.corrcoef(x, data.y)[0, 1]) for x in data.X.T]) if s is None else s
    A = abs(np.corrcoef(data.X.T)) if A is None else A
    if convex:
        values, vectors = np.linalg.eigh(A)
        A = vectors @ np.diag(np.maximum(values, 0.0)) @ vectors.T
    A = np.tile(A[np.ix_(features, features)], (2, 2))
    cost = np.tile(1.0 / s[features], 2)
    D = (data.X[data.pairs.better] - data.X[data.pairs.worse])[slice(None) if keep is None else keep][:, features]
    D = np.hstack([D, -D])

    def function(w):
        slack = np.maximum(0.0, 1.0 - D @ w)
        value = np.mean(slack**2) + 0.5 * lambda1 * w @ A @ w + lambda2 * cost @ w
        return value, -2.0 * D.T @ slack / len(D) + lambda1 * A @ w + lambda2 * cost

    return function, D.shape[1]


def minimum(function, size):
    options = {"maxiter": 20_000, "maxfun": 50_000, "maxcor": 50, "ftol": 1e-15, "gtol": 1e-9}
    result = minimize(function, np.zeros(size), jac=True, method="L-BFGS-B", bounds=[(0, None)] * size, options=options)
    return result.fun


def split(w):
    """The variables [u; v] of weights w."""
    return np.concatenate([w.clip(0.0), (-w).clip(0.0)])


@pytest.fixture(scope="module")
def masks(noisy_data):
    """Pairs and features of 19 individuals, which is no multiple of the group size."""
    rng = np.random.default_rng(3)
    pairs = rng.random((19, len(noisy_data.pairs))) < rng.uniform(0.05, 0.9, (19, 1))
    features = rng.random((19, noisy_data.n_features)) < 0.6
    features[:, 0] = True
    return pairs, features


@pytest.mark.parametrize(("lambda1", "lambda2"), [(1e-3, 1e-3), (1.0, 1e-3), (1e-6, 1e-2), (1e-2, 1e-5), (0.0, 0.1)])
def test_fit_reaches_the_minimum_that_scipy_finds(noisy_data, lambda1, lambda2):
    ranker = FSMRank(lambda1, lambda2, **TIGHT).fit(noisy_data.X, noisy_data.y, qid=noisy_data.qid)
    function, size = oracle(noisy_data, lambda1, lambda2)
    assert function(ranker.variables_)[0] == pytest.approx(minimum(function, size), rel=1e-7)


def test_the_minimum_on_real_pairs(letor_folder):
    train, _, _ = load_fold(letor_folder / "MQ2008" / "Fold1")
    varies = np.ptp(train.X, axis=0) > 0
    train = RankingData(train.X[:, varies], train.y, train.qid)
    keep = np.random.default_rng(0).random(len(train.pairs)) < 0.1
    w = FSMRank(1e-2, 1e-2, **TIGHT).fit_population(train, pair_mask=keep)[0]
    function, size = oracle(train, 1e-2, 1e-2, keep)
    assert function(split(w))[0] == pytest.approx(minimum(function, size), rel=1e-6)


@pytest.mark.parametrize("convex", [True, False])
def test_objective_agrees_with_explicit_pairs(noisy_data, convex):
    variables = np.random.default_rng(4).random(2 * noisy_data.n_features)
    function, _ = oracle(noisy_data, 0.3, 0.02, convex=convex)
    ranker = FSMRank(0.3, 0.02, convex=convex)
    assert ranker.objective(noisy_data, variables) == pytest.approx(function(variables)[0], rel=1e-12)


def test_iterates_are_those_of_the_listing(noisy_data):
    """A plain restatement of Algorithm 1 takes the same number of steps to the same point."""
    lambda1, lambda2 = 1e-3, 2e-3
    full, size = oracle(noisy_data, lambda1, lambda2)
    cost = np.tile(1.0 / feature_importance(noisy_data), 2)

    def smooth(w):
        value, gradient = full(w)
        return value - lambda2 * cost @ w, gradient - lambda2 * cost

    L = (4 + 2 * lambda1) * noisy_data.n_features / 2**10
    w_before = z = np.zeros(size)
    alpha = 1.0
    steps = 0
    while True:
        steps += 1
        value, gradient = smooth(z)
        while True:
            w = np.maximum(0.0, z - (gradient + lambda2 * cost) / L)
            if smooth(w)[0] <= value + gradient @ (w - z) + 0.5 * L * (w - z) @ (w - z):
                break
            L *= 2.0
        if abs(full(w)[0] - full(w_before)[0]) <= 1e-4 * abs(full(w_before)[0]):
            break
        following = 0.5 * (1 + np.sqrt(1 + 4 * alpha**2))
        z = w + (alpha - 1) / following * (w - w_before)
        w_before, alpha = w, following

    ranker = FSMRank(lambda1, lambda2).fit(noisy_data.X, noisy_data.y, qid=noisy_data.qid)
    assert 5 < ranker.n_iter_ == steps
    np.testing.assert_allclose(ranker.variables_, w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("parameters", [{"lambda1": 1e-2, "lambda2": 1e-3}, {"lambda1": 1e-4, "lambda2": 1e-2}])
def test_population_reaches_each_individuals_minimum(noisy_data, masks, parameters):
    pairs, features = masks
    W = FSMRank(**parameters, **TIGHT).fit_population(noisy_data, pair_mask=pairs, feature_mask=features)
    for row in range(0, 19, 3):
        function, size = oracle(noisy_data, **parameters, keep=pairs[row], features=features[row])
        assert function(split(W[row, features[row]]))[0] == pytest.approx(minimum(function, size), rel=1e-6)
    assert W.any(axis=1).all()
    assert not W[~features].any()


def test_a_bad_start_ends_at_the_same_minimum(noisy_data):
    start = np.random.default_rng(5).normal(scale=3.0, size=(3, noisy_data.n_features))
    W = FSMRank(0.1, 0.01, **TIGHT).fit_population(noisy_data, feature_mask=np.ones(start.shape, bool), start=start)
    function, size = oracle(noisy_data, 0.1, 0.01)
    for w in W:
        assert function(split(w))[0] == pytest.approx(minimum(function, size), rel=1e-6)


@pytest.fixture(scope="module")
def indefinite_data():
    """Four features whose absolute correlations have an eigenvalue near −0.36."""
    P, Q = np.array([1.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 1.0, -1.0])
    rng = np.random.default_rng(6)
    a, b = rng.normal(size=(2, 200))
    X = a[:, None] * P + b[:, None] * Q + 0.05 * rng.normal(size=(200, 4))
    return RankingData(X, np.digitize(a + 0.3 * b + 0.5 * rng.normal(size=200), [-0.5, 0.5, 1.5]), 0)


def test_clipping_gives_the_nearest_positive_semidefinite_matrix(indefinite_data):
    raw, clipped = feature_similarity(indefinite_data, convex=False), feature_similarity(indefinite_data)
    values = np.linalg.eigvalsh(raw)
    assert values[0] < -0.3
    assert np.linalg.eigvalsh(clipped)[0] > -1e-12
    # No positive semidefinite matrix is nearer than the norm of the negative eigenvalues.
    assert np.linalg.norm(clipped - raw) == pytest.approx(np.linalg.norm(values.clip(max=0.0)), rel=1e-9)
    fits = [FSMRank(1.0, 1e-3, convex=convex, **TIGHT).fit_population(indefinite_data)[0] for convex in (False, True)]
    assert abs(fits[0] - fits[1]).max() > 1e-3


def rank_correlations(data, coefficient):
    """scipy's coefficient of each two of the features and the label, over all documents."""
    columns = [*data.X.T, data.y]
    return np.array([[abs(coefficient(x, z).statistic) for z in columns] for x in columns])


@pytest.mark.parametrize(("name", "coefficient"), [("spearman", spearmanr), ("kendall", kendalltau)])
def test_rank_correlations_are_scipys_with_ties(noisy_data, name, coefficient):
    coarse = RankingData(noisy_data.X[:, :5].round(1), noisy_data.y, noisy_data.qid)
    expected = rank_correlations(coarse, coefficient)
    np.testing.assert_allclose(feature_importance(coarse, name), expected[-1, :-1], rtol=1e-10)
    A = feature_similarity(coarse, name, convex=False)
    np.testing.assert_allclose(A, expected[:-1, :-1], rtol=1e-10, atol=1e-14)
    level = RankingData(np.column_stack([coarse.X[:, 0], np.ones(coarse.n_documents)]), coarse.y, coarse.qid)
    assert feature_importance(level, name)[1] == 0.0
    np.testing.assert_allclose(feature_similarity(level, name), [[1, 0], [0, 0]], atol=1e-15)


def test_a_metric_is_an_importance(noisy_data):
    alone = [[NDCG(5).score(noisy_data, sign * x) for x in noisy_data.X.T] for sign in (1, -1)]
    for metric in ("NDCG@5", NDCG(5)):
        np.testing.assert_allclose(feature_importance(noisy_data, metric), np.max(alone, axis=0), rtol=1e-12)


def given_measures(n_features):
    """An importance with a 0, and a similarity with a negative eigenvalue."""
    rng = np.random.default_rng(11)
    s, A = rng.random(n_features), rng.random((n_features, n_features))
    s[2] = 0.0
    return s, A + A.T


@pytest.mark.parametrize("form", ["array", "list", "function"])
def test_given_importance_and_similarity_enter_the_problem(noisy_data, form):
    s, A = given_measures(noisy_data.n_features)
    given = {"array": (s, A), "list": (s.tolist(), A.tolist()), "function": (lambda data: s, lambda data: A)}[form]
    ranker = FSMRank(0.1, 1e-3, 50_000, 1e-13, *given).fit(noisy_data)
    assert not ranker.support_[2]
    some = s > 0
    # Clipping the whole matrix is not clipping a part of it.
    values, vectors = np.linalg.eigh(A)
    A = vectors @ np.diag(np.maximum(values, 0.0)) @ vectors.T
    function, size = oracle(noisy_data, 0.1, 1e-3, features=some, convex=False, s=s, A=A)
    assert function(ranker.variables_[np.tile(some, 2)])[0] == pytest.approx(minimum(function, size), rel=1e-6)
    assert ranker.objective(noisy_data, ranker.variables_) == pytest.approx(ranker.objectives_[-1], rel=1e-12)


def test_ones_and_identity_are_the_elastic_net(noisy_data):
    n = noisy_data.n_features
    named = FSMRank(0.1, 1e-3, importance="ones", similarity="identity").fit(noisy_data)
    given = FSMRank(0.1, 1e-3, importance=np.ones(n), similarity=np.eye(n)).fit(noisy_data)
    np.testing.assert_array_equal(named.coef_, given.coef_)
    w = np.random.default_rng(1).normal(size=n)
    D = noisy_data.X[noisy_data.pairs.better] - noisy_data.X[noisy_data.pairs.worse]
    expected = np.mean(np.maximum(0.0, 1.0 - D @ w) ** 2) + 0.05 * w @ w + 1e-3 * abs(w).sum()
    assert named.objective(noisy_data, split(w)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("over", [None, "tol", "importance"])
def test_a_grid_is_trained_as_its_entries_are(noisy_data, over):
    """The usual one in one population, others in one for each value of the other parameters."""
    ranker, (s, _) = FSMRank(), given_measures(noisy_data.n_features)
    values = {"tol": (0.5, 1e-6), "importance": ("ones", s, s[::-1].copy())}
    grid = [{over: value} for value in values[over]] if over else ranker.default_grid(noisy_data)
    if over is None:
        assert len({tuple(entry.items()) for entry in grid}) == 169
        assert grid[0] == {"lambda1": 1.0, "lambda2": 1.0}
    candidates = [clone(ranker).set_params(**entry) for entry in grid]
    groups = ranker._groups(candidates)
    assert len(groups) == (len(grid) if over else 1)
    for group in groups:
        W = ranker._fit_candidates(noisy_data, [candidates[i] for i in group])
        for w, i in zip(W, group, strict=True):
            np.testing.assert_array_equal(w, candidates[i].fit_population(noisy_data)[0])


def test_documents_and_queries_are_the_pairs_among_them(noisy_data):
    rng = np.random.default_rng(2)
    ranker = FSMRank(1e-2, 1e-3, tol=1e-8)
    features = rng.random((5, noisy_data.n_features)) < 0.7
    features[:, :2] = True
    documents = rng.random((5, noisy_data.n_documents)) < 0.6
    queries = rng.random((5, noisy_data.n_queries)) < 0.5
    queries[:, 0] = True
    better, worse = noisy_data.pairs.better, noisy_data.pairs.worse
    query = np.repeat(np.arange(noisy_data.n_queries), np.diff(noisy_data.offsets))
    for unit, masks, pairs in (
        ("document", documents, documents[:, better] & documents[:, worse]),
        ("query", queries, queries[:, query[better]]),
    ):

        def fit(mask, features, unit=unit):
            return ranker.fit_population(noisy_data, pair_mask=mask, feature_mask=features, unit=unit)

        W = fit(masks, features)
        listed = ranker.fit_population(noisy_data, pair_mask=pairs, feature_mask=features)
        np.testing.assert_allclose(W, listed, rtol=0, atol=1e-8 * np.abs(listed).max())
        for row in range(5):
            np.testing.assert_array_equal(fit(masks[row], features[[row]])[0], W[row])
            np.testing.assert_array_equal(fit(masks[[row]], features[[row]])[0], W[row])
