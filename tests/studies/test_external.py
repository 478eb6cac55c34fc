import shutil

import numpy as np
import pytest

from moerank.cli.tables import study_table
from moerank.figures.of_study import FIGURES
from moerank.reports.report import Report
from moerank.reports.sections import sections
from moerank.studies.results import Results
from moerank.studies.study import Study
from moerank.studies.summary import with_external


@pytest.fixture
def study(tiny_study, tmp_path):
    shutil.copytree(tiny_study.out, tmp_path / "study")
    return Study.load(tmp_path / "study")


def write(study, *rows):
    problem, metric = study.problems[0].name, study.results()[0].metrics[0]
    text = f"problem,method,features,fold,{metric}\n" + "\n".join(f"{problem},{row}" for row in rows)
    (study.out / "external.csv").write_text(text)
    return problem, metric


def test_results_of_other_tools_stand_in_tables_and_figures(study):
    name, metric = write(
        study, "XGBoost,5,1,.5", "XGBoost,6,2,.75", "BM25,1,,.25", "BM25,2,,.375", '"Ours, old",,,.125'
    )
    problem = next(entry for entry in with_external(study.problems, study.out) if entry.name == name)
    report = Report(study)
    table = next(table for part in sections(report) for table in part.tables if table.name == f"results-{name}")
    size, place = table.columns.index("features"), table.columns.index(metric)
    rows = {(row[0].text, row[size].text): row for row in table.rows}
    error = np.std([0.5, 0.75], ddof=1) / np.sqrt(2)
    assert rows["XGBoost", "5.5"][place].text == f"0.6250 ± {error:.4f}"
    assert [rows["BM25", size][place].text for size in ("1.0", "2.0")] == ["0.2500", "0.3750"]
    assert rows["Ours, old", ""][place].text == "0.1250"
    assert all(len(row) == len(table.columns) for row in table.rows)
    printed = study_table(problem, Results(study.results()).of(name))
    assert [cell for cell in printed.columns[0].cells if "XGBoost" in str(cell)]
    figure = FIGURES["accuracy"].draw(Results(study.results()), problem)
    drawn = {line.get_label(): line.get_xydata().tolist() for axes in figure.axes for line in axes.lines}
    assert drawn["BM25"] == [[1.0, 0.25], [2.0, 0.375]]
    assert drawn["XGBoost"] == [[5.5, 0.625]]
    assert "Ours, old" not in drawn  # nobody knows its number of features


def test_without_the_file_nothing_changes(study):
    assert with_external(study.problems, study.out) == study.problems


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("problem,NDCG@10\n", "the first line names the columns problem, method, and metrics"),
        ("problem,method\n", "the first line names"),
        (
            "problem,method,NDGC@10\n",
            "a column is none of problem, method, features, fold, and unknown metric 'NDGC@10'",
        ),
        ("problem,method,MAP\nother,x,.5\n", "line 2: .*problem 'other'"),
        ("problem,method,MAP\nNAME\n", "line 2: no method; every row names one"),
        ("problem,method,MAP\nNAME,x,much\n", "line 2: features, fold and metrics are numbers"),
        ("problem,method,MAP\nNAME,x,nan\n", "line 2: features, fold and metrics are finite"),
    ],
)
def test_wrong_files_are_refused_by_place(study, text, message):
    (study.out / "external.csv").write_text(text.replace("NAME", study.problems[0].name))
    with pytest.raises(ValueError, match=f"external.csv.*{message}"):
        with_external(study.problems, study.out)
