from itertools import permutations

import numpy as np
import pytest
from helpers.pair_problems import differences
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from moerank.data import RankingData
from moerank.metrics import MAP
from moerank.rankers import SVMMAP, RankSVMStruct
from moerank.rankers.structural_svm import CuttingPlanes


def explicit_objective(w, data, C):
    return 0.5 * w @ w + C / data.n_queries * np.maximum(0.0, 1.0 - differences(data) @ w).sum()


@pytest.mark.parametrize("C", [1e-4, 0.003, 0.1])
def test_objective_equals_linear_svc_on_explicit_pairs(noisy_data, C):
    D = differences(noisy_data)
    sign = np.random.default_rng(0).choice([-1.0, 1.0], len(D))  # two classes: turn half of the pairs round
    svc = LinearSVC(loss="hinge", C=C / noisy_data.n_queries, fit_intercept=False, tol=1e-9, max_iter=10**6)
    reference = svc.fit(D * sign[:, None], sign).coef_[0]
    ranker = RankSVMStruct(C=C, eps=1e-7).fit(noisy_data)
    best = explicit_objective(reference, noisy_data, C)
    assert explicit_objective(ranker.coef_, noisy_data, C) == pytest.approx(best, rel=1e-6)
    default = RankSVMStruct(C=C).fit(noisy_data)
    assert explicit_objective(default.coef_, noisy_data, C) == pytest.approx(best, rel=1e-5)


def test_tuning_on_shared_planes_chooses_what_single_fits_choose(noisy_data):
    rng = np.random.default_rng(3)
    validation = RankingData(
        noisy_data.X + rng.normal(scale=0.1, size=noisy_data.X.shape), noisy_data.y, noisy_data.qid
    )
    grid = [{"C": C} for C in (10.0, 1e-6, 1e-3, 0.1)]
    single = [RankSVMStruct(**entry).fit(noisy_data).predict(validation.X) for entry in grid]
    best = int(np.argmax([MAP().score(validation, scores) for scores in single]))
    assert grid[best]["C"] == RankSVMStruct().tune(noisy_data, validation, grid).C
    scores = RankSVMStruct()._candidate_scores(noisy_data, validation, [RankSVMStruct(**entry) for entry in grid])
    np.testing.assert_allclose(scores.T, single, atol=0.05)


@pytest.fixture(scope="module")
def small_data():
    """Four queries of four or five documents, one of them without an irrelevant document."""
    rng = np.random.default_rng(0)
    sizes = [5, 4, 3, 5]
    y = np.array([0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0])
    X = rng.random((17, 3)) + 0.3 * y[:, None] * rng.random(3)
    return RankingData(X, y, np.repeat(np.arange(4), sizes))


def all_constraints(data):
    """For each query with both kinds, the rows wᵀδ ≥ Δ − ξ of all its rankings."""
    queries = []
    for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        X, relevant = data.X[begin:end], data.y[begin:end] > 0
        if relevant.all() or not relevant.any():
            continue
        D = X[relevant][:, None, :] - X[~relevant][None, :, :]
        rows = []
        for order in permutations(range(len(X))):
            rank = np.argsort(order)
            wrong = rank[relevant][:, None] > rank[~relevant][None, :]
            hits = relevant[list(order)]
            loss = 1.0 - np.mean((hits.cumsum() / np.arange(1, len(hits) + 1))[hits])
            rows.append(np.append(2.0 * D[wrong].sum(axis=0) / wrong.size, loss))
        queries.append(np.unique(np.array(rows).round(13), axis=0))
    return queries


def objective_of_rankings(w, queries, C):
    return 0.5 * w @ w + C * np.mean([(rows[:, -1] - rows[:, :-1] @ w).max() for rows in queries])


@pytest.mark.parametrize("C", [0.3, 5.0, 100.0])
def test_minimum_is_that_of_the_problem_with_all_rankings_and_a_slack_for_each_query(small_data, C):
    queries = all_constraints(small_data)
    assert len(queries) == 3
    n = small_data.n_features
    blocks = [np.hstack([rows[:, :-1], np.tile(np.eye(3)[q], (len(rows), 1))]) for q, rows in enumerate(queries)]
    A, b = np.vstack(blocks), np.concatenate([rows[:, -1] for rows in queries])
    result = minimize(
        lambda v: 0.5 * v[:n] @ v[:n] + C * v[n:].mean(),
        np.append(np.zeros(n), np.ones(3)),
        jac=lambda v: np.append(v[:n], np.full(3, C / 3)),
        constraints=[{"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A}],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert result.status in (0, 8)  # 8: rounding allows no further decrease
    ranker = SVMMAP(C=C, eps=1e-9).fit(small_data)
    value = objective_of_rankings(ranker.coef_, queries, C)
    assert value == pytest.approx(objective_of_rankings(result.x[:n], queries, C), rel=1e-7)
    assert ranker.gap_ <= C * 1e-9
    rough = SVMMAP(C=C, eps=0.05).fit(small_data)
    assert -1e-9 <= objective_of_rankings(rough.coef_, queries, C) - value <= rough.gap_ + 1e-9 <= C * 0.05 + 1e-9


def test_grades_above_zero_make_no_difference(noisy_data):
    binary = RankingData(noisy_data.X, noisy_data.y > 0, noisy_data.qid)
    np.testing.assert_array_equal(SVMMAP().fit(noisy_data).coef_, SVMMAP().fit(binary).coef_)


def planes_of(A, b):
    """Cutting planes of a risk that is the maximum of finitely many, all of them known."""

    def separate(w):
        slack = b - A @ w
        worst = int(slack.argmax())
        return A[worst], b[worst]

    return CuttingPlanes(separate, A.shape[1])


def objective(w, A, b, C):
    return 0.5 * w @ w + C * max(0.0, (b - A @ w).max())


@pytest.mark.parametrize("eps", [1.0, 0.1, 1e-3, 1e-6])
def test_the_gap_bounds_the_error_and_is_at_most_c_times_eps(eps):
    rng = np.random.default_rng(2)
    A, b, C = rng.normal(size=(500, 8)), rng.normal(size=500), 20.0
    planes = planes_of(A, b)
    w = planes.minimise(C, eps, max_iter=1000)
    best = planes_of(A, b).minimise(C, 1e-11, max_iter=1000)
    error = objective(w, A, b, C) - objective(best, A, b, C)
    assert -1e-9 <= error <= planes.gap_ + 1e-9
    assert planes.gap_ <= C * eps


@pytest.mark.parametrize("large", [1e8, 1e25])
def test_slopes_that_double_precision_cannot_balance_end_soon_and_say_so(large):
    rng = np.random.default_rng(6)
    A, b = rng.normal(size=(200, 4)) * [1e-8, 1.0, 1e4, large], 1.0 + rng.random(200)
    planes = planes_of(A, b)
    w = planes.minimise(10.0, 1e-3, max_iter=5000)
    assert not planes.converged_
    assert planes.n_iter_ < 100
    assert np.isfinite(w).all()
    assert objective(w, A, b, 10.0) <= objective(np.zeros(4), A, b, 10.0)
    assert planes.gap_ >= 0.0
    easy = planes_of(A / [1e-8, 1.0, 1e4, large], b)
    easy.minimise(10.0, 1e-3, max_iter=5000)
    assert easy.converged_


def test_planes_without_a_slope_leave_the_weights_at_0():
    A, b = np.full((3, 2), 5e-320), np.array([1.0, 3.0, 2.0])
    planes = planes_of(A, b)
    assert planes.minimise(1.0, 1e-3, max_iter=50).tolist() == [0.0, 0.0]
    assert planes.converged_
