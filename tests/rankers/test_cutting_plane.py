from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from moerank.rankers import cutting_plane as module
from moerank.rankers.cutting_plane import cutting_plane, largest_on_simplex


def largest_by_enumeration(H, b, total):
    """The maximum of bᵀα − ½ αᵀHα on the simplex: the best stationary point on any of its faces."""
    best = -np.inf
    for size in range(1, len(b) + 1):
        for face in map(list, combinations(range(len(b)), size)):
            system = np.block([[H[np.ix_(face, face)], np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            alpha = np.linalg.lstsq(system, np.append(b[face], total), rcond=None)[0][:size]
            if (alpha >= 0).all() and np.isclose(alpha.sum(), total, rtol=1e-9):
                best = max(best, b[face] @ alpha - 0.5 * alpha @ H[np.ix_(face, face)] @ alpha)
    return best


@pytest.mark.parametrize("kind", ["general", "low rank", "duplicates", "integers"])
@pytest.mark.parametrize("seed", range(12))
def test_quadratic_programme_finds_what_enumerating_the_faces_finds(kind, seed):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(6, 2 if kind == "low rank" else 8)), rng.normal(size=6)
    if kind == "duplicates":
        A[3:] = A[:3]
    if kind == "integers":
        A, b = np.round(A), np.round(b)
    total = 10.0 ** rng.uniform(-2, 3)
    H = A @ A.T
    start = np.zeros(6)
    start[rng.integers(6)] = total
    alpha = largest_on_simplex(H, b, start)
    assert (alpha >= 0).all()
    assert alpha.sum() == pytest.approx(total, rel=1e-12)
    best = largest_by_enumeration(H, b, total)
    scale = np.abs(b).max() * total + np.abs(H).max() * total**2
    assert b @ alpha - 0.5 * alpha @ H @ alpha == pytest.approx(best, abs=1e-12 * scale)


def test_quadratic_programme_with_many_entries_satisfies_the_optimality_conditions():
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(300, 20)), rng.normal(size=300)
    A[150:] = A[:150] + 1e-9 * rng.normal(size=(150, 20))
    H, start = A @ A.T, 60.0 * np.eye(300)[7]
    alpha = largest_on_simplex(H, b, start)
    slope = b - H @ alpha
    assert slope.max() - slope[alpha > 0].min() <= 1e-10 * np.abs(H).max() * alpha.sum()
    assert np.count_nonzero(alpha) <= 22


def test_quadratic_programme_without_curvature_takes_the_largest_entry():
    alpha = largest_on_simplex(np.zeros((3, 3)), np.array([1.0, 3.0, 2.0]), np.array([2.0, 0.0, 0.0]))
    np.testing.assert_array_equal(alpha, [0.0, 2.0, 0.0])


@pytest.fixture
def planes():
    rng = np.random.default_rng(2)
    return rng.normal(size=(60, 5)), rng.normal(size=60)


def most_violated(A, b):
    def ask(w):
        row = int(np.argmax(b - A @ w))
        return A[row], b[row]

    return ask


def reference(A, b, C):
    """Minimise ½ ‖w‖² + C ξ under all constraints with scipy."""
    n = A.shape[1]
    result = minimize(
        lambda v: 0.5 * v[:n] @ v[:n] + C * v[n],
        np.append(np.zeros(n), np.abs(b).max()),
        jac=lambda v: np.append(v[:n], C),
        constraints={
            "type": "ineq",
            "fun": lambda v: np.append(v[n] - b + A @ v[:n], v[n]),
            "jac": lambda v: np.vstack([np.hstack([A, np.ones((len(A), 1))]), np.eye(n + 1)[n]]),
        },
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return result.fun


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_minimum_is_that_of_all_constraints_at_once(planes, C):
    solution = cutting_plane(most_violated(*planes), 5, C, 1e-10)
    assert solution.objective == pytest.approx(reference(*planes, C), rel=1e-8, abs=1e-10)
    slack = max(0.0, (planes[1] - planes[0] @ solution.w).max())
    assert solution.objective == pytest.approx(0.5 * solution.w @ solution.w + C * slack, rel=1e-12)


@pytest.mark.parametrize("eps", [1.0, 1e-1, 1e-2, 1e-4])
def test_the_gap_is_a_bound_and_at_most_c_times_eps(planes, eps):
    best = reference(*planes, 3.0)
    solution = cutting_plane(most_violated(*planes), 5, 3.0, eps)
    assert -1e-8 <= solution.objective - best <= solution.gap + 1e-8
    assert solution.gap <= 3.0 * eps


def test_constraints_that_are_not_used_may_leave(planes, monkeypatch):
    patient = cutting_plane(most_violated(*planes), 5, 10.0, 1e-9)
    monkeypatch.setattr(module, "PATIENCE", 1)
    hasty = cutting_plane(most_violated(*planes), 5, 10.0, 1e-9)
    assert hasty.objective == pytest.approx(patient.objective, rel=1e-8)


def test_slack_is_never_negative():
    """Far from the origin every constraint is slack: w stays where the loss ends, not where it goes on falling."""
    solution = cutting_plane(lambda w: (np.array([1.0]), 1.0), 1, 100.0, 1e-9)
    assert solution.w[0] == pytest.approx(1.0, rel=1e-9)


def test_too_few_constraints_are_admitted_with_a_warning(planes):
    with pytest.warns(ConvergenceWarning, match="after 3 constraints"):
        solution = cutting_plane(most_violated(*planes), 5, 10.0, 1e-9, max_iter=3)
    assert solution.n_iter == 3
    assert solution.gap > 1e-8
