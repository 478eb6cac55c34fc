import numpy as np

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
