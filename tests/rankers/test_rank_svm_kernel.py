import numpy as np
import pytest
from scipy.optimize import minimize

from moerank.data import RankingData
from moerank.rankers import KernelRankSVM, RankSVM
from moerank.training.listed import PairProblem
from moerank.training.losses import SQUARED_HINGE
from moerank.training.sorted import PairedDocuments, solve_with_kernel


def plain_kernel(X, Y, gamma):
    return np.exp(-gamma * ((X[:, None] - Y[None]) ** 2).sum(axis=2))


def explicit_minimum(features, data, C):
    """The minimum in the primal, on explicit differences of mapped documents, by scipy."""
    D = features[data.pairs.better] - features[data.pairs.worse]

    def value_and_gradient(w):
        slack = np.maximum(0.0, 1.0 - D @ w)
        return 0.5 * w @ w + C * np.mean(slack**2), w - 2.0 * C * D.T @ slack / len(D)

    options = {"maxiter": 5000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-10}
    return minimize(value_and_gradient, np.zeros(D.shape[1]), jac=True, method="L-BFGS-B", options=options)


def fit(data, **parameters):
    return KernelRankSVM(**parameters).fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize("C", [1.0, 100.0, 3000.0])
@pytest.mark.parametrize("gamma", [0.05, 1.0])
def test_minimum_and_scores_are_those_in_the_primal_on_an_exact_feature_map(noisy_data, C, gamma):
    ranker = fit(noisy_data, C=C, gamma=gamma, tol=1e-8)
    K = plain_kernel(noisy_data.X, noisy_data.X, gamma)
    values, U = np.linalg.eigh(K)
    features = U * np.sqrt(values.clip(0.0))  # features @ features.T == K
    best = explicit_minimum(features, noisy_data, C)

    b = np.zeros(noisy_data.n_documents)
    b[PairedDocuments.of(noisy_data).rows] = ranker.weights_
    z, pairs = K @ b, noisy_data.pairs
    loss = np.mean(np.maximum(0.0, 1.0 - (z[pairs.better] - z[pairs.worse])) ** 2)
    assert 0.5 * b @ z + C * loss == pytest.approx(best.fun, rel=1e-8)
    np.testing.assert_allclose(ranker.predict(noisy_data.X), features @ best.x, atol=1e-4 * np.ptp(features @ best.x))


@pytest.mark.parametrize("C", [1.0, 100.0, 3000.0])
def test_default_tolerance_is_close_to_the_minimum(noisy_data, C):
    rough, exact = (fit(noisy_data, C=C, gamma=0.3, tol=tol) for tol in (KernelRankSVM().tol, 1e-9))
    K = plain_kernel(exact.documents_, exact.documents_, 0.3)
    pairs = PairedDocuments.of(noisy_data).pairs

    def objective(b):
        z = K @ b
        return 0.5 * b @ z + C / pairs.n_pairs * pairs.within_margin(z).loss

    assert objective(rough.weights_) == pytest.approx(objective(exact.weights_), rel=1e-4)


@pytest.mark.parametrize("C", [0.5, 50.0])
def test_a_linear_kernel_gives_the_linear_ranker(noisy_data, C):
    documents = PairedDocuments.of(noisy_data)
    X = noisy_data.X[documents.rows]
    K = X @ X.T
    K[np.triu_indices(len(K), 1)] = np.nan  # the lower triangle is all there need be
    found = solve_with_kernel(K, documents.pairs, C, 1e-8)
    w = X.T @ found.x[0]
    exact = RankSVM(C)._learn(noisy_data).coef_
    problem = PairProblem.of(noisy_data)
    best = problem.objective(exact, C, SQUARED_HINGE)[0]
    assert problem.objective(w, C, SQUARED_HINGE)[0] == pytest.approx(best, rel=1e-10)
    assert found.at.value == pytest.approx(best, rel=1e-10)
    np.testing.assert_allclose(w, exact, atol=1e-5)
    np.testing.assert_allclose(found.x[1], X @ w, rtol=1e-9, atol=1e-9)


def test_scores_are_sums_over_the_documents_in_pairs(noisy_data):
    ranker = fit(noisy_data, C=100.0, gamma=0.5)
    paired = np.unique(np.concatenate([noisy_data.pairs.better, noisy_data.pairs.worse]))
    assert 0 < len(paired) < noisy_data.n_documents
    np.testing.assert_array_equal(ranker.documents_, noisy_data.X[paired])
    X = np.random.default_rng(2).random((40, 12))
    np.testing.assert_allclose(ranker.predict(X), plain_kernel(X, ranker.documents_, 0.5) @ ranker.weights_, rtol=1e-9)
    assert ranker.predict(X[:0]).shape == (0,)


def test_identical_documents_tie_wherever_they_stand(noisy_data):
    ranker = fit(noisy_data, C=100.0, gamma=0.5)
    rng = np.random.default_rng(3)
    rows = rng.random((31, 12))
    copies = rng.integers(0, 31, 2100)
    scores = ranker.predict(rows[copies])
    for document in range(31):
        assert len(set(scores[copies == document])) == 1


def test_learns_what_no_linear_ranker_can():
    rng = np.random.default_rng(4)
    X = rng.random((300, 2))
    y = np.digitize(np.abs(X[:, 0] - 0.5), [0.1, 0.25])  # best at both ends
    data = RankingData(X, y, np.repeat(np.arange(10), 30))
    pairs = data.pairs
    right = [
        np.mean(scores[pairs.better] > scores[pairs.worse])
        for scores in (fit(data, gamma=4.0).predict(X), RankSVM(50.0).fit(X, y, qid=data.qid).predict(X))
    ]
    assert right[0] > 0.95
    assert right[1] < 0.7


def test_tuning_scores_each_entry_as_its_own_fit_does(noisy_data):
    grid = [{"C": C, "gamma": gamma} for gamma in (0.1, 1.0) for C in (10.0, 1000.0)]
    candidates = [KernelRankSVM(**entry) for entry in grid]
    scores = np.hstack([part for _, part in KernelRankSVM()._grid_scores(noisy_data, noisy_data, candidates)])
    alone = [fit(noisy_data, **entry).predict(noisy_data.X) for entry in grid]
    np.testing.assert_allclose(scores, np.stack(alone, axis=1), rtol=1e-9, atol=1e-12)


def test_a_matrix_over_the_limit_is_refused_with_its_size():
    n = 4000
    data = RankingData(np.linspace(0.0, 1.0, n)[:, None], np.arange(n) == 0, qid=0)
    gib = 8 * n**2 / 2**30
    with pytest.raises(ValueError, match=r"needs 0\.12 GiB for 4,000² kernel values, more than memory_limit=0\.1 GiB"):
        fit(data, memory_limit=0.1)
    with pytest.raises(ValueError, match="rank-nystrom"):
        fit(data, memory_limit=gib * (1 - 1e-9))
    assert fit(data, memory_limit=gib).weights_.shape == (n,)
    assert KernelRankSVM().memory_limit > 8 * 9219**2 / 2**30, "OHSUMED"
