"""The export of models and estimators: what is written where, and what is refused in which words."""

import os
import re
import tomllib

import numpy as np
import pytest
from helpers.changes import replace
from helpers.served_models import GUIDE, documents, expected, served
from helpers.serving_solr import SolrModel
from hypothesis import given
from hypothesis import strategies as st

import moerank as mr
from moerank.checks import plain_name
from moerank.data import PER_QUERY, fit_scaling, make_planted
from moerank.exports.deployable import (
    deployable,
    engine_names,
    largest_value,
    next_single_above,
    read_features,
    round_down_to_single,
)
from moerank.rankers.model import Forest, Model

BUDGET = {"population": 8, "generations": 2}

OWN = ("solr", "elasticsearch", "opensearch", "vespa", "onnx", "python", "json")
"""The package's formats. A format that is added says in its own test how it takes deep trees and equal names."""


@pytest.fixture(scope="module")
def train():
    return make_planted(n_queries=8, n_documents=12, seed=1).data


@pytest.fixture(scope="module")
def solver(train):
    stages = {"instance_selection": False, "feature_selection": BUDGET, "ensemble": BUDGET}
    return mr.MOFSRank(random_state=0, **stages).fit(fit_scaling(train, "standard").apply(train))


def solr_scores(deployment, names, X):
    server = SolrModel(*deployment.files.values())
    return [server.score(dict(zip(names, row, strict=True))) for row in X.tolist()]


def test_a_solver_is_exported_with_its_chosen_member_or_another(train, solver, tmp_path):
    stages = {"instance_selection": False, "feature_selection": BUDGET, "ensemble": False}
    of_trees = mr.MOFSRank(refit=mr.RankBoost(5), tune=False, random_state=0, **stages).fit(train)
    there = [name.replace(" ", "_") for name in train.feature_names]
    X = train.X[:20].astype(np.float32)
    exported = mr.export(solver, "solr", tmp_path / "chosen.json")
    assert sorted(os.listdir(tmp_path)) == ["chosen-features.json", "chosen.json"]
    np.testing.assert_allclose(solr_scores(exported, there, X), solver.predict(X.astype(float)), rtol=1e-4, atol=1e-6)
    assert len(solver.front_) > 1
    for member, features in enumerate(solver.front_["features"]):
        exported = mr.export(solver, "solr", tmp_path / f"{member}.json", member=member)
        assert SolrModel(*exported.files.values()).names == [there[column] for column in features]
        right = solver.scaling_.table(X.astype(float)) @ solver.front_coefs_[member]
        np.testing.assert_allclose(solr_scores(exported, there, X), right, rtol=1e-4, atol=1e-6)
    assert len(of_trees.front_) > 1
    for member, right in enumerate(of_trees.front_rankers_.scores(X.astype(float)).T):
        exported = mr.export(of_trees, "solr", tmp_path / f"trees {member}.json", member=member)
        np.testing.assert_allclose(solr_scores(exported, there, X), right, rtol=1e-4, atol=1e-6)


def test_features_without_names_are_numbered(train, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ranker = mr.RankRLS().fit(train.X, train.y, qid=train.qid)
    exported = mr.export(ranker, "solr", name="shop")
    assert sorted(os.listdir(tmp_path)) == ["solr-features.json", "solr.json"]
    assert SolrModel(*exported.files.values()).names[:3] == ["f1", "f2", "f3"]
    assert "model=shop" in exported.next_step


def test_thresholds_of_scaled_values_are_rewritten_exactly():
    for name in ("scaled", "standard"):
        model = served(name, "trees")
        ready = deployable(model, "moerank", {})
        X = np.nan_to_num(documents(model), nan=0.25)
        offset, scale = np.array(model.scaling.offset), np.array(model.scaling.scale)
        ties = np.array(model.trees.thresholds)[:50, None] * scale + offset
        X = np.concatenate([X, ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)])
        np.testing.assert_array_equal(ready.trees.scores(X), expected(model, X))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (replace(GUIDE, weights=None), "this model has neither weights nor trees, and cannot be exported"),
        (Model(names=(), columns=(), weights=()), "uses no feature; all documents get the same score"),
        (
            replace(GUIDE, scaling=PER_QUERY),
            'scaled per query, by moerank or in the files .*; train on raw values with normalize = "minmax" or',
        ),
        (
            replace(GUIDE, missing="query-worst", scaling=PER_QUERY),
            "scaled per query, .*; the rule 'query-worst' for missing values depends on .*; train with a number",
        ),
    ],
)
def test_what_no_system_can_serve_is_refused(tmp_path, model, message):
    with pytest.raises(ValueError, match=message):
        mr.export(model, "solr", tmp_path / "model")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("format", ["onnx", "python", "json"])
def test_a_tree_of_any_depth_is_written(tmp_path, format):
    n = 5000
    below = (*range(1, n), -1 - n)
    forest = Forest(
        (0,) * n, tuple(-1.0 * k for k in range(n)), below, tuple(range(-1, -1 - n, -1)), (1.0,) * (n + 1), (0,)
    )
    model = Model(names=("x",), columns=(0,), trees=forest)
    assert mr.export(model, format, tmp_path / "model").files


