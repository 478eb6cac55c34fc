"""Files that somebody else wrote or changed: refused by their place, and no string in them is run."""

import json
import shutil
import sys
import time
import tomllib
from contextlib import contextmanager

import pytest

from moerank.checks import toml_value
from moerank.runs.problem import load_problem
from moerank.runs.result import Result, read_result
from moerank.runs.run_fold import run_fold
from moerank.studies.study import MAX_CELLS, Study

EVENTS = ("open", "import", "exec", "compile", "pickle.find_class", "os.system", "subprocess.Popen", "socket.connect")

_watchers = []


def _hook(event, arguments):
    if _watchers and event in EVENTS:
        for seen in _watchers:
            seen.append((event, arguments[0]))


@contextmanager
def watched():
    """Yield the list that (event, first argument) are added to."""
    if not hasattr(sys, "_moerank_watched"):  # a hook can never be taken away: one serves all
        sys.addaudithook(_hook)
        sys._moerank_watched = True
    seen = []
    _watchers.append(seen)
    try:
        yield seen
    finally:
        _watchers.remove(seen)


WORDS = ["hostile.module:attack", "../../hostile"]

EVERYTHING = """
name = "mine"
[data]
source = "letor"
folder = "SET"
origin = "x"
normalize = "none"
[metric]
name = "NDCG@10"
gain = "exp2"
discount = "letor"
short_queries = "zero"
[backend]
name = "rankrls"
parameters = {loss = "pair", alpha = 1.0}
[solver]
parameters = {backend = "x", algorithm = "nsga2", metric = "MAP", ensemble = {initial = "x", termination = "x"}}
[search]
algorithm = "nsga2"
objectives = ["features", "error"]
final = "train"
[feature_selection]
by_group = true
crossover = 0.5
[[published]]
method = "x"
solver = "x"
source = "x"
"""


def variants(values, word):
    """Each copy of nested values in which one text, key or number is the word."""
    if isinstance(values, dict):
        for key in values:
            for entry in variants(values[key], word):
                yield {**values, key: entry}
            yield {(word if other == key else other): value for other, value in values.items()}
    elif isinstance(values, list):
        for place in range(len(values)):
            for entry in variants(values[place], word):
                yield [*values[:place], entry, *values[place + 1 :]]
    else:
        yield word


def document(values):
    return "\n".join(f"{json.dumps(key)} = {toml_value(value)}" for key, value in values.items())


def attack(path, read):
    """Read a file, and use what was read as far as it is accepted."""
    with watched() as seen:
        try:
            read()
        except (ValueError, OSError) as error:
            message = str(error)
            assert message
    touched = [(event, str(what)) for event, what in seen if event != "open" or str(what) != str(path)]
    assert not [entry for entry in touched if "hostile" in entry[1]]
    assert not [entry for entry in touched if entry[0] in ("pickle.find_class", "os.system", "subprocess.Popen")]


@pytest.mark.parametrize("word", WORDS)
def test_no_string_of_a_problem_file_is_opened_imported_or_run(word, tmp_path):
    base = tomllib.loads(EVERYTHING)
    path = tmp_path / "mine.toml"
    load_problem("planted").load_fold(1)

    def use():
        problem = load_problem(path)
        for solver in ("rankrls", "mofsrank"):
            run_fold(problem, 1, solver, data=tmp_path)

    for values in variants(base, word):
        path.write_text(document(values))
        assert tomllib.loads(path.read_text()) == values
        attack(path, use)


@pytest.mark.parametrize("word", WORDS)
def test_what_is_accepted_for_a_solver_is_not_opened_either(word, tmp_path):
    """On data that are there, so that all parameters come to the solver."""
    path = tmp_path / "mine.toml"
    small = {"population": 4, "generations": 1}
    stages = dict.fromkeys(("instance_selection", "feature_selection", "ensemble"), small)
    base = {"name": "mine", "data": {"source": "planted", "n_queries": 10, "n_noise": 0}, **stages}
    path.write_text(document(base))
    run_fold(load_problem(path), 1, "mofsrank", baselines=False)  # numba keeps its own kernels as pickles
    for given in (
        *({name: word} for name in ("backend", "algorithm", "metric", "objectives", "final", "ensemble")),
        {"checkpoint": word, "resume": True},
        *({"ensemble": {name: word}} for name in ("initial", "termination", word)),
        *({"feature_selection": {name: [word, word]}} for name in ("initial", "termination")),
    ):
        path.write_text(document({**base, "solver": {"parameters": given}}))

        def use():
            try:
                run_fold(load_problem(path), 1, "mofsrank", baselines=False)
            except Exception as error:  # objects are meant there, and pymoo has its own words for what is none
                raise ValueError(repr(error)) from None

        attack(path, use)


