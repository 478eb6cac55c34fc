import pytest

from moerank.cli.progress import TimeLeft, in_words
from moerank.studies.grid import Cell
from moerank.studies.solver import Solver


@pytest.fixture
def cells(tiny_problem):
    """Cells of a solver on a problem."""

    def make(solver, n_cells=1, problem="tiny"):
        named = tiny_problem.model_copy(update={"name": problem})
        return [Cell(named, 1, Solver(name=solver), seed) for seed in range(n_cells)]

    return make


def test_what_was_there_is_no_speed_but_tells_what_cells_cost(cells):
    quick, slow = cells("rankrls", 3), cells("mofsrank", 2)
    left = TimeLeft([*quick, slow[1]])
    left.measured(slow[0], 500.0)
    assert left.seconds(9.0) is None
    left.done(quick[0], 2.0)
    assert left.seconds(4.0) == pytest.approx((2 * 2.0 + 500.0) * 4.0 / 2.0)


def test_a_solver_that_is_not_measured_counts_as_the_mean_of_its_problem(cells):
    known, other = cells("rankrls", 2) + cells("fsmrank", 1), cells("rankrls", 1, "large")
    left = TimeLeft([*known, *cells("mofsrank", 2), *other])
    left.done(known[0], 10.0)
    left.done(known[1], 20.0)  # mean of the solver: 15
    left.done(known[2], 45.0)
    left.done(other[0], 1000.0)
    assert left.seconds(1075.0) == pytest.approx(2 * (15.0 + 45.0) / 2)
    unknown = TimeLeft([*cells("rankrls", 1), *cells("rankrls", 1, "large")])
    unknown.done(cells("rankrls")[0], 7.0)
    assert unknown.seconds(7.0) == pytest.approx(7.0)


def test_a_cell_that_failed_is_not_left(cells):
    some = cells("rankrls", 3)
    left = TimeLeft(some)
    left.done(some[0], 5.0)
    left.done(some[1], None)
    assert left.seconds(10.0) == pytest.approx(10.0)
    left.done(some[2], 5.0)
    assert left.seconds(15.0) == 0.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s"),
        (6.4, "6 s"),
        (44.0, "40 s"),
        (89.0, "90 s"),
        (91.0, "2 min"),
        (5399.0, "90 min"),
        (5400.0, "1.5 h"),
        (50_000.0, "14 h"),
        (130_000.0, "1.5 days"),
        (2_000_000.0, "23 days"),
    ],
)
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words
