import numpy as np
import pytest

from moerank.kernels.cholesky import factorise, ridge_subsets, solve


def system(n=9, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    masks = rng.random((14, n)) < 0.5
    masks[:, 2] = True
    return A @ A.T + 0.1 * np.eye(n), rng.normal(size=n), masks


def test_ridge_subsets_solve_each_principal_system():
    B, rhs, masks = system()
    for w, mask in zip(ridge_subsets(B, rhs, masks), masks, strict=True):
        np.testing.assert_allclose(w[mask], np.linalg.solve(B[np.ix_(mask, mask)], rhs[mask]), rtol=1e-10)
        assert not w[~mask].any()


def test_equal_neighbours_share_a_factor_and_solve_alike():
    B, rhs, masks = system(seed=1)
    masks[5] = masks[4]
    factors = factorise(B, masks)
    x = np.empty(len(rhs))
    for factor, mask in zip(factors, masks, strict=True):
        solve(factor, mask, rhs, x)
        np.testing.assert_allclose(x[mask], np.linalg.solve(B[np.ix_(mask, mask)], rhs[mask]), rtol=1e-10)
        assert not x[~mask].any()


@pytest.mark.parametrize("scale", [1e8, 3e9, 1e15])
def test_equal_features_of_large_scale_share_the_weight_that_one_alone_has(scale):
    """Rounding takes the ridge of 1 off the second pivot: the weights add up as in ridge regression all the same."""
    x, y = scale * np.linspace(-1.0, 1.0, 9), np.arange(9.0)
    X = np.column_stack([x, x])
    W = ridge_subsets(X.T @ X + np.eye(2), X.T @ y, np.array([[True, True], [True, False]]))
    assert W[0].sum() == pytest.approx(x @ y / (x @ x), rel=1e-6)
    assert W[1, 0] == pytest.approx(x @ y / (x @ x), rel=1e-6)
