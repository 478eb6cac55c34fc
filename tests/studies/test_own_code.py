"""Solvers, rankers, metrics and objectives that a problem file or a command names as module:name."""

import importlib
import json
import sys

import pytest

from moerank.runs.problem import load_problem
from moerank.solvers import allow_code, make_solver
from moerank.studies.study import Study

MODULE = """
import numpy as np

from moerank.metrics import NDCG

class Centroids:
    def fit(self, X, y, qid=None):
        self.coef_ = np.asarray(X)[y > 0].mean(axis=0) - np.asarray(X)[y == 0].mean(axis=0)
        return self

    def predict(self, X):
        return np.asarray(X) @ self.coef_

class Even:
    name = title = "even"

    def values(self, candidates):
        return candidates.feature_mask[:, ::2].sum(axis=1).astype(float)

    def bounds(self, data, n_var):
        return 0.0, float(-(-data.n_features // 2))

def gain(k):
    return NDCG(k)
"""

PROBLEM = """
name = "own"
metric.name = "own_methods:gain@5"
backend.name = "own_methods:Centroids"
[data]
source = "planted"
n_queries = 10
[search]
objectives = ["features", "error", "own_methods:Even"]
[serve]
rankers = "own_methods:Centroids"
"""

SEARCH = "mofsrank[instance_selection=false]"
SMALL = "[{0}]\npopulation = 4\ngenerations = 1\n"


pytestmark = pytest.mark.filterwarnings("ignore:.* has changed since")  # it is written after this process began


@pytest.fixture
def folder(command, tmp_path, monkeypatch):
    """The working directory, with a module that is not installed and a problem file that names it."""
    (tmp_path / "own_methods.py").write_text(MODULE)
    stages = map(SMALL.format, ("instance_selection", "feature_selection", "ensemble"))
    (tmp_path / "own.toml").write_text(PROBLEM + "".join(stages))
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("own_methods", None)


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "own.toml"),
        ("run", "planted", "--solver", "own_methods:Centroids"),
        ("run", "planted", "--set", 'search.objectives=["features", "own_methods:Even"]'),
        ("run", "planted", "--solver", "fs-ed[ranker=own_methods:Centroids]"),
        ("study", "planted", "--solvers", "own_methods:Centroids"),
        ("data", "describe", "own.toml"),
    ],
)
def test_code_is_refused_unless_the_command_allows_it(folder, command, arguments):
    refused = command(*arguments)
    assert refused.exit_code == 2
    assert "names code, which runs only if the command has --allow-code" in " ".join(refused.stderr.split())
    assert "own_methods" not in sys.modules


def test_allowed_code_runs_in_commands_and_processes_and_its_results_are_read_back(folder, command):
    run = command("run", "own.toml", "--solver", SEARCH, "--allow-code", "--out", "run", "--json")
    assert run.exit_code == 0, run.output
    result = json.loads((folder / "run" / "result.json").read_text())
    assert list(result["front"][0]["objectives"]) == ["features", "error", "even"]
    assert set(result["configuration"]["code"]) == {f"own_methods:{name}" for name in ("gain", "Centroids", "Even")}
    assert command("export", "run", "--format", "python").exit_code == 0  # a model is data
    asked = ("study", "own.toml", "--solvers", "own_methods:Centroids", "--folds", "1", "--out", "study")
    study = command(*asked, "--workers", 2, "--allow-code")
    assert study.exit_code == 0, study.output
    with pytest.raises(ValueError, match="--allow-code"):
        Study.load("study").results()
    with allow_code():
        loaded = Study.load("study")
        assert [result.solver for result in loaded.results()] == ["own_methods:Centroids"]


def test_the_command_of_searches_fails_where_a_search_does(folder, command):
    asked = ("searches", "planted", "--algorithms", "own_methods:gain,nsga2", "--evaluations", 20, "--seeds", 2)
    with pytest.warns(UserWarning, match="2 of 4 cells failed, first planted, own_methods:gain, seed 0"):
        done = command(*asked, "--allow-code", "--out", "searches")
    assert done.exit_code == 1, done.output
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("planted ")]
    assert row.split()[1:3] == ["no", "run"]
    assert done.stdout.splitlines()[-1] == "2 of 4 runs failed"


def test_changed_code_is_another_cell(folder):
    def keys():
        importlib.invalidate_caches()
        sys.modules.pop("own_methods", None)
        with allow_code():
            study = Study([load_problem("own.toml")], ["own_methods:Centroids"], "s", folds=[1])
            return [cell.key for cell in study.cells()]

    before = keys()
    assert keys() == before
    (folder / "own_methods.py").write_text(MODULE.replace("mean(axis=0) -", "mean(axis=0) - 2.0 *"))
    assert keys()[0] != before[0]


@pytest.mark.parametrize("name", ["own_methods:Nothing", "nowhere.at_all:Ranker", "own_methods:gain"])
def test_code_that_is_no_solver_is_named(folder, name):
    with allow_code(), pytest.raises(ValueError, match=name):
        make_solver(name)
