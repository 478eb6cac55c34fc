"""Solr's files, read and scored as Solr does, against the models; tests/engines holds that reader against Solr."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.changes import replace
from helpers.served_models import GUIDE, LABELS, MODELS, NAMES, documents, expected, scores, served, stumps, tolerance
from helpers.serving_solr import SolrModel

from moerank.data import FittedScaling
from moerank.exports.deployable import deployable, read_features
from moerank.exports.solr import solr

STORE, MODEL = Path("out/m-features.json"), Path("out/m.json")


def exported(model, features=None):
    return solr(deployable(model, "moerank", read_features(features)), MODEL)


def read(model, features=None):
    files = exported(model, features).files
    assert list(files) == [STORE, MODEL]
    return SolrModel(files[STORE], files[MODEL])


@pytest.mark.parametrize(("kind", "name"), MODELS, ids=str)
def test_solr_scores_as_the_model_does(kind, name):
    model = served(name, kind)
    X = documents(model)
    found, right = scores(read(model), X), expected(model, X)
    assert np.ptp(right) > 0
    assert (np.abs(found - right) <= tolerance(model, X)).all()


def test_files_have_solrs_normalisers_and_types():
    model = replace(served("minmax", "linear"), missing=0.5)
    files = {path: json.loads(content) for path, content in exported(model).files.items()}
    assert [feature["name"] for feature in files[STORE]] == [LABELS[column] for column in model.columns]
    first, norm = files[STORE][0], files[MODEL]["features"][0]["norm"]
    assert first["class"] == "org.apache.solr.ltr.feature.FieldValueFeature"
    assert first["params"] == {"field": "BM25_of_title", "defaultValue": "0.5"}
    offset, scale = model.scaling.offset[0], model.scaling.scale[0]
    assert norm["class"] == "org.apache.solr.ltr.norm.MinMaxNormalizer"
    assert norm["params"] == {"min": repr(float(np.float32(offset))), "max": repr(float(np.float32(offset + scale)))}
    kinds = {name: read(served(name, "linear")).norms for name in ("standard", "unscaled")}
    assert {identity for *_, identity in kinds["standard"].values()} == {False}
    assert {identity for *_, identity in kinds["unscaled"].values()} == {True}


def test_thresholds_part_all_numbers_of_single_precision_where_the_tree_does():
    """All of one order of magnitude: Solr's sum with 1e-6 has many values for each of its own there."""
    thresholds = [2e-3, 1e-3, 0.1, 0.3, 0.5, 1 / 3, 1.5, 31.9, 100.0, 1e7, -1e-2, -0.3, -2.5, 1e-35]
    trees = json.loads(exported(stumps(thresholds)).files[MODEL])["params"]["trees"]
    assert float(trees[-1]["root"]["threshold"]) + np.float32(1e-6) <= 0  # what counts as 0 goes left, and no more
    for threshold, tree in zip(thresholds[:-1], trees, strict=False):
        nearest = np.float32(threshold)
        steps = np.arange(-40, 41) + nearest.view(np.int32)
        x = steps.astype(np.int32).view(np.float32)
        with_solr = x <= np.float32(float(tree["root"]["threshold"])) + np.float32(1e-6)
        np.testing.assert_array_equal(with_solr, x.astype(float) <= threshold)
        assert 0 < with_solr.sum() < 81


def test_thresholds_that_solr_misses_are_named():
    """Next to -1e-6, single precision has steps of 1.1e-13."""
    warned = {
        size: "tells the values of 'x0' apart. Multiply them by 1e6" in exported(stumps([0.1 * size, size])).next_step
        for size in (1.0, 1e-6, 1e-8, 1e-10, 1e-12, 1e-20)
    }
    assert list(warned.values()) == [False, False, False, True, True, True]
    assert "Multiply" not in exported(stumps([1e-35])).next_step + exported(stumps([1.7e9, 1.7e9 + 256])).next_step


def test_a_file_says_what_features_are():
    told = {
        NAMES[0]: {"name": "bm25", "solr": {"class": "SolrFeature", "params": {"q": "{!field f=title}${user_query}"}}},
        NAMES[1]: {"solr": {"class": "ValueFeature", "params": {"value": "${price:4}", "defaultValue": "NaN"}}},
        NAMES[2]: {"solr": {"class": "FieldLengthFeature", "params": {"field": "body", "defaultValue": 7}}},
        "of another model": {"name": "x"},
    }
    deployment = exported(replace(served("minmax", "linear"), missing=0.5), told)
    store = json.loads(deployment.files[STORE])
    assert store[0]["name"] == "bm25"
    assert store[0]["class"] == "org.apache.solr.ltr.feature.SolrFeature"
    assert store[0]["params"] == {"q": "{!field f=title}${user_query}"}  # as Solr logs it: 0 without a match
    assert store[1]["params"] == {"value": "${price:4}", "defaultValue": "0.5"}
    assert store[2]["params"] == {"field": "body", "defaultValue": 7}
    assert SolrModel(*deployment.files.values()).names[:2] == ["bm25", "price_net"]
    assert '\'rq={!ltr model=moerank reRankDocs=100 efi.price="TEXT" efi.user_query="TEXT"}\'' in deployment.next_step
    assert "without defaultValue counts as 0 where it has no value, not as 0.5." in deployment.next_step
    assert "'BM25 of title' is bm25, 'price.net' is price_net" in deployment.next_step
    assert (
        "Features without a definition in --features are fields of these names: gr__e, two_lines"
        in deployment.next_step
    )


def test_the_next_step_names_the_files():
    step = exported(GUIDE).next_step
    assert "curl -X PUT -H 'Content-type: application/json' http://localhost:8983/solr/COLLECTION/" in step
    assert "/schema/feature-store --data-binary @out/m-features.json\n" in step
    assert "/schema/model-store --data-binary @out/m.json\n" in step
    assert "A missing value counts as 0 in the engine. The training data had none: check that yours are never" in step
    assert "fewer than three digits of 'x0'" in exported(served("far from 0", "linear")).next_step
    assert "fewer than three digits" not in step


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": (1e39, 1.0, 1.0)}, "the weight of 'bm25' is 1e\\+39, too large for single precision"),
        (
            {"scaling": FittedScaling("standard", (0, 0, 0), (1, 1e-46, 1))},
            "the scale of 'price' is 1e-46, which is 0 in single precision",
        ),
        ({"scaling": FittedScaling("minmax", (0, -1e39, 0), (1, 1, 1))}, "the offset of 'price' is -1e\\+39"),
        ({"scaling": FittedScaling("minmax", (0, 0, 3e38), (1, 1, 3e38))}, "the maximum of 'age' is 6e\\+38"),
        ({"missing": 1e40}, "the number for missing values is 1e\\+40"),
    ],
)
def test_numbers_beyond_single_precision_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        exported(replace(GUIDE, **change))


def test_solr_adds_a_millionth_to_thresholds():
    """TestMultipleAdditiveTreesModel in solr/modules/ltr."""
    store = [{"name": "x", "class": "org.apache.solr.ltr.feature.ValueFeature", "params": {"value": "0"}}]
    root = {"feature": "x", "threshold": "0.5", "left": {"value": "1"}, "right": {"value": "2"}}
    model = {"class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel", "store": "s", "name": "m"}
    model |= {"features": [{"name": "x"}], "params": {"trees": [{"weight": "1", "root": root}]}}
    server = SolrModel(json.dumps(store), json.dumps(model))
    assert [server.score({"x": x}) for x in (0.5, 0.500001, 0.500002)] == [1, 1, 2]
