"""Products and systems of feature subsets against exact ones, and under another processor's linear algebra."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stdout
from fractions import Fraction

import numpy as np
import pytest

from moerank.kernels.algebra import VECTOR_WIDTH, factorise, product, ridge_subsets, solve, square
from moerank.kernels.step_tables import (
    add_counts,
    forward_blocks,
    ridge_blocks,
    subtract_squares,
)

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
    with redirect_stdout(io.StringIO()) as here:
        exec(OF_PROCESSOR, {})
    older = {**os.environ, "OPENBLAS_CORETYPE": "Nehalem"}
    assert subprocess.check_output([sys.executable, "-c", OF_PROCESSOR], env=older, text=True) == here.getvalue()


def system(n=9, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    masks = rng.random((14, n)) < 0.5
    masks[:, 2] = True
    return A @ A.T + 0.1 * np.eye(n), rng.normal(size=n), masks


def test_ridge_subsets_solve_each_principal_system():
    B, rhs, masks = system()
    systems = np.array([B, B + np.eye(len(B))]), np.array([rhs, -rhs])
    W = ridge_subsets(*systems, masks).reshape(len(masks), 2, -1)
    for pair, mask in zip(W, masks, strict=True):
        for w, A, b in zip(pair, *systems, strict=True):
            np.testing.assert_allclose(w[mask], np.linalg.solve(A[np.ix_(mask, mask)], b[mask]), rtol=1e-10)
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
    W = ridge_subsets((X.T @ X + np.eye(2))[None], (X.T @ y)[None], np.array([[True, True], [True, False]]))
    assert W[0].sum() == pytest.approx(x @ y / (x @ x), rel=1e-6)
    assert W[1, 0] == pytest.approx(x @ y / (x @ x), rel=1e-6)


def blocks(sizes):
    return np.cumsum([0, *sizes])


def test_equal_features_enter_in_order_of_their_columns():
    total = np.zeros((VECTOR_WIDTH, VECTOR_WIDTH))
    total[:6, :6] = np.ones((6, 6)) + 1e-3 * np.eye(6)
    total[:6, 6] = 1.0
    assert forward_blocks(total, blocks([2, 2, 2]), 3).tolist()[0] == 0


def test_equal_columns_share_the_weight():
    A = np.ones((6, 6))
    w = ridge_blocks(A, np.ones(6), blocks([3, 3]), 1e-9, np.ones((1, 2), bool))[0]
    np.testing.assert_allclose(w, 1 / 6, rtol=1e-5)


def test_counts_and_squares_are_exact():
    rng = np.random.default_rng(0)
    n_features, n_bins = 35, 5  # more features than one tile has
    codes = rng.integers(0, n_bins, (300, n_features))
    cells = (codes + n_bins * np.arange(n_features)).astype(np.int32)
    one_hot = np.zeros((300, 176))
    np.put_along_axis(one_hot, cells, 1.0, axis=1)
    weight = rng.integers(0, 50, 300) * 1.0
    total = np.zeros((176, 176))
    add_counts(cells, weight, total)
    np.testing.assert_array_equal(np.triu(total), np.triu(one_hot.T @ (weight[:, None] * one_hot)))
    document, group = rng.integers(0, 300, 900), rng.integers(0, 200, 900)
    sums = np.zeros((200, 176))
    np.add.at(sums, group, one_hot[document])
    factor = rng.integers(-3, 4, 200) * 1.0
    squares = np.zeros((176, 176))
    assert len(squares) % VECTOR_WIDTH == 0
    subtract_squares(sums, factor, squares)
    np.testing.assert_array_equal(np.triu(squares), -np.triu(sums.T @ (factor[:, None] * sums)))
