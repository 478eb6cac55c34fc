import numpy as np
import pytest
from helpers.pair_problems import differences
from scipy.optimize import minimize

from moerank.selectors.sparse_rankers import FenchelRank

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some end early on purpose


@pytest.fixture(scope="module")
def data(three_relevant):
    return three_relevant


def objective(D, w):
    return np.mean(np.maximum(0.0, 1.0 - D @ w) ** 2)


def minimum(D, r):
    """The least objective with ‖w‖₁ ≤ r, by scipy's SLSQP on the split variables."""
    n = D.shape[1]

    def function(v):
        slack = np.maximum(0.0, 1.0 - D @ (v[:n] - v[n:]))
        gradient = -2.0 * D.T @ slack / len(D)
        return np.mean(slack**2), np.concatenate([gradient, -gradient])

    ball = {"type": "ineq", "fun": lambda v: r - v.sum(), "jac": lambda v: -np.ones(2 * n)}
    options = {"ftol": 1e-14, "maxiter": 1000}
    return minimize(
        function, np.zeros(2 * n), jac=True, bounds=[(0, None)] * 2 * n, constraints=ball, options=options
    ).fun


@pytest.mark.parametrize("r", [0.25, 1.0, 3.0, 10.0])
def test_objective_comes_within_the_gap_of_the_minimum_that_scipy_finds(data, r):
    D = differences(data)
    best = minimum(D, r)
    for tol in (1e-1, 1e-2, 1e-3, 1e-4):
        solver = FenchelRank(r, tol=tol, max_iter=100_000).fit(data.X, data.y, qid=data.qid)
        reached = objective(D, solver.coef_)
        assert solver.objective_ == pytest.approx(reached, rel=1e-10)
        assert -1e-12 <= solver.gap_ <= tol
        assert best - 1e-9 <= reached <= best + solver.gap_ + 1e-9
        assert np.abs(solver.coef_).sum() <= r * (1.0 + 1e-12)


def test_the_gap_is_that_of_the_definition(data):
    D = differences(data)
    solver = FenchelRank(2.0, tol=0.0, max_iter=7).fit(data.X, data.y, qid=data.qid)
    w = solver.coef_
    gradient = -2.0 / len(D) * D.T @ np.maximum(0.0, 1.0 - D @ w)
    assert solver.n_iter_ == 7
    assert solver.gap_ == pytest.approx(gradient @ w + 2.0 * np.abs(gradient).max(), rel=1e-9)


def test_iterates_are_those_of_the_listing(data):
    """A plain restatement in the paper's variables, in the unit ball, by sorted breakpoints."""
    D, r = differences(data), 4.0
    w, s = np.zeros(D.shape[1]), np.zeros(len(D))
    for step in range(1, 16):
        d = 2.0 * r**2 / len(D) * np.maximum(0.0, 1.0 / r - s)
        c = D.T @ d
        j = np.argmax(np.abs(c))
        v = np.zeros(len(w))
        v[j] = np.sign(c[j])
        change = D @ v - s
        with np.errstate(divide="ignore", invalid="ignore"):
            breakpoints = (1.0 / r - s) / change
        edges = np.concatenate([[0.0], np.sort(breakpoints[(breakpoints > 0) & (breakpoints < 1)]), [1.0]])
        slopes = np.array([-change @ np.maximum(0.0, 1.0 / r - s - t * change) for t in edges])
        k = int(np.argmax(slopes >= 0))  # the slope is linear between the edges
        assert slopes[k] >= 0
        eta = edges[k - 1] - slopes[k - 1] * (edges[k] - edges[k - 1]) / (slopes[k] - slopes[k - 1])
        w, s = (1.0 - eta) * w + eta * v, s + eta * change
        solver = FenchelRank(r, tol=0.0, max_iter=step).fit(data.X, data.y, qid=data.qid)
        np.testing.assert_allclose(solver.coef_, r * w, rtol=1e-6, atol=1e-9)
        assert solver.objective_ == pytest.approx(r**2 * np.mean(np.maximum(0.0, 1.0 / r - s) ** 2), rel=1e-9)


def test_a_minimum_at_a_vertex_ends_with_gap_zero():
    X = np.array([[0.0, 0.3], [0.5, 0.3], [1.0, 0.2], [0.2, 0.3]])
    solver = FenchelRank(0.5, tol=0.0).fit(X, [0, 1, 2, 0], qid=0)
    assert solver.coef_.tolist() == [0.5, 0.0]
    assert solver.gap_ == 0.0
    assert solver.n_iter_ == 1
