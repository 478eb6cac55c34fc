from types import SimpleNamespace

import numpy as np
import pytest

from moerank.training.pair_moments import solve_positive_definite
from moerank.training.pairs import dense_newton


def test_a_step_too_long_is_halved_until_the_function_falls():
    seen = []

    def expand(w):  # √(1 + w²): a full Newton step from w leads to −w³
        root = np.sqrt(1.0 + w[0] ** 2)
        seen.append(w[0])
        return SimpleNamespace(value=root, gradient=w / root, hessian=np.array([[root**-3]]))

    w, _ = dense_newton(expand, np.array([2.0]), 1e-12)
    assert seen[:4] == pytest.approx([2.0, -8.0, -3.0, -0.5])
    assert w[0] == pytest.approx(0.0, abs=1e-5)


def test_where_rounding_allows_no_decrease_the_search_ends_at_the_best_point():
    def expand(w):  # a value that does not know that it should fall
        return SimpleNamespace(value=1.0, gradient=w, hessian=np.eye(2))

    assert dense_newton(expand, np.array([1.0, 2.0]), 1e-12)[0].tolist() == [1.0, 2.0]


def test_a_system_that_rounding_makes_singular_is_solved_in_the_scale_of_its_features():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3)) * [1e8, 1.0, 1e-8]
    X = np.column_stack([X[:, 0], X])  # the first feature twice
    y = X[:, 0] / 1e8 + X[:, 2] + rng.normal(size=30)
    A, b = X.T @ X, X.T @ y
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.solve(A, b)
    expected = np.linalg.lstsq(X[:, 1:] / [1e8, 1.0, 1e-8], y, rcond=None)[0]
    found = solve_positive_definite(A, b) * [1e8, 1e8, 1.0, 1e-8]
    np.testing.assert_allclose([found[0] + found[1], *found[2:]], expected, rtol=1e-8)
    regular = A[1:, 1:] + np.eye(3)
    np.testing.assert_allclose(solve_positive_definite(regular, b[1:]), np.linalg.solve(regular, b[1:]), rtol=1e-12)
