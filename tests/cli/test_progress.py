import re

from moerank.cli.progress import CellProgress, StageProgress
from moerank.runs.solver import NamedSolver
from moerank.studies.study import Cell


def test_without_a_terminal_each_cell_has_a_line(tiny_problem, monkeypatch, capsys):
    now = 1000.0
    monkeypatch.setattr("rich.console.monotonic", lambda: now)
    cells = [
        Cell(tiny_problem, fold, NamedSolver(name=name), 0) for name in ("rankrls", "mofsrank") for fold in (1, 2, 3)
    ]
    states = {cell: "finished" if cell.fold == 1 else "open" for cell in cells}
    with CellProgress(states) as progress:
        for cell in (cells[0], cells[3]):
            progress(cell, True)
        for cell, later, succeeded in ((cells[4], 1030.0, True), (cells[1], 1031.5, True), (cells[2], 1031.5, False)):
            now = later
            progress(cell, succeeded)
    assert capsys.readouterr().err.splitlines() == [
        "2 of 6 cells are already done",
        "3/6 tiny, fold 2, mofsrank, seed 0 (after 30.0 s)",
        "4/6 tiny, fold 2, rankrls (after 31.5 s)",
        "5/6 tiny, fold 3, rankrls: failed (after 31.5 s)",
    ]


def test_on_a_terminal_each_stage_has_a_bar_also_where_there_is_little_room(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes standard error a terminal
    for width in (60, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        with StageProgress() as progress:
            for stage in ("instance_selection", "feature_selection"):
                progress(stage, 0.5, "generation 100")
            progress.refresh()
            lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err).replace("\r", "\n").splitlines()
        assert [line.split()[:2] for line in lines[-2:]] == [["instance", "selection"], ["feature", "selection"]]
        assert all(len(line) <= width for line in lines)
