"""The plugins' files, read and scored as they do, against the models; their own examples against that reader."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.changes import replace
from helpers.served_models import GUIDE, LABELS, MODELS, NAMES, documents, expected, scores, served, stumps, tolerance
from helpers.serving_elasticsearch import PluginModel
from helpers.serving_solr import RefusedError

from moerank.data import UNSCALED, FittedScaling
from moerank.exports.deployable import deployable, read_features
from moerank.exports.elasticsearch import elasticsearch, opensearch

FEATURES, MODEL = Path("out/m-features.json"), Path("out/m.json")


def exported(model, features=None, write=elasticsearch):
    model = replace(model, negative=())  # whose scores are computed all the same
    return write(deployable(model, "moerank", read_features(features)), MODEL)


@pytest.mark.parametrize(("kind", "name"), MODELS, ids=str)
def test_the_plugins_score_as_the_model_does(kind, name):
    model = served(name, kind)
    files = exported(model).files
    assert list(files) == [FEATURES, MODEL]
    assert exported(model, write=opensearch).files == files
    X = documents(model)
    right = expected(model, X)
    assert np.ptp(right) > 0
    for follows_missing in (True, None, False):  # no value is absent
        found = scores(PluginModel(*files.values(), follows_missing), X)
        assert (np.abs(found - right) <= tolerance(model, X)).all()


def test_what_counts_as_less_than_0_when_it_is_missing_goes_where_trees_say():
    model = replace(stumps([-2.0, -1.0, 0.5, -1.5]), missing=-1.5)
    X = np.array([[np.nan], [-1.5], [0.0], [-1.75]])
    files = exported(model).files
    right = expected(model, X)
    for follows_missing in (True, None):
        np.testing.assert_array_equal(scores(PluginModel(*files.values(), follows_missing), X), right)
    old = scores(PluginModel(*files.values(), False), X)
    assert (old != right).tolist() == [True, False, False, False]
    assert "Use OpenSearch 3.8 or later" in exported(model, write=opensearch).next_step
    assert "Use OpenSearch 3.8 or later" not in exported(replace(model, missing=1.0), write=opensearch).next_step
    with pytest.raises(
        ValueError, match="missing values count as -1, but scores of queries are at least 0; define a query"
    ):
        exported(replace(GUIDE, missing=-1.0))
    told = {name: {"elasticsearch": {"template": "{}"}} for name in GUIDE.names}
    assert "Normalisers need version 1.2.1" in exported(GUIDE, told).next_step
    assert "Normalisers need" not in exported(replace(GUIDE, scaling=UNSCALED), told).next_step
    sentence = "A query of --features that does not match counts as 0, not as -1: all must match."
    assert sentence in exported(replace(GUIDE, missing=-1.0), told).next_step
    assert "does not match" not in exported(GUIDE, told).next_step


def test_features_below_0_are_refused_by_name():
    for name, kind in (("unscaled", "linear"), ("standard", "linear"), ("raw", "trees"), ("standard", "trees")):
        model = served(name, kind)
        assert set(model.negative) == {NAMES[5], NAMES[6]} & set(model.names)
        with pytest.raises(ValueError, match=r"these features have in training: 'two\\nlines', '\$x\}\}'\. Add a"):
            elasticsearch(deployable(model, "m", {}), MODEL)
        told = read_features({name: {"elasticsearch": {"template": "{}"}} for name in model.negative})
        elasticsearch(deployable(model, "m", told), MODEL)


def test_opensearch_counts_what_is_absent_as_trees_do_or_refuses_the_file():
    model = stumps([-2.0, 0.5, -1.5, 3.0])
    told = {"x0": {"elasticsearch": {"template": {"match": {"field": "x0"}}}}}
    X = np.array([[np.nan], [-1.75], [0.0], [1.0]])
    deployment = exported(model, told, opensearch)
    np.testing.assert_array_equal(scores(PluginModel(*deployment.files.values(), None), X), expected(model, X))
    assert "Use OpenSearch 3.9 or later" in deployment.next_step
    with pytest.raises(RefusedError):
        PluginModel(*deployment.files.values(), "zero")
    before = exported(model, told).files.values()
    np.testing.assert_array_equal(scores(PluginModel(*before, "zero"), X), expected(model, X))
    model = replace(model, missing=1.0)
    deployment = exported(model, told, opensearch)
    assert "Use OpenSearch 3.8 or later" in deployment.next_step
    np.testing.assert_array_equal(scores(PluginModel(*deployment.files.values(), True), X), expected(model, X))


def test_normalisers_are_the_plugins():
    def norms(model):
        return list(json.loads(exported(model).files[MODEL])["model"]["model"]["feature_normalizers"].values())

    model = served("below 0", "linear")  # which min_max does not take
    assert norms(model) == [
        {"standard": {"mean": -2.0, "standard_deviation": 4.0}},
        {"min_max": {"minimum": 0.0, "maximum": 3.0}},
    ]
    assert norms(replace(model, scaling=replace(model.scaling, kind="standard")))[1] == {
        "standard": {"mean": 0.0, "standard_deviation": 3.0}
    }
    assert [*norms(served("far from 0", "linear"))[0]] == ["standard"]
    assert "feature_normalizers" not in exported(served("unscaled", "linear")).files[MODEL].decode()
    with pytest.raises(ValueError, match="the scale of 'x0' is 1e-50, which is 0 in single precision"):
        exported(replace(served("one feature", "linear"), scaling=FittedScaling("minmax", (0.0,), (1e-50,))))


def test_a_file_says_what_features_are():
    template = {"match": {"title": "{{keywords}}"}}
    told = {
        NAMES[0]: {"name": "bm25", "elasticsearch": {"params": ["keywords"], "template": template}},
        NAMES[1]: {"elasticsearch": {"template_language": "derived_expression", "template": "2 * bm25"}},
    }
    deployment = exported(served("minmax", "linear"), told)
    first, second, third, *_ = json.loads(deployment.files[FEATURES])["featureset"]["features"]
    assert first == {"name": "bm25", "params": ["keywords"], "template_language": "mustache", "template": template}
    assert second["template"] == "2 * bm25"
    assert second["name"] == LABELS[1]
    assert third["template"]["function_score"]["field_value_factor"] == {"field": "f46", "missing": 0.0}
    assert PluginModel(*deployment.files.values()).names[0] == "bm25"
    assert '"params": {"keywords": "TEXT"}' in deployment.next_step
    assert "Use OpenSearch 3.9 or later" in exported(served("raw", "trees"), told, opensearch).next_step


# The examples below are those of the plugin's own tests, to which their names refer.


def plugin(names, type, definition, follows_missing=True, **more):
    value = {"query": {"exists": {"field": names}}, "field_value_factor": {"field": names}, "boost_mode": "replace"}
    features = json.dumps({"featureset": {"features": [{"name": names, "template": {"function_score": value}}]}})
    model = {"type": type, "definition": definition, **more}
    return PluginModel(features, json.dumps({"model": {"name": "m", "model": model}}), follows_missing)


@pytest.mark.parametrize(
    ("norm", "right"),
    [
        ({"standard": {"mean": 1.25, "standard_deviation": 0.25}}, lambda v: (v - 1.25) / 0.25),
        ({"min_max": {"minimum": 0.05, "maximum": 1.25}}, lambda v: (v - 0.05) / 1.2),
    ],
)
def test_the_plugins_normalisers(norm, right):
    """LinearRankerParserTests and StoredLtrModelParserTests."""
    server = plugin("a", "model/linear", {"a": 1}, feature_normalizers={"a": norm})
    assert [server.score({"a": v}) for v in (0, 0.5, 3)] == pytest.approx([right(v) for v in (0, 0.5, 3)], rel=1e-5)


def test_the_plugins_splits():
    """XGBoostJsonParserTests of both plugins: a tie goes to `no`, and what is absent where `missing` says."""
    split = {"nodeid": 0, "depth": 0, "split": "a", "split_condition": 0.123, "yes": 1, "no": 2}
    split["children"] = [{"nodeid": 1, "leaf": 0.5}, {"nodeid": 2, "leaf": 0.2}]
    for missing, right in ((1, 0.5), (2, 0.2)):
        server = plugin("a", "model/xgboost+json", [{**split, "missing": missing}])
        fields = [{"a": 0.122}, {"a": 0.123}, {"a": 0.124}, {}]
        assert [server.score(field) for field in fields] == pytest.approx([0.5, 0.2, 0.2, right])
