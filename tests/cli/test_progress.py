import re

import pytest

from moerank.cli.progress import CellProgress, StageProgress, TimeLeft, in_words
from moerank.data.read.files import report_reading
from moerank.studies.solver import Solver
from moerank.studies.study import Cell


class Clock:
    """Shows the time that a test sets."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    shown = Clock()
    monkeypatch.setattr("moerank.cli.progress.monotonic", shown)
    return shown


@pytest.fixture
def cells(tiny_problem):
    return [Cell(tiny_problem, fold, Solver(name=name), 0) for name in ("rankrls", "mofsrank") for fold in (1, 2, 3)]


COSTS = {"rankrls": 3.0, "mofsrank": 60.0}


def cost(cell):
    return COSTS[cell.solver.name]


def test_a_line_a_cell_with_what_is_left(cells, clock, capsys):
    """One cell of each solver is there; two processes work on the others."""
    states = {cell: "finished" if cell.fold == 1 else "open" for cell in cells}
    with CellProgress(states, cost) as progress:
        for cell in (cells[0], cells[3]):
            progress(cell, True)
        for cell, now, succeeded in (
            (cells[4], 1030.0, True),
            (cells[1], 1031.5, True),
            (cells[2], 1031.5, False),
            (cells[5], 1061.5, True),
        ):
            clock.now = now
            progress(cell, succeeded)
    assert capsys.readouterr().err.splitlines() == [
        "2 of 6 cells are done already",
        "3/6 tiny, fold 2, mofsrank, seed 0 (30.0 s, about 30 s left)",  # 66 of work left, 60 done in 30 s
        "4/6 tiny, fold 2, rankrls (31.5 s, about 30 s left)",
        "5/6 tiny, fold 3, rankrls: failed (31.5 s, about 30 s left)",
        "6/6 tiny, fold 3, mofsrank, seed 0 (61.5 s)",
    ]


def test_a_study_that_is_done_reads_no_result(cells, capsys):
    states = {cell: "failed" if cell.fold == 3 else "finished" for cell in cells}
    with CellProgress(states, None) as progress:
        for cell, state in states.items():
            progress(cell, state == "finished")
    assert capsys.readouterr().err.splitlines() == ["6 of 6 cells are done already, 2 of them failed"]


def test_on_a_terminal_a_bar_counts_the_estimate_down(cells, clock, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "110")
    with CellProgress(dict.fromkeys(cells, "open"), cost) as progress:
        progress._bars.live.auto_refresh = False
        clock.now += 100.0
        progress(cells[3], True)
        assert progress._words_left() == "about 8 min left"  # 60 done, 2 · 60 + 3 · 60 for what nobody measured
        clock.now += 400.0
        assert progress._words_left() == "about 2 min left"
        clock.now += 200.0
        assert progress._words_left() == ""  # it was too short, and says nothing any more
        for cell in (*cells[:3], *cells[4:]):
            progress(cell, True)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert "6/6" in shown.splitlines()[-1]
    assert "left" not in shown.splitlines()[-1]


def test_a_file_that_takes_long_to_read_is_a_stage(tmp_path, clock, capsys):
    with StageProgress() as progress:
        for path, step in ((tmp_path / "short.txt", 0.5), (tmp_path / "long.txt", 2.5)):
            for share in (0.0, 0.5, 1.0):
                report_reading(path, share)
                clock.now += step
        progress("feature_selection", 1.0, "generation 3")
    report_reading(tmp_path / "other.txt", 1.0)
    said = capsys.readouterr().err.splitlines()
    assert said == ["reading long.txt: 100% (7.5 s)", "feature selection: generation 3 (0.0 s)"]


def test_without_a_terminal_a_line_a_minute_tells_the_share_and_the_time_left(clock, capsys):
    with StageProgress() as progress:
        for generation in range(1, 11):
            clock.now += 25.0
            progress("feature_selection", generation / 10, f"generation {generation}")
    assert capsys.readouterr().err.splitlines() == [
        "feature selection: generation 4, 40% (75.0 s, about 2 min left)",
        "feature selection: generation 7, 70% (150.0 s, about 60 s left)",
        "feature selection: generation 10 (225.0 s)",
    ]


@pytest.fixture
def cells_of(tiny_problem):
    """Cells of a solver on a problem."""

    def make(solver, n_cells=1, problem="tiny"):
        named = tiny_problem.model_copy(update={"name": problem})
        return [Cell(named, 1, Solver(name=solver), seed) for seed in range(n_cells)]

    return make


def test_what_was_there_is_no_speed_but_tells_what_cells_cost(cells_of):
    quick, slow = cells_of("rankrls", 3), cells_of("mofsrank", 2)
    left = TimeLeft([*quick, slow[1]])
    left.measured(slow[0], 500.0)
    assert left.seconds(9.0) is None
    left.done(quick[0], 2.0)
    assert left.seconds(4.0) == pytest.approx((2 * 2.0 + 500.0) * 4.0 / 2.0)


def test_a_solver_that_is_not_measured_counts_as_the_mean_of_its_problem(cells_of):
    known, other = cells_of("rankrls", 2) + cells_of("fsmrank", 1), cells_of("rankrls", 1, "large")
    left = TimeLeft([*known, *cells_of("mofsrank", 2), *other])
    left.done(known[0], 10.0)
    left.done(known[1], 20.0)  # mean of the solver: 15
    left.done(known[2], 45.0)
    left.done(other[0], 1000.0)
    assert left.seconds(1075.0) == pytest.approx(2 * (15.0 + 45.0) / 2)
    unknown = TimeLeft([*cells_of("rankrls", 1), *cells_of("rankrls", 1, "large")])
    unknown.done(cells_of("rankrls")[0], 7.0)
    assert unknown.seconds(7.0) == pytest.approx(7.0)


def test_a_cell_that_failed_is_not_left(cells_of):
    some = cells_of("rankrls", 3)
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
