import re

import pytest

from moerank.cli.progress import CellProgress, StageProgress
from moerank.studies.solver import Solver
from moerank.studies.study import Cell


class Clock:
    """Shows the time that a test sets."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("moerank.cli.progress.monotonic", clock)
    return clock


@pytest.fixture
def cells(tiny_problem):
    return [Cell(tiny_problem, fold, Solver(name=name), 0) for name in ("rankrls", "mofsrank") for fold in (1, 2, 3)]


@pytest.fixture
def bars(monkeypatch, capsys):
    """Make standard error a terminal; return a function that refreshes the bars and returns their last state."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")

    def lines(progress):
        progress._bars.refresh()
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
        return text.replace("\r", "\n").splitlines()

    return lines


def test_without_a_terminal_each_cell_has_a_line(cells, clock, capsys):
    states = {cell: "finished" if cell.fold == 1 else "open" for cell in cells}
    with CellProgress(states) as progress:
        for cell in (cells[0], cells[3]):
            progress(cell, True)
        for cell, now, succeeded in ((cells[4], 1030.0, True), (cells[1], 1031.5, True), (cells[2], 1031.5, False)):
            clock.now = now
            progress(cell, succeeded)
    assert capsys.readouterr().err.splitlines() == [
        "2 of 6 cells are done already",
        "3/6 tiny, fold 2, mofsrank, seed 0 (30.0 s)",
        "4/6 tiny, fold 2, rankrls (31.5 s)",
        "5/6 tiny, fold 3, rankrls: failed (31.5 s)",
    ]


def test_on_a_terminal_each_stage_has_a_bar_also_where_there_is_little_room(bars, monkeypatch):
    for width in (60, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        with StageProgress() as progress:
            for stage in ("instance_selection", "feature_selection"):
                progress(stage, 0.5, "generation 100")
            lines = bars(progress)
        assert [line.split()[:2] for line in lines[-2:]] == [["instance", "selection"], ["feature", "selection"]]
        assert all(len(line) <= width for line in lines)
