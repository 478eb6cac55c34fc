"""Gradient methods in lanes against scipy, and against plain numpy, on explicit pairs."""

import numpy as np
import pytest
from scipy.optimize import minimize

from moerank.data import RankingData
from moerank.kernels.lanes import lanes
from moerank.kernels.pair_pass import pack_lanes
from moerank.kernels.proximal import proximal_lanes, subgradient_lanes

LANES = lanes(np.float64)
N_FEATURES = 6
SMALL = 0.02  # the scale of feature 3, which makes the problems ill-conditioned


class Case:
    """Documents, and one vector of individuals with pairs, features and penalties of their own."""

    def __init__(self):
        rng = np.random.default_rng(31)
        self.X = rng.random((70, N_FEATURES))
        y = np.digitize(self.X[:, 0] - self.X[:, 3] + rng.normal(scale=0.3, size=70), [-0.2, 0.2, 0.5])
        self.X[:, 3] *= SMALL
        self.pairs = RankingData(self.X, y, np.sort(rng.integers(0, 5, 70))).pairs
        self.kept = rng.random((LANES, len(self.pairs))) < rng.uniform(0.1, 0.9, (LANES, 1))
        self.kept[-2], self.kept[-1] = True, False  # all pairs, and none: this lane stands idle
        self.features = rng.random((LANES, N_FEATURES)) < 0.7
        self.features[:, 0] = self.features[-2] = True
        root = rng.normal(size=(3, N_FEATURES))
        self.A = root.T @ root
        self.cost = rng.uniform(0.5, 2.0, (LANES, N_FEATURES))
        self.lambda1, self.lambda2 = 10.0 ** rng.uniform(-4, -1, (2, LANES))
        self.lambda1[-2] = self.lambda2[-2] = 1e-5  # nothing but the loss: steps without momentum would crawl here
        D = self.X[self.pairs.better] - self.X[self.pairs.worse]
        self.D, self.A2 = np.hstack([D, -D]), np.tile(self.A, (2, 2))

    def pairs_of(self, kept):
        words = np.empty(len(self.pairs), np.uint8)
        pack_lanes(kept, words)
        return self.pairs.first, self.pairs.winner, self.pairs.worse, words, kept.sum(axis=1)

    def solve(self, lane_order=None, only=None, start=None, max_iter=30_000, tol=1e-15):
        order = np.arange(LANES) if lane_order is None else lane_order
        kept = self.kept[order].copy()
        if only is not None:
            kept[~np.isin(order, only)] = False
        history = np.full((max_iter + 1, LANES), np.nan)
        start = np.zeros((LANES, 2 * N_FEATURES)) if start is None else start[order]
        lambdas = self.lambda1[order], self.lambda2[order]
        own = np.ascontiguousarray(self.features[order]), self.A, self.cost[order], *lambdas, start
        return *proximal_lanes(self.X, *self.pairs_of(kept), *own, max_iter, tol, history), history

    def value_and_gradient(self, w, lane, kept=None):
        """F of a lane at w = [u; v], and its gradient."""
        D = self.D[self.kept[lane]]
        slack = np.maximum(0.0, 1.0 - D @ w)
        cost = self.lambda2[lane] * np.tile(self.cost[lane], 2)
        similar = self.lambda1[lane] * self.A2 @ w
        return np.mean(slack**2) + 0.5 * w @ similar + cost @ w, -2.0 * D.T @ slack / len(D) + similar + cost

    def minimum(self, lane):
        """Minimum and minimiser of F; scipy gets the features at one scale."""
        scale = np.tile(np.where(np.arange(N_FEATURES) == 3, SMALL, 1.0), 2)

        def function(v):
            value, gradient = self.value_and_gradient(v / scale, lane)
            return value, gradient / scale

        bounds = [(0, None) if used else (0, 0) for used in np.tile(self.features[lane], 2)]
        options = {"maxiter": 20_000, "maxfun": 50_000, "maxcor": 50, "ftol": 0.0, "gtol": 1e-11}
        found = minimize(function, np.zeros(len(scale)), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return found.fun, found.x / scale

    def steepest(self, lane):
        """The largest eigenvalue that a Hessian of the smooth part of F can have."""
        D = self.D[self.kept[lane]]
        return np.linalg.eigvalsh(2.0 * D.T @ D / len(D) + self.lambda1[lane] * self.A2)[-1]


@pytest.fixture(scope="module")
def case():
    return Case()


@pytest.fixture(scope="module")
def solved(case):
    return case.solve()


@pytest.fixture(scope="module")
def far_start(case):
    start = np.random.default_rng(32).uniform(0.0, 5.0, (LANES, 2 * N_FEATURES))
    return np.where(np.tile(case.features, 2), start, 0.0)


@pytest.mark.parametrize("begin", ["zero", "far"])
def test_each_lane_reaches_the_minimum_that_scipy_finds(case, solved, far_start, begin):
    variables = solved[0] if begin == "zero" else case.solve(start=far_start)[0]
    assert (variables >= 0.0).all()
    assert not variables[~np.tile(case.features, 2)].any()
    assert 0 < np.count_nonzero(variables[:-1]) < variables[:-1].size / 2
    for lane in range(LANES - 1):
        best, _ = case.minimum(lane)
        assert case.value_and_gradient(variables[lane], lane)[0] == pytest.approx(best, rel=1e-8)


def test_the_history_holds_the_objective_at_the_start_and_after_each_step(case, far_start):
    _, n_iter, history = case.solve(start=far_start, tol=1e-6)
    for lane in range(LANES - 1):
        assert history[0, lane] == pytest.approx(case.value_and_gradient(far_start[lane], lane)[0], rel=1e-12)
        assert np.isfinite(history[: n_iter[lane] + 1, lane]).all()
    for steps in (1, 3, 10):
        variables, counted, cut = case.solve(start=far_start, tol=1e-6, max_iter=steps)
        np.testing.assert_array_equal(counted[:-1], steps)
        np.testing.assert_array_equal(cut[:, :-1], history[: steps + 1, :-1])
        found = [case.value_and_gradient(w, lane)[0] for lane, w in enumerate(variables[:-1])]
        np.testing.assert_allclose(cut[-1, :-1], found, rtol=1e-12)


def test_a_lane_ends_with_the_first_step_that_changes_little(case):
    _, n_iter, history = case.solve(tol=1e-5)
    assert len(set(n_iter[:-1])) > 3
    for lane in range(LANES - 1):
        values = history[: n_iter[lane] + 1, lane]
        little = np.abs(np.diff(values)) <= 1e-5 * values[:-1]
        assert np.flatnonzero(little).tolist() == [n_iter[lane] - 1]
        assert np.isnan(history[n_iter[lane] + 1 :, lane]).all()


def test_the_error_falls_as_fast_as_accelerated_steps_promise(case, solved):
    """F(wₖ) − F* ≤ 2 η L ‖w₀ − w*‖² / (k + 1)², with η = 2 the factor by which L grows, or the L of the beginning."""
    _, n_iter, history = solved
    for lane in range(LANES - 1):
        best, w = case.minimum(lane)
        L = max(2.0 * case.steepest(lane), (4.0 + 2.0 * case.lambda1[lane]) * case.features[lane].sum() / 2.0**10)
        k = np.arange(1, n_iter[lane] + 1)
        bound = 2.0 * L * w @ w / (k + 1) ** 2
        assert (history[k, lane] - best <= bound + 1e-10).all()


def test_a_lane_without_pairs_stands_idle(case, solved, far_start):
    variables, n_iter, _ = case.solve(start=far_start, tol=1e-3)
    np.testing.assert_array_equal(variables[-1], far_start[-1])
    assert n_iter[-1] == 0
    assert (n_iter[:-1] > 0).all()


def test_an_individual_does_not_depend_on_its_company(case, solved):
    order = np.random.default_rng(33).permutation(LANES)
    variables, n_iter, _ = case.solve(lane_order=order)
    np.testing.assert_array_equal(variables, solved[0][order])
    np.testing.assert_array_equal(n_iter, solved[1][order])
    for lane in (0, 4):
        np.testing.assert_array_equal(case.solve(only=[lane])[0][lane], solved[0][lane])


def subgradient(case, lane, eta0, max_iter):
    """The steps once more: the best point and the history."""
    allowed = np.tile(case.features[lane], 2)
    w, points, values = np.zeros(2 * N_FEATURES), [], []
    for t in range(1, max_iter + 2):
        value, gradient = case.value_and_gradient(w, lane)
        points.append(w)
        values.append(value)
        w = np.where(allowed, np.maximum(0.0, w - eta0 / np.sqrt(t) * gradient), 0.0)
    return points[int(np.argmin(values))], values


@pytest.mark.parametrize("max_iter", [1, 60])
def test_subgradient_steps_are_those_of_the_formula(case, max_iter):
    everybody = Case()
    everybody.kept[:] = True
    eta0 = np.geomspace(0.01, 30.0, LANES)
    history = np.empty((max_iter + 1, LANES))
    best = subgradient_lanes(
        case.X,
        *everybody.pairs_of(everybody.kept)[:3],
        case.features,
        case.A,
        case.cost,
        case.lambda1,
        case.lambda2,
        eta0,
        max_iter,
        history,
    )
    for lane in range(LANES):
        point, values = subgradient(everybody, lane, eta0[lane], max_iter)
        np.testing.assert_allclose(history[:, lane], values, rtol=1e-9)
        assert everybody.value_and_gradient(best[lane], lane)[0] == pytest.approx(history[:, lane].min(), rel=1e-12)
        np.testing.assert_allclose(best[lane], point, atol=1e-6)
    assert (np.diff(history, axis=0) > 0).any()  # some steps do rise, so that the best point counts
