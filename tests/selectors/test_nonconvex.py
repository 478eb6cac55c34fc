import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from moerank.data import RankingData
from moerank.selectors import sparse_rankers
from moerank.selectors.sparse_rankers import NonconvexRanker

PENALTIES = ("lp", "log", "mcp")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some end early on purpose


@pytest.fixture(scope="module")
def data(three_relevant):
    return three_relevant


@pytest.fixture
def tight(monkeypatch):
    """Solve the weighted ℓ₁ problems to the last digits."""
    monkeypatch.setattr(sparse_rankers, "INNER_TOL", 1e-15)
    monkeypatch.setattr(sparse_rankers, "INNER_STEPS", 50_000)


def weighted_minimum(data, cost, C):
    """Minimum and minimiser of Σ costₖ |wₖ| + (C / n_pairs) Σ hinge² by scipy on explicit differences."""
    D = data.X[data.pairs.better] - data.X[data.pairs.worse]
    D = np.hstack([D, -D])

    def function(v):
        slack = np.maximum(0.0, 1.0 - D @ v)
        return C * np.mean(slack**2) + np.tile(cost, 2) @ v, -2.0 * C * D.T @ slack / len(D) + np.tile(cost, 2)

    options = {"maxiter": 20_000, "maxfun": 50_000, "maxcor": 50, "ftol": 1e-16, "gtol": 1e-10}
    bounds = [(0, None)] * D.shape[1]
    result = minimize(function, np.zeros(D.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return result.fun, result.x[: D.shape[1] // 2] - result.x[D.shape[1] // 2 :]


def loss(data, w):
    return np.mean(np.maximum(0.0, 1.0 - (data.X[data.pairs.better] - data.X[data.pairs.worse]) @ w) ** 2)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(("lam", "C"), [(2e-2, 1.0), (3e-3, 2.0)])
def test_the_solution_minimises_the_weighted_problem_of_its_own_costs(data, tight, penalty, lam, C):
    """A fixed point of the scheme, and so a stationary point of the objective."""
    ranker = NonconvexRanker(penalty, lam, C, max_iter=200, tol=1e-7).fit(data.X, data.y, qid=data.qid)
    assert 1 < ranker.n_iter_ < 200
    w = ranker.coef_
    cost = ranker.costs(np.abs(w))
    best, _ = weighted_minimum(data, cost, C)
    assert C * loss(data, w) + cost @ np.abs(w) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("lam", [1.0, 0.1, 0.01, 1e-3])
def test_the_objective_never_rises(data, penalty, lam):
    ranker = NonconvexRanker(penalty, lam, tol=0.0).fit(data.X, data.y, qid=data.qid)
    assert (np.diff(ranker.objectives_) <= 0).all()
    expected = loss(data, ranker.coef_) + ranker.penalties(np.abs(ranker.coef_)).sum()
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
    values = [loss(data, np.array([t])) + ranker.penalties(np.array([abs(t)]))[0] for t in near]
    assert values[500] <= min(values) + 1e-9


def test_the_last_of_too_few_problems_is_told(data):
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=2 weighted .* raise max_iter, tol"):
        NonconvexRanker("log", max_iter=2, tol=1e-9).fit(data)
