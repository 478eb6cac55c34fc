"""A package of its own adds a solver, a backend, an objective, a metric, a reader and an export by entry points."""

import json
import re

import pytest

from moerank.data import load_planted_fold
from moerank.solvers import plugins, solvers

PACKAGE = '''
"""Plain classes: none inherits from moerank, except the metric."""

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from moerank.exports import Format
from moerank.exports.deployable import Deployment
from moerank.metrics import Metric


class Largest:
    """The largest differences of the mean of the relevant documents from that of the others, as weights."""

    linear = True
    selects = True

    def __init__(self, n_features_to_select=100):
        self.n_features_to_select = n_features_to_select

    def get_params(self, deep=True):
        return {"n_features_to_select": self.n_features_to_select}

    def set_params(self, **parameters):
        vars(self).update(parameters)
        return self

    def fit(self, X, y, qid=None):
        X, y = np.asarray(X), np.asarray(y)
        weights = X[y > 0].mean(axis=0) - X[y == 0].mean(axis=0)
        order = np.argsort(-np.abs(weights), kind="stable")[: self.n_features_to_select]
        self.support_ = np.isin(np.arange(len(weights)), order)
        self.coef_ = np.where(self.support_, weights, 0.0)
        return self

    def predict(self, X):
        return np.asarray(X) @ self.coef_

    def get_support(self):
        return self.support_


class EvenFeatures:
    """The number of selected features in even columns."""

    name = title = "even"

    def values(self, candidates):
        return candidates.feature_mask[:, ::2].sum(axis=1).astype(float)

    def bounds(self, data, n_var):
        return 0.0, float(-(-data.n_features // 2))


@dataclass(frozen=True)
class Success(Metric):
    """Whether a relevant document stands among the first k."""

    k: int = 1

    @property
    def name(self):
        return f"success@{self.k}"

    def values(self, data, scores):
        values = np.empty((data.n_queries, scores.shape[1]))
        for query, (first, last) in enumerate(zip(data.offsets[:-1], data.offsets[1:])):
            order = np.argsort(-scores[first:last], axis=0, kind="stable")[: self.k]
            values[query] = (data.y[first:last][order] > 0).any(axis=0)
        return values


def read_lines(path, columns):
    """Read JSON lines."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return pa.table({name: [row[name] for row in rows] for name in columns or rows[0]})


def weights(model, path):
    """Write names and weights, one a line."""
    text = "".join(f"{name} {weight!r}\\n" for name, weight in zip(model.labels, model.weights))
    return Deployment({path: text.encode()}, f"Read {path.name}.")


FORMAT = Format("weights.txt", weights)
'''

ENTRY_POINTS = """
[moerank.solvers]
largest = theirs:Largest
[moerank.backends]
centroids = theirs:Largest
[moerank.objectives]
even = theirs:EvenFeatures
[moerank.metrics]
success = theirs:Success
[moerank.readers]
jsonl = theirs:read_lines
[moerank.exports]
weights = theirs:FORMAT
"""

PROBLEM = """
name = "lines"
metric.name = "success@1"
instance_selection = {population = 8, generations = 2}
feature_selection = {population = 8, generations = 2}
ensemble = {population = 8, generations = 2}
[data]
source = "table"
folder = "lines"
label = "label"
query = "query"
[backend]
name = "centroids"
tune = false
[search]
objectives = ["features", "error", "even"]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of an installed package, and the files of a problem that needs it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "theirs.py").write_text(PACKAGE)
    meta = folder / "theirs-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (meta / "entry_points.txt").write_text(ENTRY_POINTS)
    (folder / "lines.toml").write_text(PROBLEM)
    for name, part in zip(("train", "vali", "test"), load_planted_fold(1, n_queries=15, n_documents=12), strict=True):
        path = folder / "lines" / "Fold1" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = [f"f{number}" for number in range(part.n_features)]
        rows = [
            dict(zip(columns, map(float, x), strict=True)) | {"label": int(y), "query": str(q)}
            for x, y, q in zip(part.X, part.y, part.qid, strict=True)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def moerank(installed, command, monkeypatch):
    """Run a command beside the package."""
    monkeypatch.chdir(installed)
    monkeypatch.syspath_prepend(installed)
    for table in (solvers, plugins):
        table.cache_clear()

    def call(*arguments):
        outcome = command(*arguments)
        assert outcome.exit_code == 0, outcome.output
        return outcome.stdout

    yield call
    for table in (solvers, plugins):
        table.cache_clear()


def test_a_run_uses_all_that_another_package_adds(installed, moerank, undrawn):
    moerank("run", "lines.toml", "--solver", "mofsrank[instance_selection=false]", "--out", "searched")
    result = json.loads((installed / "searched" / "result.json").read_text())
    assert result["metrics"][0] == "success@1"
    assert list(result["front"][0]["objectives"]) == ["features", "error", "even"]
    for member in result["front"]:
        even = sum(feature % 2 == 0 for feature in member["features"])
        assert member["objectives"]["even"] == even
        assert member["objectives"]["error"] == pytest.approx(1 - member["scores"]["train"]["success@1"], abs=1e-12)
    model = json.loads((installed / "searched" / "model.json").read_text())
    moerank("export", "searched", "--format", "weights", "--out", "weights.txt")
    written = [line.rsplit(" ", 1) for line in (installed / "weights.txt").read_text().splitlines()]
    assert {name: float(weight) for name, weight in written} == dict(zip(model["names"], model["weights"], strict=True))


def test_a_plain_class_is_a_solver_in_commands_and_studies(installed, moerank, undrawn):
    moerank("run", "lines.toml", "--solver", "largest[n_features_to_select=2]", "--out", "plain")
    result = json.loads((installed / "plain" / "result.json").read_text())
    assert [len(member["features"]) for member in result["front"]] == [2]
    assert "largest" in moerank("solvers")
    shown = moerank("study", "lines.toml", "--solvers", "largest,centroids", "--out", "study")
    assert re.search(r"2 of 2|2 cells", shown), shown
