from functools import cached_property, partial
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.pair_problems import minimum, pair_objective
from hypothesis import given, settings
from hypothesis import strategies as st

from moerank.data import RankingData, make_planted
from moerank.training.masks import Masks
from moerank.training.pair_moments import DIFFERENCE, UNIT, solve_positive_definite
from moerank.training.pairs import SQUARED, SQUARED_HINGE, Expanded, ListedPairs, dense_newton
from moerank.training.sorted import trust_region_newton

TARGETS = {"unit": UNIT, "difference": DIFFERENCE}
LOSSES = {"squared": SQUARED, "hinge": SQUARED_HINGE}


@pytest.fixture(scope="module")
def data():
    """Five queries, ten features of which the last is constant in every query; labels 0-3."""
    rng = np.random.default_rng(0)
    qid = np.sort(rng.integers(0, 5, 90))
    X = np.column_stack([rng.random((90, 9)), 0.1 * qid])
    y = np.digitize(X[:, 0] - X[:, 4] + rng.normal(scale=0.3, size=90), [-0.2, 0.2, 0.6])
    return RankingData(X, y, qid)


@pytest.fixture(scope="module")
def keep(data):
    return np.random.default_rng(1).random(len(data.pairs)) < 0.3


@pytest.fixture(params=TARGETS)
def target(request):
    return TARGETS[request.param]


@pytest.fixture(params=LOSSES)
def loss(request):
    return LOSSES[request.param]


def explicit(data, keep, target):
    """Differences and margins of the kept pairs."""
    better, worse = data.pairs.better[keep], data.pairs.worse[keep]
    margins = np.ones(len(better)) if target == UNIT else (data.y[better] - data.y[worse]).astype(float)
    return data.X[better] - data.X[worse], margins


def residual(loss, d):
    """Half the slope of the loss."""
    return np.maximum(0.0, d) if loss.one_sided else d


def test_gram_matrix_and_moment_are_means_over_explicit_pairs(data, keep, target):
    problem = ListedPairs(data, keep, target)
    D, t = explicit(data, keep, target)
    np.testing.assert_allclose(problem.gram, D.T @ D / len(D), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(problem.moment, t @ D / len(D), rtol=1e-11, atol=1e-14)


def test_value_gradient_and_hessian_are_those_of_explicit_pairs(data, keep, target, loss):
    D, t = explicit(data, keep, target)
    w, C = np.random.default_rng(2).normal(size=10), 3.0
    problem = ListedPairs(data, keep, target)
    at = problem.expand(w, C, loss)
    d = t - D @ w
    assert 0 < (d < 0).sum() < len(d)
    assert at.value == pytest.approx(0.5 * w @ w + C * (residual(loss, d) ** 2).mean(), rel=1e-12)
    np.testing.assert_allclose(at.gradient, w - 2.0 * C / len(d) * residual(loss, d) @ D, rtol=1e-11, atol=1e-13)
    active = D[residual(loss, d) != 0.0]
    np.testing.assert_allclose(at.hessian, np.eye(10) + 2.0 * C / len(d) * active.T @ active, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("C", [0.01, 1.0, 300.0])
def test_each_loss_solves_its_problem(data, loss, target, C):
    D, t = explicit(data, slice(None), target)
    objective = pair_objective(D, C, t, loss.one_sided)
    model = ListedPairs(data, target=target).model(loss, C)
    found, gradient = objective(model.w)
    assert found == pytest.approx(minimum(objective, 10).fun, rel=1e-10)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-5 * np.sqrt(max(C, 1.0)))
    # The model has the Hessian of the active pairs and its minimum, except for the rest of the gradient, at w.
    active = D[residual(loss, t - D @ model.w) != 0.0]
    np.testing.assert_allclose(model.B, np.eye(10) + 2.0 * C / len(D) * active.T @ active, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.linalg.solve(model.B, model.rhs), model.w, rtol=1e-6, atol=1e-14)


def test_individuals_that_are_far_from_the_common_model_say_that_they_were_not_solved():
    """With hardly any regularisation the minimum for a few pairs has little to do with that for all."""
    data = make_planted(n_queries=20, seed=1).data
    problem, C = ListedPairs(data), 5000.0
    sizes = np.tile([len(problem), 8, 40], 14)[:21]  # more than a vector has lanes
    masks = np.random.default_rng(6).random((21, len(problem))).argsort(axis=1) < sizes[:, None]
    features = np.ones((21, data.n_features), bool)
    model = problem.model(SQUARED_HINGE, C)
    W, converged = problem.solve_population(
        model, Masks(features, unit_rows=np.packbits(masks, axis=1)), tolerance=1e-7
    )
    excess = []
    for w, mask in zip(W, masks, strict=True):
        own = ListedPairs(data, mask)
        best = own.expand(own.model(SQUARED_HINGE, C).w, C, SQUARED_HINGE).value
        excess.append(own.expand(w, C, SQUARED_HINGE).value / best - 1.0)
    excess = np.array(excess)
    assert converged[sizes == len(problem)].all()
    assert (excess[converged] < 1e-5).all()
    assert (excess[~converged] > 0.1).any()


def test_a_step_too_long_is_halved_until_the_function_falls():
    seen = []

    def expand(w):  # √(1 + w²): a full Newton step from w leads to −w³
        root = np.sqrt(1.0 + w[0] ** 2)
        seen.append(w[0])
        return Expanded(value=root, gradient=w / root, hessian=np.array([[root**-3]]))

    w, _ = dense_newton(expand, np.array([2.0]), 1e-12)
    assert seen[:4] == pytest.approx([2.0, -8.0, -3.0, -0.5])
    assert w[0] == pytest.approx(0.0, abs=1e-5)


def test_where_rounding_allows_no_decrease_the_search_ends_at_the_best_point():
    def expand(w):  # a value that does not know that it should fall
        return Expanded(value=1.0, gradient=w, hessian=np.eye(2))

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
