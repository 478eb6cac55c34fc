"""The line search against scipy on explicit pairs."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from moerank.data import RankingData
from moerank.kernels.line_search import hinge_line_search, sort_by_label


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    sizes = [1, 30, 2, 45, 17, 3, 60]
    y = rng.integers(0, 4, sum(sizes))
    y[-3:] = 9  # levels need not be neighbours
    y[31:33] = 1  # a query without a pair
    return RankingData(rng.normal(size=(len(y), 2)), y, np.repeat(np.arange(len(sizes)), sizes))


def search(data, scores, change, slope=0.0, curvature=0.0, start=0.0, longest=1.0):
    """The kernel's answer, its residuals back in the rows of the data, and φ on explicit pairs."""
    rows, runs = sort_by_label(data.y, data.offsets)
    sums = np.full(len(rows), np.nan)
    arguments = scores[rows], change[rows], slope, curvature, start, longest, sums
    step, value = hinge_line_search(runs, *arguments)
    residual = np.zeros(len(scores))
    residual[rows] = sums

    def slack(t):
        z = scores + t * change
        return np.maximum(0.0, 1.0 - (z[data.pairs.better] - z[data.pairs.worse]))

    def phi(t):
        return np.sum(slack(t) ** 2) + slope * t + 0.5 * curvature * t * t

    return step, value, residual, phi, slack


def test_runs_hold_every_pair_once(data):
    rows, runs = sort_by_label(data.y, data.offsets)
    pairs = [(rows[i], rows[j]) for _, begin, end, last in runs for i in range(begin, end) for j in range(end, last)]
    assert sorted(pairs) == sorted(zip(data.pairs.better, data.pairs.worse, strict=True))
    better = [
        (rows[i], rows[j]) for query, begin, end, _ in runs for j in range(begin, end) for i in range(query, begin)
    ]
    assert sorted(better) == sorted(pairs)
    assert len(rows) < data.n_documents


@pytest.mark.parametrize("start", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_the_minimum_on_a_segment_is_the_one_that_scipy_finds(data, scale, start):
    rng = np.random.default_rng(3)
    for _ in range(20):
        scores, change = scale * rng.normal(size=(2, data.n_documents))
        step, value, _, phi, _ = search(data, scores, change, start=start)
        found = minimize_scalar(phi, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12})
        assert value == pytest.approx(phi(step), rel=1e-12)
        assert value <= min(found.fun, phi(0.0), phi(1.0)) * (1.0 + 1e-12)


def test_the_minimum_with_a_regulariser_and_no_end(data):
    rng = np.random.default_rng(4)
    for slope in (-200.0, 0.0, 300.0):
        scores, change = rng.normal(size=(2, data.n_documents))
        step, value, _, phi, _ = search(data, scores, change, slope, 40.0, 0.5, np.inf)
        found = minimize_scalar(phi, bounds=(0.0, 100.0), method="bounded", options={"xatol": 1e-12})
        assert value <= min(found.fun, phi(0.0)) * (1.0 + 1e-12)
        assert value == pytest.approx(phi(step), rel=1e-12)


def test_pieces_without_curvature_are_crossed():
    data = RankingData(np.zeros((4, 1)), [1, 0, 1, 0], [0, 0, 1, 1])
    # From t = 1/2 on the pair that the direction moves is met, and only one that it leaves alone remains.
    step, value, _, phi, _ = search(data, np.zeros(4), np.array([2.0, 0.0, 0.0, 0.0]), start=0.9)
    assert step >= 0.5
    assert value == phi(step) == 1.0
    # No pair is active before t = 80/9; then −1 + 2 · 0.9 (0.9 t − 8) rises to 0.
    scores, change = np.array([9.0, 0.0, 5.0, 0.0]), np.array([-0.9, 0.0, 0.0, 0.0])
    step, _, _, _, _ = search(data, scores, change, slope=-1.0, longest=np.inf)
    assert step == pytest.approx((8.0 + 1.0 / 1.8) / 0.9, rel=1e-12)


def test_residuals_are_those_of_the_pairs_at_the_step(data):
    rng = np.random.default_rng(5)
    scores, change = rng.normal(size=(2, data.n_documents))
    step, _, residual, _, slack = search(data, scores, change)
    expected = np.zeros(data.n_documents)
    np.add.at(expected, data.pairs.better, slack(step))
    np.add.at(expected, data.pairs.worse, -slack(step))
    np.testing.assert_allclose(residual, expected, atol=1e-11)
    assert 0.0 < step < 1.0
    assert residual @ change == pytest.approx(0.0, abs=1e-9 * np.abs(residual * change).sum())


def test_an_ascent_direction_gives_no_step_and_a_descent_direction_the_longest(data):
    up = np.where(data.y > 0, -1.0, 0.0) - data.y
    step, value, _, phi, _ = search(data, np.zeros(data.n_documents), up, start=0.7)
    assert step == 0.0
    assert value == phi(0.0)
    step, _, _, _, _ = search(data, np.zeros(data.n_documents), -1e-3 * up, start=0.2)
    assert step == 1.0
