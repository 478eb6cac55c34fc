from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize

from moerank.data import RankingData
from moerank.training import sorted as hinge_problem
from moerank.training.newton import trust_region_newton
from moerank.training.sorted import PairedDocuments, hessian_diagonal, solve_with_features, solve_with_kernel

N_FEATURES = 6


@pytest.fixture(scope="module")
def case():
    """Features of the documents in pairs, these pairs counted, and their differences."""
    rng = np.random.default_rng(0)
    X = rng.random((90, N_FEATURES)) * [1.0, 1.0, 5.0, 0.2, 1.0, 1.0]
    y = np.digitize(X[:, 0] - X[:, 4] + rng.normal(scale=0.3, size=90), [-0.2, 0.2, 0.6])
    data = RankingData(X, y, np.sort(rng.integers(0, 9, 90)))
    documents = PairedDocuments.of(data)
    return data.X[documents.rows], documents.pairs, X[data.pairs.better] - X[data.pairs.worse]


def value_and_gradient(w, D, C):
    slack = np.maximum(0.0, 1.0 - D @ w)
    return 0.5 * w @ w + C * np.mean(slack**2), w - 2.0 * C * slack @ D / len(D)


def minimum(D, C):
    options = {"maxiter": 5000, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-12}
    arguments = {"args": (D, C), "jac": True, "method": "L-BFGS-B", "options": options}
    return minimize(value_and_gradient, np.zeros(N_FEATURES), **arguments)


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("own_metric", [False, True])
def test_features_reach_the_minimum_that_scipy_finds_in_any_metric(case, C, own_metric):
    X, pairs, D = case
    metric = hessian_diagonal(X, pairs, C) if own_metric else None
    found = solve_with_features(X, pairs, C, 1e-9, metric)
    assert found.converged
    best = minimum(D, C)
    assert found.at.value == pytest.approx(best.fun, rel=1e-11)
    assert value_and_gradient(found.x, D, C)[0] == pytest.approx(found.at.value, rel=1e-11)
    np.testing.assert_allclose(found.x, best.x, atol=1e-4 * np.abs(best.x).max())


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_the_gradient_at_the_end_is_the_share_asked_for(case, tol):
    X, pairs, D = case
    w = solve_with_features(X, pairs, 100.0, tol).x
    at_zero = np.linalg.norm(value_and_gradient(np.zeros(N_FEATURES), D, 100.0)[1])
    assert np.linalg.norm(value_and_gradient(w, D, 100.0)[1]) <= tol * at_zero * (1.0 + 1e-6)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_linear_kernel_gives_the_problem_with_features(case, C):
    X, pairs, D = case
    K = X @ X.T
    b, image = solve_with_kernel(K, pairs, C, 1e-9).x
    np.testing.assert_allclose(image, K @ b, rtol=1e-9, atol=1e-9 * np.abs(image).max())
    assert value_and_gradient(X.T @ b, D, C)[0] == pytest.approx(minimum(D, C).fun, rel=1e-11)


def test_the_estimated_diagonal_takes_documents_of_pairs_for_as_unlike_as_any_two(case):
    X, pairs, D = case
    degree = (pairs.n_better + pairs.n_worse).astype(float)
    chance = np.outer(degree, degree) / degree.sum() ** 2  # of two documents, each drawn as often as it is in a pair
    unlike = [(chance * np.subtract.outer(x, x) ** 2).sum() for x in X.T]
    estimate = hessian_diagonal(X, pairs, 30.0)
    np.testing.assert_allclose(estimate, 1.0 + 2.0 * 30.0 * np.array(unlike), rtol=1e-11)
    np.testing.assert_allclose(estimate, 1.0 + 2.0 * 30.0 * np.mean(D**2, axis=0), rtol=0.25)  # near the exact one


def test_a_solution_at_the_bound_of_steps_is_known_as_such(case, monkeypatch):
    X, pairs, _ = case
    assert solve_with_features(X, pairs, 100.0, 1e-9).converged
    monkeypatch.setattr(hinge_problem, "trust_region_newton", partial(trust_region_newton, max_iter=1))
    minimum = solve_with_features(X, pairs, 100.0, 1e-9)
    assert (minimum.n_iter, minimum.converged) == (1, False)


def test_only_queries_with_different_labels_take_part():
    y = [0, 0, 1, 0, 2, 2, 2, 0, 1, 1]
    qid = [1, 1, 2, 2, 3, 3, 3, 4, 4, 4]
    data = RankingData(np.arange(10.0)[:, None], y, qid)
    documents = PairedDocuments.of(data)
    assert documents.rows.tolist() == [False, False, True, True, False, False, False, True, True, True]
    assert documents.pairs.offsets.tolist() == [0, 2, 5]
    assert documents.pairs.n_pairs == len(data.pairs) == 3
    assert documents.pairs.n_worse.tolist() == [1, 0, 0, 1, 1]


def test_the_pairs_are_those_of_the_data():
    rng = np.random.default_rng(0)
    data = RankingData(rng.random((80, 2)), rng.integers(0, 3, 80), np.sort(rng.integers(0, 30, 80)))
    documents = PairedDocuments.of(data)
    assert 0 < documents.rows.sum() < 80
    worse = np.bincount(data.pairs.better, minlength=80)
    better = np.bincount(data.pairs.worse, minlength=80)
    np.testing.assert_array_equal(documents.pairs.n_worse, worse[documents.rows])
    np.testing.assert_array_equal(documents.pairs.n_better, better[documents.rows])
    assert not (worse + better)[~documents.rows].any()
    assert PairedDocuments.of(data) is documents
