import numpy as np
import pytest
from helpers.chance import plausible
from helpers.populations import crowded, peeled

from moerank.evolution.bit_search import crowding_distances, front_numbers, select_by_crowding, standings, tournament


@pytest.fixture(params=[1, 2, 3])
def points(request):
    """Points on a coarse grid, so that many share a coordinate, and some are equal."""
    return np.random.default_rng(request.param).integers(0, 9, (80, request.param)) / 8


def test_fronts_are_what_is_left_when_the_better_ones_are_taken_away(points):
    np.testing.assert_array_equal(front_numbers(points), peeled(points))


def test_crowding_is_that_of_each_front_by_itself(points):
    distinct = np.unique(points, axis=0)  # of equal points any may be called the first
    front = peeled(distinct)
    np.testing.assert_allclose(crowding_distances(distinct, front), crowded(distinct, front), rtol=1e-12)


def test_an_objective_that_does_not_vary_adds_nothing():
    F = np.array([[1.0, 3], [1, 5], [1, 4], [1, 9]])
    np.testing.assert_allclose(crowding_distances(F, np.zeros(4, int))[2], 2 / 6)


@pytest.mark.parametrize("n", [1, 7, 33, 80, 200])
def test_whole_fronts_survive_and_of_the_last_the_least_crowded(points, n):
    points = np.unique(points, axis=0)
    front = peeled(points)
    distance = crowded(points, front)
    kept, standing = select_by_crowding(points, n)
    assert len(kept) == min(n, len(points))
    assert (np.diff(kept) > 0).all()
    out = np.setdiff1d(np.arange(len(points)), kept)
    for gone in out:
        assert front[gone] >= front[kept].max()
        same = kept[front[kept] == front[gone]]
        assert (distance[same] >= distance[gone] - 1e-12).all()
    for i, j in zip(range(len(kept)), range(1, len(kept)), strict=False):
        a, b = (front[kept[i]], -distance[kept[i]].round(9)), (front[kept[j]], -distance[kept[j]].round(9))
        assert (standing[i] < standing[j]) == (a < b) or a == b


def test_equals_share_a_standing():
    front, crowding = np.array([0, 0, 1, 1, 0]), np.array([1.0, np.inf, 2.0, 2.0, np.inf])
    assert standings(front, crowding).tolist() == [1, 0, 2, 2, 0]


def test_the_better_of_two_wins_and_ties_are_fair():
    winners = tournament(np.array([5, 2, 5]), 30_000, np.random.default_rng(4))
    assert plausible(np.bincount(winners), [2 / 9, 5 / 9, 2 / 9])
