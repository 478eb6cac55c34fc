import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from moerank.data import RankingData
from moerank.training.listed import PairProblem
from moerank.training.losses import DIFFERENCE, SQUARED, SQUARED_HINGE, UNIT, SquaredHingeLoss

LOSSES = [SQUARED, SQUARED_HINGE]
SLACKS = np.array([-3.0, -1e-3, 0.0, 1e-3, 0.5, 2.0])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.random((60, 5))
    return RankingData(
        X, np.digitize(X[:, 0] - X[:, 2] + 0.3 * rng.normal(size=60), [0.0, 0.4]), np.repeat([1, 2, 3], 20)
    )


def test_values_are_those_of_the_formulas():
    np.testing.assert_array_equal(SQUARED.value(SLACKS), SLACKS**2)
    np.testing.assert_array_equal(SQUARED_HINGE.value(SLACKS), np.maximum(0.0, SLACKS) ** 2)
    assert SQUARED.active(SLACKS).all()
    assert SQUARED_HINGE.active(SLACKS).tolist() == [False, False, False, True, True, True]


@pytest.mark.parametrize("loss", LOSSES, ids=["squared", "hinge"])
def test_residuals_are_half_the_slope(loss):
    slope = [approx_fprime(d, lambda v: loss.value(v)[0], 1e-7)[0] for d in SLACKS[:, None]]
    np.testing.assert_allclose(loss.residual(SLACKS), 0.5 * np.array(slope), atol=1e-7)


@pytest.mark.parametrize("C", [0.01, 1.0, 300.0])
@pytest.mark.parametrize("target", [UNIT, DIFFERENCE], ids=["unit", "difference"])
@pytest.mark.parametrize("loss", LOSSES, ids=["squared", "hinge"])
def test_each_loss_solves_its_problem(data, loss, target, C):
    better, worse = data.pairs.better, data.pairs.worse
    D, gap = data.X[better] - data.X[worse], data.y[better] - data.y[worse]
    t = np.ones(len(D)) if target == UNIT else gap

    def value_and_gradient(w):
        d = t - D @ w
        return 0.5 * w @ w + C * loss.value(d).mean(), w - 2.0 * C * loss.residual(d) @ D / len(D)

    model = loss.solve(PairProblem(data, target=target), C)
    found, gradient = value_and_gradient(model.w)
    options = {"maxiter": 5000, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-12}
    best = minimize(value_and_gradient, np.zeros(5), jac=True, method="L-BFGS-B", options=options).fun
    assert found == pytest.approx(best, rel=1e-10)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-5 * np.sqrt(max(C, 1.0)))
    # The model has the Hessian of the active pairs and its minimum, but for what is left of the gradient, at w.
    active = D[loss.active(t - D @ model.w)]
    np.testing.assert_allclose(model.B, np.eye(5) + 2.0 * C / len(D) * active.T @ active, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.linalg.solve(model.B, model.rhs), model.w, rtol=1e-6)


def test_losses_of_one_kind_are_equal_and_others_are_not():
    assert SquaredHingeLoss() == SQUARED_HINGE != SQUARED
    assert len({SQUARED_HINGE: 1, SquaredHingeLoss(): 2, SQUARED: 3}) == 2