@pytest.mark.parametrize("word", WORDS)
def test_no_string_of_a_result_or_study_is_opened_imported_or_run(word, tmp_path, tiny_result, tiny_problem_file):
    values = json.loads(tiny_result.to_json())
    values["front"] = values["front"][:1]
    values["chosen"] = 0
    values["baselines"], values["feature_names"] = [], values["feature_names"][:8]
    for variant in variants({**values, "configuration": values["configuration"]}, word):
        (tmp_path / "result.json").write_text(json.dumps(variant))
        attack(tmp_path / "result.json", lambda: read_result(tmp_path))
    folder = tmp_path / "study"
    Study([tiny_problem_file], ["rankrls[alpha=1]"], folder, folds=[1]).run()
    request = json.loads((folder / "study.json").read_text())
    (folder / "cells" / "x.json").write_text("")
    for variant in variants(request, word):
        (folder / "study.json").write_text(json.dumps(variant))
        with watched() as seen:
            try:
                study = Study.load(folder)
                study.states(), study.results(), study.failures()
            except (ValueError, OSError) as error:
                assert str(error)
        assert not [entry for entry in seen if "hostile" in str(entry[1])]


@pytest.fixture(scope="module")
def finished(tiny_problem_file, tmp_path_factory):
    solvers = ["rankrls", "rankrls[alpha=1]", "single"]
    return Study([tiny_problem_file], solvers, tmp_path_factory.mktemp("finished"), folds=[1, 2]).run().out


@pytest.fixture
def study(finished, tmp_path):
    return Study.load(shutil.copytree(finished, tmp_path, dirs_exist_ok=True))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seeds": 2**63}, "seeds: seeds must be at most 1,000,000"),
        ({"folds": [0]}, r"folds\.0: "),
        ({"x": 1}, "x: Extra"),
        (
            {"solvers": [{"name": "rankrls", "parameters": {"workers": 2}}]},
            r"solvers\.0\.NamedSolver\.parameters: workers belongs",
        ),
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


@pytest.mark.parametrize("text", ["[" * 200_000, "null", "{}", '{"format": 5}', "\xff"])
def test_what_is_no_study_is_refused_by_name(tmp_path, text):
    path = tmp_path / "study.json"
    path.write_bytes(text.encode("latin-1"))
    reason = {"{}": r"written by .*\(format: Field", '{"format": 5}': "written by .*format: Input should be greater"}
    with pytest.raises(ValueError, match=rf"^{path}: not {reason.get(text, '')}"):
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
    allowed = Study([tiny_problem], ["rankrls"], tmp_path, folds=[1], seeds=MAX_CELLS)  # it does not draw
    assert len(allowed.cells()) == 1


@pytest.fixture(scope="module")
def text(tiny_result):
    return tiny_result.to_json()


CHANGES = [
    ("fold", 1001, "fold: "),
    ("new", 1, "new: Extra inputs are not permitted"),
    ("front/0/features/0", -1, r"front\.0\.features\.0: "),
    ("front/0/trees", {"columns": []}, r"front\.0\.trees\."),
    ("front/0/scores/test/MAP", True, r"front\.0\.scores\.test\.MAP: "),
    ("scaling", {"kind": "minmax", "offset": [0.0] * 20, "scale": [0.0] * 20}, ".*offset 0.0 and scale 0.0"),
    ("format", 3, r"format: Input should be greater than or equal to 8"),
]


@pytest.mark.parametrize(("key", "value", "sentence"), CHANGES)
def test_a_result_of_another_shape_is_refused_by_its_place(text, key, value, sentence):
    values = inner = json.loads(text)
    *path, last = [int(part) if part.isdigit() else part for part in key.split("/")]
    for part in path:
        inner = inner[part]
    inner[last] = value
    with pytest.raises(ValueError, match=rf"^not written by this version of moerank \({sentence}"):
        Result.from_json(json.dumps(values))


def test_texts_that_are_no_result_are_refused_at_once(text, tiny_result):
    value = json.dumps(tiny_result.front[0].scores["test"]["MAP"])
    infinite = [text.replace(value, token) for token in ("NaN", "Infinity", "-Infinity", "1e999")]
    for damaged in ("[" * 200_000, '{"format":' * 200_000, "", "null", '"x"', "{", "3", *infinite):
        begin = time.monotonic()
        with pytest.raises(ValueError, match="not written by this version"):
            Result.from_json(damaged)
        assert time.monotonic() - begin < 1


def test_every_number_is_read_to_the_bit(text, tiny_result):
    read = Result.from_json(text)
    assert read == tiny_result
    assert read.to_json() == text
    strange = [5e-324, 1.7976931348623157e308, 0.1, 2 / 3, 9007199254740993.0, -0.0, 123456789.12345679]
    values = json.loads(text)
    values["times"]["stages"]["ensemble"] = strange
    assert list(map(repr, Result.from_json(json.dumps(values)).times.stages["ensemble"])) == list(map(repr, strange))


def test_results_that_have_changed_places_are_refused_by_name(study, tmp_path):
    cells = study.cells()
    paths = {cell: tmp_path / "cells" / f"{cell.key}.json" for cell in cells}
    texts = {cell: path.read_text() for cell, path in paths.items()}
    paths[cells[0]].write_text(texts[cells[1]])
    message = rf"{paths[cells[0]]}: this is not the result of {cells[0].label}; remove the file to run its cell"
    with pytest.raises(ValueError, match=message):
        study.results()
    paths[cells[0]].write_text(texts[cells[0]])
    assert len(study.results()) == len(cells)
