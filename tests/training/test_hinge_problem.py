import numpy as np
import pytest
from helpers.pair_problems import minimum, pair_objective

from moerank.data import RankingData
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


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("own_metric", [False, True])
def test_features_reach_the_minimum_that_scipy_finds_in_any_metric(case, C, own_metric):
    X, pairs, D = case
    metric = hessian_diagonal(X, pairs, C) if own_metric else None
    found = solve_with_features(X, pairs, C, 1e-9, metric)
    assert found.converged
    objective = pair_objective(D, C)
    best = minimum(objective, N_FEATURES)
    assert objective(found.x)[0] == pytest.approx(best.fun, rel=1e-11)
    np.testing.assert_allclose(found.x, best.x, atol=1e-4 * np.abs(best.x).max())


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_the_gradient_at_the_end_is_the_share_asked_for(case, tol):
    X, pairs, D = case
    objective = pair_objective(D, 100.0)
    at_zero, at_end = (
        np.linalg.norm(objective(w)[1]) for w in (np.zeros(N_FEATURES), solve_with_features(X, pairs, 100.0, tol).x)
    )
    assert at_end <= tol * at_zero * (1.0 + 1e-6)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_linear_kernel_gives_the_problem_with_features(case, C):
    X, pairs, D = case
    K = X @ X.T
    lower = np.where(np.tri(len(K), dtype=bool), K, np.nan)  # the lower triangle is all there need be
    b, image = solve_with_kernel(lower, pairs, C, 1e-9).x
    np.testing.assert_allclose(image, K @ b, rtol=1e-9, atol=1e-9 * np.abs(image).max())
    objective = pair_objective(D, C)
    assert objective(X.T @ b)[0] == pytest.approx(minimum(objective, N_FEATURES).fun, rel=1e-11)
