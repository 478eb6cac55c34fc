"""Folders of studies that somebody else has had their hands on."""

import json
import shutil
import time

import pytest

from moerank.studies.study import MOST_CELLS, Study


@pytest.fixture(scope="module")
def finished(tiny_problem_file, tmp_path_factory):
    solvers = ["rankrls", "rankrls[alpha=1]", "single"]
    return Study([tiny_problem_file], solvers, tmp_path_factory.mktemp("finished"), folds=[1, 2]).run().out


@pytest.fixture
def study(finished, tmp_path):
    return Study.load(shutil.copytree(finished, tmp_path, dirs_exist_ok=True))


def test_results_that_have_changed_places_are_refused_by_name(study, tmp_path):
    cells = study.cells()
    paths = {cell: tmp_path / "cells" / f"{cell.key}.json" for cell in cells}
    texts = {cell: path.read_text() for cell, path in paths.items()}
    paths[cells[0]].write_text(texts[cells[1]])
    message = rf"{paths[cells[0]]}: the result of another cell than {cells[0].label}; remove the file to run its cell"
    with pytest.raises(ValueError, match=message):
        study.results()
    paths[cells[0]].write_text(texts[cells[0]])
    assert len(study.results()) == len(cells)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seeds": 2**63}, "seeds: Input should be less than or equal to 1000000"),
        ({"folds": [0]}, r"folds\.0: "),
        ({"x": 1}, "x: Extra"),
        ({"solvers": [{"name": "rankrls", "parameters": {"workers": 2}}]}, r"solvers\.0\.parameters: workers belongs"),
        ({"problems": [{}]}, r"problems\.0\.name: "),
    ],
)
def test_a_study_of_another_shape_is_refused_by_its_place(study, tmp_path, change, sentence):
    path = tmp_path / "study.json"
    request = json.loads(path.read_text())
    request["grids"][0] |= change
    path.write_text(json.dumps(request))
    with pytest.raises(ValueError, match=rf"^{path}: not written by this version of moerank \(grids\.0\.{sentence}"):
        Study.load(tmp_path)


@pytest.mark.parametrize("text", ["[" * 200_000, "null", '{"format": 5}', '{"format": true, "grids": []}', "\xff"])
def test_what_is_no_study_is_refused_by_name(tmp_path, text):
    path = tmp_path / "study.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=rf"^{path}: not "):
        Study.load(tmp_path)


def test_more_cells_than_anybody_runs_are_refused_before_they_are_made(tiny_problem, tmp_path):
    begin = time.monotonic()
    with pytest.raises(ValueError, match=r"seeds must be at most 1,000,000, not 9,223,372,036,854,775,808"):
        Study([tiny_problem], ["mofsrank"], tmp_path, folds=[1], seeds=2**63)
    with pytest.raises(ValueError, match=r"a study has at most 1,000,000 cells, not 2,500,000; divide it"):
        Study([tiny_problem], ["mofsrank"], tmp_path, seeds=500_000)
    with pytest.raises(ValueError, match=r"fold must be an integer, not 1\.0"):
        Study([tiny_problem], ["mofsrank"], tmp_path, folds=[1.0])
    assert time.monotonic() - begin < 5
    allowed = Study([tiny_problem], ["rankrls"], tmp_path, folds=[1], seeds=MOST_CELLS)  # it does not draw
    assert len(allowed.cells()) == 1


def test_a_solver_that_cannot_keep_the_limits_of_a_problem_is_refused_by_name(study, tmp_path):
    path = tmp_path / "study.json"
    request = json.loads(path.read_text())
    request["grids"][0]["problems"][0]["features"]["max_cost"] = 2.0
    request["grids"][0]["solvers"] = [{"name": "rankrls"}]
    path.write_text(json.dumps(request))
    with pytest.raises(ValueError, match=rf"^{path}: rankrls cannot keep \[features\] max_cost"):
        Study.load(tmp_path)
