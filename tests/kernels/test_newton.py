"""Newton steps in lanes against scipy on explicit pairs.

A lane ends when its decrement gᵀB⁻¹g is small, where B is the Hessian of the common model and not its own H. So what
its objective exceeds the minimum by, ½ gᵀH⁻¹g, is bounded by the tolerance times the largest eigenvalue of H⁻¹B. With
the squared loss there is one step; its conjugate gradients end at a tenth of that bound for the objective at the start.
"""

import copy

import numpy as np
import pytest
from scipy.linalg import eigvalsh
from scipy.optimize import minimize

from moerank.data import RankingData
from moerank.kernels.lanes import lanes
from moerank.kernels.newton import newton_lanes
from moerank.kernels.pair_pass import pack_lanes

N_FEATURES = 7
PRECISIONS = {"single": (np.float32, np.uint16, 1e-7), "double": (np.float64, np.uint8, 1e-12)}
C = 8.0


class Case:
    """Documents, and the pairs and features of one vector of individuals; the last two lanes have no pairs."""

    def __init__(self, precision, hinge, difference):
        self.dtype, words, self.tolerance = PRECISIONS[precision]
        self.hinge = hinge
        rng = np.random.default_rng(21)
        n_lanes = lanes(self.dtype)
        X = rng.random((80, N_FEATURES)).astype(self.dtype)
        y = np.digitize(X[:, 0] - X[:, 3] + rng.normal(scale=0.3, size=80), [-0.2, 0.2, 0.5])
        data = RankingData(X, y, np.sort(rng.integers(0, 5, 80)))
        self.X, self.pairs = X, data.pairs
        self.mask = rng.random((n_lanes, len(data.pairs))) < rng.uniform(0.1, 0.9, (n_lanes, 1))
        self.mask[-2:] = False
        self.words = np.empty(len(data.pairs), words)
        pack_lanes(self.mask, self.words)
        self.features = rng.random((n_lanes, N_FEATURES)) < 0.6
        self.features[:, 0] = True
        self.margin = 0.0 if difference else 1.0
        self.shift = y.astype(self.dtype) if difference else np.empty(0, self.dtype)
        self.D = X[data.pairs.better].astype(float) - X[data.pairs.worse]
        self.t = (y[data.pairs.better] - y[data.pairs.worse]).astype(float) if difference else np.ones(len(self.D))
        w = self.minimum(np.ones(len(self.D), bool), np.ones(N_FEATURES, bool))[1]
        self.B = self.hessian(w, np.ones(len(self.D), bool), np.ones(N_FEATURES, bool))
        self.rhs = self.B @ w
        self.minima = [
            self.minimum(mask, features) for mask, features in zip(self.mask[:-2], self.features, strict=False)
        ]

    def slack(self, w, mask, features):
        d = (self.t - self.D[:, features] @ w)[mask]
        return np.maximum(0.0, d) if self.hinge else d

    def value_and_gradient(self, w, mask, features):
        d = self.slack(w, mask, features)
        return 0.5 * w @ w + C * np.mean(d**2), w - 2.0 * C * d @ self.D[mask][:, features] / len(d)

    def hessian(self, w, mask, features):
        D = self.D[mask][:, features]
        active = D[self.slack(w, mask, features) != 0]
        return np.eye(len(w)) + 2.0 * C / len(D) * active.T @ active

    def minimum(self, mask, features):
        options = {"maxiter": 5000, "maxcor": 30, "ftol": 1e-16, "gtol": 1e-12}
        arguments = {"args": (mask, features), "jac": True, "method": "L-BFGS-B", "options": options}
        result = minimize(self.value_and_gradient, np.zeros(features.sum()), **arguments)
        return result.fun, result.x

    def solve(self, lane_order=None, only=None, start=None):
        """Run the kernel on the lanes in another order, or with pairs for some only, and assert that all get there."""
        W, finished = self.run(lane_order, only, start)
        assert finished.all()
        return W

    def run(self, lane_order=None, only=None, start=None):
        order = np.arange(len(self.mask)) if lane_order is None else lane_order
        words, n_kept = self.words, self.mask.sum(axis=1)
        if lane_order is not None or only is not None:
            mask = self.mask[order].copy()
            if only is not None:
                mask[~np.isin(order, only)] = False
            words, n_kept = np.empty_like(words), mask.sum(axis=1)
            pack_lanes(mask, words)
        features = np.ascontiguousarray(self.features[order])
        start = np.empty((0, N_FEATURES)) if start is None else start
        no_scores = np.empty(0, self.dtype)
        model = self.B, self.rhs, start, no_scores
        loss = C, self.margin, self.shift, self.hinge
        return newton_lanes(self.X, self.pairs.groups, words, n_kept, features, *model, *loss, self.tolerance)

    def check(self, W, start=None):
        """Assert that every lane with pairs is as near its minimum as its tolerance promises."""
        for lane, w in enumerate(W[:-2]):
            mask, features = self.mask[lane], self.features[lane]
            best, exact = self.minima[lane]
            value, _ = self.value_and_gradient(w[features], mask, features)
            unlike = eigvalsh(self.B[np.ix_(features, features)], self.hessian(exact, mask, features))[-1]
            scale = best
            if start is not None and not self.hinge:
                scale = max(best, 0.1 * self.value_and_gradient(start[lane, features], mask, features)[0])
            assert best * (1.0 - 1e-12) <= value <= best + max(1.0, unlike) * self.tolerance * scale
            assert not w[~features].any()


@pytest.fixture(scope="module", params=PRECISIONS)
def precision(request):
    return request.param


@pytest.fixture(
    scope="module",
    params=[(True, False), (False, False), (False, True)],
    ids=["hinge", "squared", "squared-difference"],
)
def case(request, precision):
    return Case(precision, *request.param)


def test_each_lane_reaches_the_minimum_for_its_own_pairs_and_features(case):
    case.check(case.solve())


def test_a_far_start_leads_to_the_same_minimum(case):
    start = np.random.default_rng(22).normal(scale=10.0, size=case.features.shape)
    case.check(case.solve(start=start), start)


def test_a_start_at_the_minimum_stays_there(case):
    W = np.zeros(case.features.shape)
    for w, features, (_, exact) in zip(W, case.features, case.minima, strict=False):
        w[features] = exact
    given = W.copy()
    given[~case.features] = 99.0  # what a start says of other features does not matter
    np.testing.assert_array_equal(case.solve(start=given), W)


def test_a_lane_without_pairs_stands_idle_at_its_start(case):
    W = case.solve()
    for w, features in zip(W[-2:], case.features[-2:], strict=True):
        expected = np.linalg.solve(case.B[np.ix_(features, features)], case.rhs[features])
        np.testing.assert_allclose(w[features], expected, rtol=1e-10, atol=1e-12)
    start = np.random.default_rng(23).normal(size=case.features.shape)
    np.testing.assert_array_equal(case.solve(start=start)[-2:], np.where(case.features, start, 0.0)[-2:])


def test_an_individual_does_not_depend_on_its_company(case):
    W = case.solve()
    order = np.random.default_rng(24).permutation(len(W))
    np.testing.assert_array_equal(case.solve(lane_order=order), W[order])
    for lane in (0, 5):
        np.testing.assert_array_equal(case.solve(only=[lane])[lane], W[lane])


def test_a_lane_that_stops_at_the_bound_says_so(case):
    strict = copy.copy(case)
    strict.tolerance = 0.0  # rounding keeps every lane with pairs from it
    W, finished = strict.run()
    np.testing.assert_array_equal(finished, ~case.mask.any(axis=1))
    case.check(W)
