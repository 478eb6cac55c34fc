import json
import re
from types import SimpleNamespace

import pytest

from moerank import solvers as module
from moerank.data import load_planted_fold
from moerank.exports.formats import find_format
from moerank.metrics import MAP, NDCG, Precision, make_metric
from moerank.rankers import RankRLS
from moerank.solvers import SolverEntry, make_solver, plugins, solvers

BUDGET = {"population": 8, "generations": 3}


def broken():
    raise ImportError("no module named elsewhere")


@pytest.fixture
def third_parties(monkeypatch):
    """Install entry points: a mapping from group to what each loads."""

    def install(groups):
        def entry_points(group):
            contents = groups.get(group, {}).items()
            return [SimpleNamespace(group=group, name=name, value="elsewhere:x", load=load) for name, load in contents]

        monkeypatch.setattr(module, "entry_points", entry_points)
        solvers.cache_clear()
        module.plugins.cache_clear()

    yield install
    solvers.cache_clear()
    module.plugins.cache_clear()


def entry(name):
    return SolverEntry(name, "ranker", "Nobody: Nothing", 2000, RankRLS, selects=False)


def test_one_search_is_recommended():
    assert [row.name for row in solvers().values() if row.recommended] == ["mofsrank-staircase"]


def test_what_a_row_fixes_is_joined_to_what_is_given():
    fixed = {"keep_members": False, "count": "bits"}
    for given, expected in (({}, fixed), (BUDGET, {**BUDGET, **fixed}), (False, False), (True, fixed)):
        assert make_solver("mofsrank-paper", ensemble=given).ensemble == expected
    assert make_solver("mofsrank-paper").ensemble == fixed


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(ValueError, match=r"unknown solver 'rankrsl'; did you mean 'rankrls'\?"):
        make_solver("rankrsl")
    with pytest.raises(ValueError, match=r"unknown parameter of rankrls 'alhpa'; did you mean 'alpha'\?"):
        make_solver("rankrls", alhpa=1.0)
    with pytest.raises(ValueError, match=r"alpha of rankrls must be a number or a switch, not '1'"):
        make_solver("rankrls", alpha="1")


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (broken, "ImportError: no module named elsewhere"),
        (lambda: 3, "it is neither a class with fit nor a SolverEntry"),
        (lambda: entry("mofsrank"), "the name is taken"),
    ],
)
def test_an_entry_point_that_fails_is_left_out_with_a_warning(third_parties, load, reason):
    third_parties({"moerank.solvers": {"bad": load, "good": lambda: entry("theirs")}})
    with pytest.warns(UserWarning, match=rf"entry point moerank\.solvers: bad.* is left out: .*{reason}"):
        table = solvers()
    assert "theirs" in table
    assert table["mofsrank"].family == "evolutionary"


@pytest.mark.parametrize(("group", "read"), [("exports", find_format), ("metrics", make_metric)])
def test_an_entry_point_of_another_kind_is_left_out_with_a_warning(third_parties, group, read):
    third_parties({f"moerank.{group}": {"bad": lambda: 3}})
    with pytest.warns(UserWarning, match=f"{group}: bad = .*: it is no "), pytest.raises(ValueError, match="'bad'"):
        read("bad")


@pytest.mark.parametrize("name", ["gas-e", "fs-ed", "single"])
def test_metrics_are_read_by_their_names(name, tiny_problem):
    train, vali, _ = tiny_problem.load_fold(1)
    by_name = make_solver(name, metric="MAP", n_features_to_select=3).fit(train, validation=vali)
    by_object = make_solver(name, metric=MAP(), n_features_to_select=3).fit(train, validation=vali)
    default = make_solver(name, n_features_to_select=3).fit(train, validation=vali)
    assert by_name.metric == "MAP", "a constructor only stores"
    assert by_name.order_.tolist() == by_object.order_.tolist() != default.order_.tolist()
    with pytest.raises(ValueError, match=r"^metric must be a Metric or the name of one: unknown metric 'MAPP'; choose"):
        make_solver(name, metric="MAPP").fit(train, validation=vali)


def test_adarank_keeps_its_own_words_and_takes_any_metric(tiny_problem):
    train, _, _ = tiny_problem.load_fold(1)

    def weights(measure):
        return make_solver("adarank-map").set_params(measure=measure, n_rounds=20).fit(train).coef_.tolist()

    assert weights("ndcg") == weights(NDCG(10, convention="letor", short_queries="own_length"))
    assert weights("map") == weights("MAP") == weights(MAP())
    assert weights("P@3") == weights(Precision(3)) != weights("map")
    with pytest.raises(ValueError, match=r"^measure must be a Metric or the name of one: unknown metric 'mpa'"):
        weights("mpa")


class Unmade(RankRLS):
    def __init__(self, depth=3):
        raise AssertionError("an estimator was made")


class Wide:
    """A class that names its parameters by itself, as those of XGBoost do."""

    def __init__(self, **parameters):
        self.parameters = {"depth": 3, **parameters}

    def get_params(self, deep=True):
        return self.parameters


def test_parameters_are_read_without_an_estimator_where_the_signature_names_them():
    for kind in (Unmade, Wide):
        row = SolverEntry("theirs", "ranker", "Nobody: Nothing", 2000, kind, fixed={"seed": 1})
        assert row.defaults() == {"depth": 3, "seed": 1}


PACKAGE = '''
"""Plain classes: none inherits from moerank, except the metric."""

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from moerank.exports.formats import Format
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
