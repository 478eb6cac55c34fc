"""Models of Elasticsearch's own learning to rank, read and scored as it does, against the models."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.changes import replace
from helpers.served_models import GUIDE, LABELS, NAMES, TREES, documents, expected, scores, served, stumps, tolerance
from helpers.serving_elastic import ElasticModel
from helpers.serving_solr import RefusedError

from moerank.exports.deployable import deployable, read_features
from moerank.exports.elastic import elastic


def split(index, feature, threshold, default_left, left, right):
    return {
        "node_index": index,
        "decision_type": "lte",
        "split_feature": feature,
        "threshold": threshold,
        "default_left": default_left,
        "left_child": left,
        "right_child": right,
    }


def leaf(index, value):
    return {"node_index": index, "leaf_value": value}


HEAD = {"feature_names": ["title_bm25", "stars"], "target_type": "regression"}
STRUCTURES = [
    [split(0, 0, 2.5, True, 1, 2), leaf(1, -0.5), split(2, 1, 4.0, False, 3, 4), leaf(3, 0.25), leaf(4, 1.0)],
    [leaf(0, 0.125)],
]
TREES_BY_HAND = [{"tree": {**HEAD, "tree_structure": nodes}} for nodes in STRUCTURES]
EXAMPLE = {**HEAD, "aggregate_output": {"weighted_sum": {}}, "trained_models": TREES_BY_HAND}


def exported(model, features=None, version=None):
    model = replace(model, negative=())  # whose scores are computed all the same
    return elastic(deployable(model, "moerank", read_features(features), version), Path("out/m.json"))


def read(text):
    server = ElasticModel(text)
    server.value = lambda query, fields: fields.get(query["script_score"]["query"]["exists"]["field"])
    return server


@pytest.mark.parametrize("name", TREES)
def test_the_engine_scores_as_the_model_does(name):
    model = served(name, "trees")
    ((path, text),) = exported(model).files.items()
    assert path == Path("out/m.json")
    X = documents(model)
    right = expected(model, X)
    assert np.ptp(right) > 0
    assert (np.abs(scores(read(text), X) - right) <= tolerance(model, X)).all()


def test_the_reader_scores_an_example_by_hand():
    queries = {name: {"match": {"field": name}} for name in EXAMPLE["feature_names"]}
    extractors = [{"query_extractor": {"feature_name": name, "query": query}} for name, query in queries.items()]
    text = json.dumps(
        {
            "description": "an example",
            "inference_config": {"learning_to_rank": {"feature_extractors": extractors}},
            "definition": {"trained_model": {"ensemble": EXAMPLE}},
        }
    )
    given = [(6.25, 4.5), (2.5, None), (None, 3.0), (8.0, 5.0), (6.25, None), (6.25, 4.0)]
    rows = [{name: x for name, x in zip(queries, row, strict=True) if x is not None} for row in given]
    assert [ElasticModel(text).score(row) for row in rows] == [1.125, -0.375, -0.375, 1.125, 1.125, 0.375]


def test_versions_before_815_list_the_fields_of_the_input():
    text = exported(served("raw", "trees"), version="8.14").files[Path("out/m.json")]
    with pytest.raises(RefusedError, match="field_names"):
        ElasticModel(text)
    assert ElasticModel(text, (8, 14)).names == [LABELS[f] for f in served("raw", "trees").columns]
    with pytest.raises(ValueError, match=r"from 8\.12 on; use --format elasticsearch"):
        exported(served("raw", "trees"), version="8.11")


def test_definitions_become_the_queries_of_features():
    told = {NAMES[0]: {"name": "bm25", "elasticsearch": {"params": ["q"], "template": {"match": {"title": "{{q}}"}}}}}
    deployment = exported(served("raw", "trees"), told)
    server = ElasticModel(*deployment.files.values())
    assert server.queries["bm25"] == {"match": {"title": "{{q}}"}}
    assert '"params": {"q": "TEXT"}' in deployment.next_step
    assert "/_ml/trained_models/moerank --data-binary @out/m.json" in deployment.next_step
    told[NAMES[0]]["elasticsearch"] = {"template": "a * 2", "template_language": "derived_expression"}
    with pytest.raises(ValueError, match="the definition of 'BM25 of title' is not a query"):
        exported(served("raw", "trees"), told)


def test_linear_models_and_negative_fields_are_refused():
    with pytest.raises(ValueError, match='this ranker is linear; train with refit = "lambdamart"'):
        exported(GUIDE)
    model = replace(stumps([0.5]), negative=("x0",))
    with pytest.raises(ValueError, match=r"'x0'\. The engine refuses them as scores of a query"):
        elastic(deployable(model, "moerank", {}), Path("m.json"))


def test_a_feature_without_a_definition_is_the_value_of_a_field_where_it_is_there():
    model = replace(stumps([0.5, 2.0]), missing=1.0)
    server = ElasticModel(*exported(model).files.values())
    right = expected(model, np.array([[0.5], [0.75], [3.0], [np.nan]]))
    assert [server.score(fields) for fields in ({"x0": 0.5}, {"x0": 0.75}, {"x0": 3.0}, {})] == right.tolist()
    with pytest.raises(RefusedError, match="script_score script returned an invalid score"):
        server.score({"x0": -1.0})
