from functools import cached_property, partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from moerank.training import newton
from moerank.training.newton import trust_region_newton

minimised = partial(trust_region_newton, inner=np.dot)


def quadratic(A, b):
    """½ xᵀAx − bᵀx."""
    return lambda x: SimpleNamespace(value=x @ A @ x / 2 - b @ x, gradient=A @ x - b, product=lambda s: A @ s)


def logistic(X, ridge):
    """Σ log(1 + exp(−Xw)) + ½ ridge ‖w‖²: smooth, but far from its quadratic model when weights are large."""

    def expand(w):
        z = X @ w
        p = 1.0 / (1.0 + np.exp(-z))
        return SimpleNamespace(
            value=np.logaddexp(0.0, -z).sum() + 0.5 * ridge * w @ w,
            gradient=ridge * w - X.T @ (1.0 - p),
            product=lambda s: ridge * s + X.T @ (p * (1.0 - p) * (X @ s)),
        )

    return expand


def positive_definite(rng, n, condition):
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return (Q * np.geomspace(1.0, condition, n)) @ Q.T


@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), exponent=st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_a_quadratic_ends_at_the_solution_of_its_system(seed, n, exponent):
    rng = np.random.default_rng(seed)
    A, b = positive_definite(rng, n, 10.0**exponent), rng.normal(size=n)
    found = minimised(quadratic(A, b), 100.0 * rng.normal(size=n), tol=1e-12)
    assert found.converged
    np.testing.assert_allclose(found.x, np.linalg.solve(A, b), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("ridge", [1e-4, 1.0])
@pytest.mark.parametrize("scale", [0.0, 30.0])
def test_a_smooth_function_ends_where_scipy_does(ridge, scale):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 7)) + 0.3
    expand = logistic(X, ridge)
    start = scale * rng.normal(size=7)
    found = minimised(expand, start, tol=1e-10)
    best = minimize(
        lambda w: (expand(w).value, expand(w).gradient), np.zeros(7), jac=True, options={"gtol": 1e-9, "maxiter": 5000}
    )
    assert expand(found.x).value == pytest.approx(best.fun, rel=1e-10)
    assert expand(found.x).value < expand(start).value


def test_a_step_that_does_not_help_is_not_taken():
    """Σ √(1 + 100 x²): its Newton step from x goes to −100 x³, and the gradient is no measure of a good length."""
    tried, accepted = [], []

    class Root:
        def __init__(self, x):
            self.x, self.root = x, np.sqrt(1.0 + 100.0 * x**2)
            self.value = float(self.root.sum())
            tried.append(self.value)

        @cached_property
        def gradient(self):
            accepted.append(self.value)  # a gradient is wanted where the next step begins
            return 100.0 * self.x / self.root

        def product(self, s):
            return 100.0 * s / self.root**3

    found = minimised(Root, np.array([1.0, -0.3]), tol=1e-10)
    np.testing.assert_allclose(found.x, 0.0, atol=1e-9)
    assert max(tried) > tried[0], "a step was too long"
    assert (np.diff(accepted) < 0).all()
    assert found.n_iter < 60


def test_an_inner_product_is_a_change_of_variables():
    """⟨a, b⟩ = aᵀMb with M = LLᵀ gives the very steps of the plain product in the variables Lᵀx."""
    rng = np.random.default_rng(4)
    X, M = rng.normal(size=(50, 5)), positive_definite(rng, 5, 100.0)
    L = np.linalg.cholesky(M)
    back = np.linalg.inv(L).T
    plain = minimised(logistic(X @ back, 0.1), np.zeros(5), tol=1e-6)

    def expand(x):
        at = logistic(X, 0.0)(x)
        ridge = 0.1 * M @ x  # ½ · 0.1 ‖Lᵀx‖²
        return SimpleNamespace(
            value=at.value + 0.5 * x @ ridge,
            gradient=np.linalg.solve(M, at.gradient + ridge),
            product=lambda s: np.linalg.solve(M, at.product(s) + 0.1 * M @ s),
        )

    found = trust_region_newton(expand, np.zeros(5), tol=1e-6, inner=lambda a, b: float(a @ M @ b))
    assert found.n_iter == plain.n_iter
    np.testing.assert_allclose(L.T @ found.x, plain.x, rtol=1e-9)


def test_too_few_steps_are_told(monkeypatch):
    expand = logistic(np.random.default_rng(6).normal(size=(40, 4)) + 1.0, 1e-3)
    monkeypatch.setattr(newton, "MAX_TRIED", 1)
    found = minimised(expand, np.zeros(4), tol=1e-12)
    assert (found.converged, found.n_iter) == (False, 1)
    assert minimised(expand, np.zeros(4), tol=2.0).n_iter == 0
