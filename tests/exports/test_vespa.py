"""Vespa's files, read and scored as Vespa does, against the models; tests/engines holds that reader against Vespa."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.changes import replace
from helpers.served_models import GUIDE, MODELS, NAMES, documents, expected, served, stumps, tolerance
from helpers.serving_vespa import VespaProfile

from moerank.exports.deployable import deployable, read_features
from moerank.exports.vespa import vespa

PROFILE, TREES = Path("out/m.profile"), Path("out/moerank.json")


def exported(model, features=None):
    return vespa(deployable(model, "moerank", read_features(features)), PROFILE)


def read(deployment):
    models = {path.name: content for path, content in deployment.files.items() if path != PROFILE}
    return VespaProfile(deployment.files[PROFILE].decode(), models)


def scores(deployment, X):
    server = read(deployment)
    fields = [f"attribute({name.removeprefix('f_')})" for name in server.matched[:-1]]
    rows = [dict(zip(fields, row, strict=True)) for row in X.tolist()]
    return np.array([server.score({name: x for name, x in row.items() if not np.isnan(x)}) for row in rows])


@pytest.mark.parametrize(("kind", "name"), MODELS, ids=str)
def test_vespa_scores_as_the_model_does_and_linear_models_in_double_precision(kind, name):
    model = served(name, kind)
    X, deployment = documents(model), exported(model)
    linear, right = kind == "linear", expected(model, X)
    assert list(deployment.files) == ([PROFILE] if linear else [TREES, PROFILE])
    allowed = tolerance(model, X)
    allowed = 1e-11 * np.abs(right) + 1e-8 * allowed.max() if linear else allowed
    assert (np.abs(scores(deployment, X) - right) <= allowed).all()


def test_the_worked_example():
    X = np.array([[3.2, 20, 45], [3.2, np.nan, 45], [3.2, 20, np.nan]])
    np.testing.assert_allclose(scores(exported(GUIDE), X), [2.1, 2.6, -12.9], rtol=1e-14)


def test_lightgbms_trees_are_read_as_vespa_imports_them():
    """A tie goes right, what is not there left if `default_left` says so, and else right."""
    leaves = {"left_child": {"leaf_value": 1.0}, "right_child": {"leaf_value": 2.0}}
    for default_left, right in ((True, [1, 2, 2, 1]), (False, [1, 2, 2, 2])):
        node = {"split_feature": 0, "threshold": 0.5, "decision_type": "<=", "default_left": default_left, **leaves}
        trees = {"objective": "lambdarank", "feature_names": ["attribute(x)"], "pandas_categorical": []}
        dump = {**trees, "tree_info": [{"tree_structure": node}]}
        server = VespaProfile(exported(stumps([0.0])).files[PROFILE].decode(), {"moerank.json": json.dumps(dump)})
        given = [{"attribute(x)": x} for x in (0.25, 0.5, 0.75)]
        assert [server.score(features) for features in [*given, {}]] == right


def test_a_file_says_what_features_are():
    told = {NAMES[0]: {"name": "bm25", "vespa": "bm25(title)"}, NAMES[1]: {"vespa": "query(price)"}}
    model = replace(served("minmax", "linear"), missing=0.5)
    server = read(exported(model, told))
    assert server.functions["f_bm25"] == "if (isNan(bm25(title)), 0.5, bm25(title))"
    assert server.functions["f_price_net"] == "if (isNan(query(price)), 0.5, query(price))"
    assert server.functions["f_f46"] == "if (isNan(attribute(f46)), 0.5, attribute(f46))"
    assert server.name == "moerank"
    step = exported(served("raw", "trees"), told).next_step
    assert "Copy out/m.profile to schemas/SCHEMA/moerank.profile in the application package" in step
    assert ", and out/moerank.json to models. Deploy" in step
    assert "ranking.profile=moerank\n" in step


def test_rank_features_are_no_fields():
    step = exported(replace(GUIDE, names=("bm25(title)", "closeness(field,embedding)", "price"))).next_step
    assert "are fields of these names: price." in step
    assert "Names in the engine" not in step


def test_profile_and_trees_are_two_files():
    with pytest.raises(ValueError, match=r"moerank\.json is the name of the file of the trees; choose another file"):
        vespa(deployable(served("raw", "trees"), "moerank", {}), TREES)
    assert vespa(deployable(GUIDE, "moerank", {}), TREES)


def test_no_name_of_a_function_is_taken_twice():
    names = ("moerank", "score_moerank", "if")
    deployment = vespa(deployable(replace(GUIDE, names=names), "f_moerank", {}), PROFILE)
    assert set(read(deployment).functions) == {"f_moerank", "f_score_moerank", "f_if", "score_f_moerank"}
