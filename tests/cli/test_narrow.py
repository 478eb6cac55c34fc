"""Tables and bars on narrow terminals: every value in full, below each other where there is no room beside."""

import re

import pytest
from rich.console import Console

from moerank.cli.progress import CellProgress, StageProgress
from moerank.cli.tables import FittedTable, front_table, say, solver_table
from moerank.mofsrank.front import FrontTable
from moerank.solvers import solvers
from moerank.studies.solver import Solver
from moerank.studies.study import Cell


def printed(thing, width):
    console = Console(width=width, force_terminal=False, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(thing)
    return captured.get()


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_all_values_of_a_front_are_there_at_any_width(tiny_result, width):
    text = printed(front_table(tiny_result), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for ranker in (*tiny_result.front, *tiny_result.baselines):
        for part in ranker.scores.values():
            assert all(f"{value:.4f}" in text for value in part.values())
    heads = [line for line in text.splitlines() if line.startswith("member")]
    assert len(heads) == {40: 4, 60: 2, 80: 1, 200: 1}[width]


def test_every_solver_has_its_whole_name_at_60_columns():
    text = printed(solver_table(solvers().values()), 60)
    assert max(map(len, text.splitlines())) <= 60
    assert all(re.search(rf"^{re.escape(name)}( \*)? ", text, re.MULTILINE) for name in solvers())


def test_long_texts_are_broken_in_their_own_column():
    table = FittedTable("a title", ["name", "text"], ["number"])
    table.add_texts("a", "word " * 30, "1")
    table.add_section()
    table.add_texts("b", "short", "2", style="bold")
    lines = printed(table, 50).splitlines()
    assert max(map(len, lines)) <= 50
    assert lines[0].strip() == "a title"
    assert sum(line.count("word") for line in lines) == 30


def test_a_paragraph_is_broken_between_words_on_a_terminal_alone():
    for terminal, n_lines in ((True, 2), (False, 1)):
        console = Console(width=20, force_terminal=terminal, highlight=False, color_system=None)
        with console.capture() as captured:
            say(console, "these words are for people who read them")
        assert len(captured.get().splitlines()) == n_lines


def shown(text):
    """The last state of a bar, without colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_cell_that_runs_is_named_in_the_bar(tiny_problem, monkeypatch, capsys, width):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    cells = [Cell(tiny_problem, fold, Solver(name="mofsrank"), 0) for fold in (1, 2, 3)]
    with CellProgress(dict.fromkeys(cells, "open"), lambda cell: 1.0) as progress:
        progress._bars.live.auto_refresh = False
        progress.started(cells[0])
        progress.started(cells[1])
        progress._bars.refresh()
        both = capsys.readouterr().err
        progress(cells[0], True)
        progress._bars.refresh()
        one = capsys.readouterr().err
        progress(cells[1], False)
        progress.started(cells[2])
    last = capsys.readouterr().err
    assert "tiny, fold 1, mofsrank, seed 0 and 1 more"[: width - 32] in shown(both)[-1]
    assert "tiny, fold 2, mofsrank, seed 0"[: width - 45] in shown(one)[-1]
    assert "1 failed, tiny, fold 3"[: width - 32] in shown(last)[-1]
    assert all(len(line) <= width for text in (both, one, last) for line in shown(text.replace("\r", "\n")))


def test_stages_fit_60_columns(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    with StageProgress() as progress:
        progress._bars.live.auto_refresh = False
        for stage in ("instance_selection", "feature_selection"):
            progress(stage, 0.5, "generation 100")
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line for line in shown(captured.err.replace("\r", "\n")) if "selection" in line]
    assert all(len(line) <= 60 for line in lines)
    assert all("generation 100" in line and line.rstrip().endswith("left") for line in lines[-2:])
    assert len({line.split("selection")[0] for line in lines[-2:]}) == 2  # a line each


def test_a_front_prints_every_column(monkeypatch):
    table = FrontTable(
        {name: [0.123456, 0.234567] for name in ("n_features", "error", "cost", "risk", "validation")}
        | {"features": [tuple(range(50)), (1,)]}
    )
    for width in ("40", "60", "200"):
        monkeypatch.setenv("COLUMNS", width)
        text = str(table)
        assert all(name in text for name in table.columns)
        assert max(map(len, text.splitlines())) <= int(width)
    assert repr(table[["error", "cost"]]).count("0.123456") == 2
    assert len(str(FrontTable({"error": range(500)})).splitlines()) < 100


def test_help_breaks_its_paragraphs_where_the_terminal_ends(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = [line.strip() for line in command("run", "-h").stdout.splitlines()]
    begin = next(number for number, line in enumerate(lines) if line.startswith("The table shows"))
    paragraph = lines[begin : lines.index("", begin)]
    assert all(45 < len(line) <= 60 for line in paragraph[:-1])
