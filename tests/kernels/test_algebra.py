"""Products and systems of feature subsets against exact ones, and under another processor's linear algebra."""

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from moerank.kernels.algebra import factorise, product, ridge_subsets, solve, square

OF_PROCESSOR = """
from moerank.data import load_planted_fold
from moerank.solvers import make_solver
train, validation, _ = load_planted_fold(1, n_queries=30, n_documents=15)
for name in ("rankrls", "ranksvm-primal", "ranksvm-tron", "ranksvm-struct", "svm-map", "crr"):
    print(name, make_solver(name).fit(train, validation=validation).coef_.tobytes().hex())
"""


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (8, 65), (13, 130)])
def test_products_are_the_exact_ones_up_to_rounding(shape):
    rng = np.random.default_rng(sum(shape))
    A, x = rng.normal(size=shape), rng.normal(size=shape[1])
    exact = [[float(sum(Fraction(a) * Fraction(b) for a, b in zip(f, g, strict=True))) for g in [*A, x]] for f in A]
    np.testing.assert_allclose(square(A), np.array(exact)[:, :-1], rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(square(A), square(A).T)
    np.testing.assert_allclose(product(A, x), np.array(exact)[:, -1], rtol=1e-12, atol=1e-13)


def test_the_square_is_summed_document_after_document():
    A = np.array([[1.0, 1e16, -1e16, 1.0], np.ones(4)])
    assert square(A)[0, 1] == 1.0  # 1 + 10¹⁶ is rounded to 10¹⁶


def test_rankers_have_the_same_bits_with_the_linear_algebra_of_an_older_processor():
    weights = {
        subprocess.check_output([sys.executable, "-c", OF_PROCESSOR], env={**os.environ, "OPENBLAS_CORETYPE": core})
        for core in ("Haswell", "Nehalem")
    }
    assert len(weights) == 1


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
