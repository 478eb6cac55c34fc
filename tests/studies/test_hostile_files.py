"""Files that somebody else wrote: no string in them is opened, imported or run."""

import json
import tomllib

import pytest
from helpers.watched import watched

from moerank.checks import toml_value
from moerank.studies.problem import load_problem
from moerank.studies.result import read_result
from moerank.studies.run_fold import run_fold
from moerank.studies.study import Study

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
                assert str(folder) in str(error)
        assert not [entry for entry in seen if "hostile" in str(entry[1])]
