from functools import cached_property, partial
from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from moerank.training.sorted import trust_region_newton

minimised = partial(trust_region_newton, inner=np.dot)


def quadratic(A, b):
    """½ xᵀAx − bᵀx."""
    return lambda x: SimpleNamespace(value=x @ A @ x / 2 - b @ x, gradient=A @ x - b, product=lambda s: A @ s)


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

    found = minimised(Root, np.array([1.0, -0.1]), tol=1e-10)  # all changes of the radius
    np.testing.assert_allclose(found.x, 0.0, atol=1e-9)
    assert max(tried) > tried[0], "a step was too long"
    assert (np.diff(accepted) < 0).all()
    assert found.n_iter < 60