@pytest.mark.parametrize("format", OWN)
def test_names_collide_only_where_they_are_rewritten(tmp_path, format):
    model = replace(GUIDE, names=("a b", "a.b", "age"))
    if format in ("onnx", "python", "json"):
        assert mr.export(model, format, tmp_path / "model").files
        return
    with pytest.raises(ValueError, match=r"'a b' and 'a\.b' would both be called 'a_b'"):
        mr.export(model, format, tmp_path / "model")
    told = {"a.b": {"name": "second"}}
    content = b"".join(mr.export(model, format, tmp_path / "model", features=told).files.values())
    assert b"a_b" in content and b"second" in content


def test_what_cannot_be_exported_is_said(train, solver, tmp_path):
    ranker = mr.RankRLS().fit(train)
    for exported, arguments, message in [
        (ranker, {"format": "sorl"}, "format must be one of .*, not 'sorl'; did you mean 'solr'"),
        (ranker, {"member": 0}, "RankRLS has no front with members to export"),
        (solver, {"member": len(solver.front_)}, f"member must be at most {len(solver.front_) - 1}"),
        (solver, {"member": -1}, "member must be at least 0"),
        (mr.RankRLS(), {}, "RankRLS is not fitted"),
        (mr.RankRLS().fit(mr.query_level_norm(train)), {}, "scaled per query"),
        (ranker, {"name": "Shop"}, "name must have lower-case letters"),
    ]:
        with pytest.raises(ValueError, match=message):
            mr.export(exported, **{"format": "solr", "out": tmp_path / "x.json"} | arguments)
    assert os.listdir(tmp_path) == []


def test_nothing_that_is_there_is_written_over(tmp_path):
    path = tmp_path / "new" / "m.json"
    for _ in range(2):  # the same again is no harm
        written = mr.export(GUIDE, "solr", path)
    other = replace(GUIDE, weights=(1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match=r"m\.json exists with other content; remove it, or choose another"):
        mr.export(other, "solr", path)
    path.unlink()
    (path.parent / "m-features.json").write_bytes(b"")
    with pytest.raises(ValueError, match=r"m-features\.json exists with other content"):
        mr.export(GUIDE, "solr", path)
    assert not path.exists()
    (path.parent / "m-features.json").unlink()
    path.mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        mr.export(GUIDE, "solr", path)
    assert written.files[path]


@given(st.text())
def test_every_name_becomes_a_plain_one_that_is_kept_from_then_on(name):
    plain = plain_name(name)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", plain, re.ASCII)
    assert len(plain) in (len(name), len(name) + 1)
    assert plain_name(plain) == plain
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII):
        assert plain == name


@pytest.mark.parametrize("name", ["a b", 'a"b', "a\\b", "a\nb", "a\x7fb", "a\x00b"])
def test_two_features_of_one_name_are_refused_with_the_remedy(name):
    with pytest.raises(ValueError, match="would both be called 'a_b'; rename one of them") as caught:
        engine_names(["a_b", name], [None, None])
    key, value = re.search(r"--features: \[(.*)\] with (.*)$", str(caught.value), re.DOTALL).groups()
    told = tomllib.loads(f"[{key}]\n{value}")
    assert engine_names(["a_b", name], [None, read_features(told)[name].name]) == ("a_b", "a_b_2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not a TOML file"),
        ('["x"]\nnane = "y"', "x.nane: Extra inputs"),
        ('["x"]\nname = "a b"', "x.name: String should match pattern"),
        ('["x"]\nsolr = {params = {}}', "x.solr.class: Field required"),
        ('["x"]\nsolr = {class = "SolrFeature", params = {q = 2026-01-01}}', "x.solr.params.q"),
        ('["x"]\nelasticsearch = {params = ["q"]}', "x.elasticsearch.template: Field required"),
        ('["x"]\nvespa = "a\\nb"', "x.vespa: String should match pattern"),
        ("x = 1", "x: Input should be a valid dictionary"),
    ],
)
def test_files_that_say_something_else_are_refused_with_the_place(tmp_path, text, message):
    path = tmp_path / "features.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(f"{path}: {message}")):
        read_features(path)


FINITE = st.floats(allow_nan=False, allow_infinity=False)
LARGEST = float(np.finfo(np.float32).max)


@given(FINITE)
def test_single_precision_is_parted_where_double_precision_is(value):
    below, above = round_down_to_single(value), next_single_above(value)
    assert np.float32(below) == below and np.float32(above) == above
    assert abs(below) <= LARGEST and abs(above) <= LARGEST
    if abs(value) < LARGEST:
        assert below <= value < above
        assert np.nextafter(np.float32(below), np.float32(np.inf)) == above
    else:
        assert below == np.copysign(LARGEST, value)


@given(st.lists(FINITE, min_size=1, max_size=4))
def test_the_largest_value_is_found_of_any_size(values):
    bounds = np.array(values)
    np.testing.assert_array_equal(largest_value(len(values), lambda x: x <= bounds, np.float64), bounds)
    singles = np.array([round_down_to_single(value) for value in values])
    np.testing.assert_array_equal(largest_value(len(values), lambda x: x <= bounds, np.float32), singles)
