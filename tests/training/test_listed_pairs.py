import numpy as np
import pytest
from helpers.pair_problems import minimum, pair_objective

from moerank.data import RankingData, make_planted
from moerank.training.masks import Masks
from moerank.training.pair_loss import DIFFERENCE, SQUARED, SQUARED_HINGE, UNIT
from moerank.training.pairs import ListedPairs

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
    W, converged = problem.solve_population(model, Masks(features, own=masks), tolerance=1e-7)
    excess = []
    for w, mask in zip(W, masks, strict=True):
        own = ListedPairs(data, mask)
        best = own.expand(own.model(SQUARED_HINGE, C).w, C, SQUARED_HINGE).value
        excess.append(own.expand(w, C, SQUARED_HINGE).value / best - 1.0)
    excess = np.array(excess)
    assert converged[sizes == len(problem)].all()
    assert (excess[converged] < 1e-5).all()
    assert (excess[~converged] > 0.1).any()
