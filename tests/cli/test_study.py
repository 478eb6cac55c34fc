"""moerank study, report and plot."""

import json
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from moerank.figures import FIGURES
from moerank.rankers import RankSVM


def test_study_runs_shows_and_reports(command, tmp_path, monkeypatch):
    asked = ("study", "TINY", "--solvers", "fsmrank,fsmrank[lambda1=0.5],ranksvm-primal", "--folds", "1,2")
    outcome = command(*asked, "--out", "s")
    assert outcome.exit_code == 0
    assert "6 of 6 cells are finished" in outcome.stdout
    assert "fsmrank[lambda1=0.5]" in outcome.stdout
    again = json.loads(command(*asked, "--out", "s", "--json").stdout)
    assert len(again["cells"]) == 6
    assert again["failures"] == []
    names = {"html": "report.html", "latex": "report.tex", "csv": "report.csv", "pairs": "pairs.csv"}
    monkeypatch.setattr("moerank.reports.study_report.FIGURES", {"cost": FIGURES["cost"]})  # the others take seconds
    for kind, name in names.items():
        assert command("report", "s", "--format", kind).exit_code == 0
        assert (tmp_path / "s" / name).stat().st_size > 200
    assert len((tmp_path / "s" / "pairs.csv").read_text().splitlines()) == 1 + 3


def test_a_spreadsheet_runs_no_text_of_a_report(command, tmp_path, monkeypatch):
    frame = pd.DataFrame({"@problem": ["=1+1", "\tcalc", "a-b"], "p": [-0.5, 2.0, np.nan]})
    report = SimpleNamespace(results=SimpleNamespace(frame=frame), n_missing=0)
    monkeypatch.setattr("moerank.studies.study.Study.load", Mock())
    monkeypatch.setattr("moerank.reports.study_report.Report", Mock(return_value=report))
    assert command("report", "s", "--format", "csv", "--out", str(tmp_path / "report.csv")).exit_code == 0
    assert (tmp_path / "report.csv").read_text() == "'@problem,p\n'=1+1,-0.5\n'\tcalc,2.0\na-b,\n"


def test_a_cell_that_fails_is_shown_with_its_message(command, monkeypatch):
    monkeypatch.setattr(RankSVM, "fit", Mock(side_effect=RuntimeError("out of luck")))
    outcome = command("study", "TINY", "--solvers", "ranksvm-primal,rankrls", "--folds", "1", "--out", "s")
    assert outcome.exit_code == 1
    assert "failed: tiny, fold 1, ranksvm-primal: RuntimeError: out of luck" in outcome.stdout
    assert "1 of 2 cells are finished" in outcome.stdout
    again = command("study", "TINY", "--solvers", "ranksvm-primal,rankrls", "--folds", "1", "--out", "s", "--json")
    assert again.exit_code == 1
    assert [failure["error"] for failure in json.loads(again.stdout)["failures"]] == ["RuntimeError: out of luck"]


def test_a_report_of_an_unfinished_study_says_so(command, tmp_path):
    command("study", "TINY", "--solvers", "rankrls,fsmrank", "--folds", "1,2", "--out", "s")
    one, *_ = sorted((tmp_path / "s" / "cells").iterdir())
    one.unlink()
    outcome = command("report", "s", "--format", "latex")
    assert outcome.exit_code == 0
    assert "missing or failed runs, listed in the report: 1" in outcome.stderr
    assert "3 of 4 runs are finished" in (tmp_path / "s" / "report.tex").read_text()


def test_a_plot_is_of_the_solvers_and_the_problem_that_were_asked_for(
    command, tiny_problem_file, tmp_path, monkeypatch
):
    from moerank.figures import style

    drawn = []

    def save(figure, path):
        drawn.append((figure, path))

    monkeypatch.setattr(style, "save_figure", save)
    (tmp_path / "other.toml").write_text(tiny_problem_file.read_text().replace('"tiny"', '"other"'))
    labels = ["fsmrank", "fsmrank[lambda1=0.5,lambda2=0.1]", "rankrls"]
    command("study", "TINY", tmp_path / "other.toml", "--solvers", ",".join(labels), "--folds", "1,2", "--out", "s")
    asked = ("--solvers", "rankrls,fsmrank[lambda1=0.5,lambda2=0.1]")
    assert command("plot", "cost", "s", *asked).exit_code == 0
    figure, path = drawn.pop()
    assert path.name == "cost-tiny.png"
    assert {text for axes in figure.axes for text in axes.get_legend_handles_labels()[1]} == set(labels[1:])
    paper = ("--no-title", "--width", "84", "--names", "rankrls=RLS,fsmrank[lambda1=0.5,lambda2=0.1]=F")
    assert command("plot", "accuracy", "s", "--problem", "other", "--exact", *paper).exit_code == 0
    figure, path = drawn.pop()
    assert path.name == "accuracy-other.png"
    assert figure.get_figwidth() * 25.4 == pytest.approx(84)
    assert not figure.legends[0].get_title().get_visible()
    assert {text.get_text() for text in figure.legends[0].get_texts()} >= {"RLS", "F", "fsmrank"}
    assert figure.axes[0].get_xlabel() == "Number of features"
    for words, message in [
        (("cost", "s", "--solvers", "fsmrnk"), "did you mean 'fsmrank'"),
        (("cost", "s", "--solvers", "gas"), "solver must be one of"),
        (("cost", "s", "--names", "rankrsl=RLS"), "did you mean 'rankrls'"),
        (("cost", "s", "--fold", "2"), "this figure takes no fold"),
        (("front", "s"), "did you mean 'fronts'"),
        (("cost", "s", "--problem", "tiney"), "did you mean 'tiny'"),
    ]:
        outcome = command("plot", *words)
        assert (outcome.exit_code, outcome.stderr.count("\n")) == (2, 1)
        assert message in outcome.stderr
    assert drawn == []
