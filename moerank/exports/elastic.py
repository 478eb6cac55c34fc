"""Export to the learning to rank of Elasticsearch itself, from 8.12 on: trees, and the query of each feature.

A value is the score of its query in single precision, compared with the threshold in double: at most goes left, so
thresholds go out as they are. A document that a query does not match lacks the value, and each split says where it
goes. The leaves are added in double precision. From 8.19 and 9.1 on the engine adds a constant, so that no score is
below 0.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from moerank.exports.deployable import Deployable, Deployment, Node, TemplateFeature, breadth_first, compact_json
from moerank.exports.elasticsearch import POST, URL, asked, refuse_negative
from moerank.rankers.model import Forest

FIRST = (8, 12)
"""The first version with learning to rank of its own."""

NO_INPUT = (8, 15)
"""From this version on a model must not list the fields of its input; before, it has to."""


def elastic(ranker: Deployable, path: Path) -> Deployment:
    """Return the trained model as JSON, with the queries of its features.

    A linear model, a version before 8.12, a definition that is not a query with mustache, and values below 0 in
    training of a feature without a definition are a ValueError.
    """
    if ranker.trees is None:
        raise ValueError(
            "Elasticsearch's own learning to rank takes trees alone, and this ranker is linear; train with "
            'refit = "lambdamart", or write it for the plugin with --format elasticsearch'
        )
    version = ranker.version or NO_INPUT
    if version < FIRST:
        raise ValueError("Elasticsearch has learning to rank of its own from 8.12 on; use --format elasticsearch")
    refuse_negative(ranker)
    extractors = [
        {"query_extractor": {"feature_name": label, "query": _query(name, label, known.elasticsearch)}}
        for name, label, known in zip(ranker.names, ranker.labels, ranker.features, strict=True)
    ]
    model: Node = {
        "description": f"moerank: {ranker.name}",
        "inference_config": {"learning_to_rank": {"feature_extractors": extractors}},
        "definition": {"trained_model": {"ensemble": _ensemble(ranker, ranker.trees)}},
    }
    if version < NO_INPUT:
        model["input"] = {"field_names": list(ranker.labels)}
    return Deployment({path: compact_json(model)}, _next_step(ranker, path))


def _query(name: str, field: str, known: TemplateFeature | None) -> object:
    """Return the query of a feature: as described by the user, else the value of a field where it is there."""
    if known is None:
        script = {"source": f"return doc['{field}'].value;"}
        return {"script_score": {"query": {"exists": {"field": field}}, "script": script}}
    if isinstance(known.template, str) or known.template_language != "mustache":
        raise ValueError(
            f"the definition of {name!r} is not a query; write its template in --features as a table, such as "
            '{match = {title = "{{q}}"}}'
        )
    return known.template


def _ensemble(ranker: Deployable, trees: Forest) -> Node:
    head = {"feature_names": list(ranker.labels), "target_type": "regression"}
    models = [{"tree": {**head, "tree_structure": _tree(ranker.absent, trees, root)}} for root in trees.roots]
    return {**head, "aggregate_output": {"weighted_sum": {}}, "trained_models": models}


def _tree(absent: float, trees: Forest, root: int) -> list[Node]:
    """Return the nodes of a tree, which are named by their place in the list, the root first."""
    nodes: list[Node] = []
    for place, (number, below) in enumerate(breadth_first(trees, root)):
        if number < 0:
            nodes.append({"node_index": place, "leaf_value": trees.leaves[-1 - number]})
            continue
        threshold = trees.thresholds[number]
        nodes.append(
            {
                "node_index": place,
                "decision_type": "lte",
                "split_feature": trees.columns[number],
                "threshold": threshold,
                "default_left": absent <= threshold,
                "left_child": below,
                "right_child": below + 1,
            }
        )
    return nodes


def _next_step(ranker: Deployable, path: Path) -> str:
    model = f"{URL}/_ml/trained_models/{ranker.name}"
    rescore = {"learning_to_rank": {"model_id": ranker.name, "params": asked(ranker)}}
    body = {"query": {"match": {"title": "TEXT"}}, "rescore": {"window_size": 100, **rescore}}
    return "\n".join(
        [
            "Upload it to Elasticsearch 8.12 or later, whose licence includes machine learning; delete a model of this "
            "name first:",
            f"  {shlex.join(['curl', '-X', 'PUT', *POST[3:], model, '--data-binary', f'@{path}'])}",
            "Rank with it; window_size must be at least from + size:",
            f"  {shlex.join([*POST, f'{URL}/INDEX/_search', '--data-binary', json.dumps(body)])}",
            "Check that the scores of the named queries equal the values of the same documents in the training data. "
            "Versions 8.12 to 8.14 need --target-version.",
            *ranker.remarks("elasticsearch"),
        ]
    )
