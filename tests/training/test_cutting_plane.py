import numpy as np
import pytest

from moerank.rankers.structural_svm import CuttingPlanes


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
