import numpy as np
import pytest
from helpers.pair_problems import differences
from scipy.integrate import quad
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from moerank.data import RankingData
from moerank.selectors import sparse_rankers
from moerank.selectors.sparse_rankers import FenchelRank, NonconvexRanker

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


PENALTIES = ("lp", "log", "mcp")


@pytest.fixture
def tight(monkeypatch):
    """Solve the weighted ℓ₁ problems to the last digits."""
    monkeypatch.setattr(sparse_rankers, "INNER_TOL", 1e-15)
    monkeypatch.setattr(sparse_rankers, "INNER_STEPS", 50_000)


def weighted_minimum(data, cost, C):
    """Minimum and minimiser of Σ costₖ |wₖ| + (C / n_pairs) Σ hinge² by scipy on explicit differences."""
    D = differences(data)
    D = np.hstack([D, -D])

    def function(v):
        slack = np.maximum(0.0, 1.0 - D @ v)
        return C * np.mean(slack**2) + np.tile(cost, 2) @ v, -2.0 * C * D.T @ slack / len(D) + np.tile(cost, 2)

    options = {"maxiter": 20_000, "maxfun": 50_000, "maxcor": 50, "ftol": 1e-16, "gtol": 1e-10}
    bounds = [(0, None)] * D.shape[1]
    result = minimize(function, np.zeros(D.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return result.fun, result.x[: D.shape[1] // 2] - result.x[D.shape[1] // 2 :]


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(("lam", "C"), [(2e-2, 1.0), (3e-3, 2.0)])
def test_the_solution_minimises_the_weighted_problem_of_its_own_costs(data, tight, penalty, lam, C):
    """A fixed point of the scheme, and so a stationary point of the objective."""
    ranker = NonconvexRanker(penalty, lam, C, max_iter=200, tol=1e-7).fit(data.X, data.y, qid=data.qid)
    assert 1 < ranker.n_iter_ < 200
    w = ranker.coef_
    cost = ranker.costs(np.abs(w))
    best, _ = weighted_minimum(data, cost, C)
    assert C * objective(differences(data), w) + cost @ np.abs(w) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("lam", [1.0, 0.1, 0.01, 1e-3])
def test_the_objective_never_rises(data, penalty, lam):
    ranker = NonconvexRanker(penalty, lam, tol=0.0).fit(data.X, data.y, qid=data.qid)
    assert (np.diff(ranker.objectives_) <= 0).all()
    expected = objective(differences(data), ranker.coef_) + ranker.penalties(np.abs(ranker.coef_)).sum()
    assert ranker.objectives_[-1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_penalties_are_the_integrals_of_their_costs_and_lie_below_their_tangents(penalty):
    ranker = NonconvexRanker(penalty, lam=0.3, p=0.4, gamma=1.7, eps=0.05)
    u = np.linspace(0.0, 2.0, 41)
    h = ranker.penalties(u)
    assert h[0] == 0.0
    assert (np.diff(h) >= 0).all()
    for end in (0.2, 0.51, 1.3):
        kink = [0.3 * 1.7]
        integral, _ = quad(lambda x: ranker.costs(np.array([x]))[0], 0.0, end, points=kink, epsabs=1e-12)
        assert ranker.penalties(np.array([end]))[0] == pytest.approx(integral, rel=1e-9)
    tangents = h[:, None] + ranker.costs(u)[:, None] * (u[None, :] - u[:, None])
    assert (h[None, :] <= tangents + 1e-12).all()


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("lam", [0.01, 0.05, 0.2])
def test_one_feature_ends_at_a_local_minimum_of_brute_force(tight, penalty, lam):
    rng = np.random.default_rng(1)
    x = rng.random(40)
    data = RankingData(x[:, None], np.digitize(x + 0.3 * rng.normal(size=40), [0.4, 0.7]), 0)
    ranker = NonconvexRanker(penalty, lam, max_iter=500, tol=1e-9).fit(data)
    w = ranker.coef_[0]
    near = w + np.linspace(-0.05, 0.05, 1001)
    values = [objective(differences(data), np.array([t])) + ranker.penalties(np.array([abs(t)]))[0] for t in near]
    assert values[500] <= min(values) + 1e-9


def test_the_last_of_too_few_problems_is_told(data):
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=2 weighted .* raise max_iter, tol"):
        NonconvexRanker("log", max_iter=2, tol=1e-9).fit(data)
