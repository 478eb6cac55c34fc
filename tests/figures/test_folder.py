"""A figure is its file: what is put into the folder is everywhere."""

import subprocess
import sys

import pytest

from moerank.figures import of_study
from moerank.figures.figure import StudyFigure
from moerank.figures.of_study import FIGURES
from moerank.reports.page import html_report
from moerank.reports.study_report import Report

NEW = """\
'''A new figure.

A sentence & nothing else.
'''

from matplotlib.figure import Figure

from moerank.figures.figure import StudyFigure


def draw(view):
    figure = Figure()
    figure.subplots().set_title(f"{view.where}, fold {view.fold_of(view.results)}")
    return figure


FIGURE = StudyFigure(draw, "results", order=2, takes=("fold",))
"""


@pytest.fixture
def new_figure(tmp_path):
    """A figure of its own in a further folder of the package."""
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "brandnew_of_study.py").write_text(NEW)
    of_study.__path__.append(str(tmp_path / "figures"))
    yield "brandnew"
    of_study.__path__.remove(str(tmp_path / "figures"))
    sys.modules.pop("moerank.figures.of_study.brandnew_of_study", None)


def test_a_file_is_a_figure_of_the_command_line_and_of_reports(new_figure, command, tiny_study, monkeypatch):
    assert new_figure in FIGURES
    assert isinstance(FIGURES[new_figure], StudyFigure)
    outcome = command("plot", new_figure, tiny_study.out, "--fold", 2, "--out", "new.svg")
    assert outcome.exit_code == 0, outcome.stderr
    shown = {name: FIGURES[name] for name in ("accuracy", "brandnew", "attainment")}  # the others take seconds
    monkeypatch.setattr("moerank.reports.study_report.FIGURES", shown)
    page = html_report(Report(tiny_study))
    assert "<figcaption>A sentence &amp; nothing else.</figcaption>" in page
    places = [page.index(f'="{name}-tiny-') for name in ("accuracy", "brandnew", "attainment")]
    assert places == sorted(places)


def test_every_figure_says_what_it_is():
    for name, figure in FIGURES.items():
        assert figure.caption.endswith("."), name
        assert figure.section in ("results", "tests", "features", "ablations"), name
    places = [(figure.section, figure.order) for figure in FIGURES.values()]
    assert len(set(places)) == len(places)  # their order in a report is stated
    assert [name for name, figure in FIGURES.items() if not figure.of_problem] == ["ranks"]


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (["plot", "--help"], ["matplotlib", "pandas", "numpy"]),
        (["solvers"], ["matplotlib", "pandas", "scipy", "sklearn", "numba"]),
        (["report", "--help"], ["matplotlib", "pandas", "numpy"]),
    ],
)
def test_help_and_the_table_of_solvers_load_no_heavy_library(words, unwanted):
    code = (
        "import sys\nfrom moerank.cli.app import app\n"
        f"try: app({words!r})\nexcept SystemExit: pass\n"
        f"print(*(name for name in {unwanted!r} if name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.split() == []
    assert len(done.stdout.splitlines()) > 5
