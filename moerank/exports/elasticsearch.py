"""Export to the learning-to-rank plugins of Elasticsearch (o19s) and OpenSearch: a feature set and a model.

The value of a feature is the score of its query. The plugins compute in single precision: a linear model as Σ wᵢ zᵢ
over normalised values zᵢ in the order of the set, trees as the sum of one leaf each. A value goes left if it is less
than the threshold, so the next number above the threshold is written; each split says where an absent value goes.
"""

import json
import shlex
from pathlib import Path

from moerank.exports.deployable import (
    Deployable,
    Deployment,
    LinearDeployable,
    Node,
    TreesDeployable,
    json_bytes,
    nested_trees,
    next_single_above,
    normaliser,
    refused_below_zero,
    to_single,
)

PLUGIN_STEP = """\
Upload it to {system}. The first command is needed once; delete existing objects of these names first:
  curl -X PUT {engine}/_ltr
  {post} {engine}/_ltr/_featureset/{name} --data-binary {features}
  {post} {engine}/_ltr/_featureset/{name}/_createmodel --data-binary {model}
Rank with it:
  {post} {engine}/INDEX/_search --data-binary {body}
Check that the logged values of the features equal those of the same documents in the training data, and that none is \
negative, which is an error in the engine. Set window_size to at least the number of documents shown: documents beyond \
it score 0, which is above negative scores."""


def elasticsearch(ranker: Deployable, path: Path) -> Deployment:
    """Return the model as JSON for Elasticsearch, and its feature set in a file of the same name with ``-features``.

    Numbers that single precision cannot hold are a ValueError. So are training values below 0 of a feature without a
    definition in ``features``, and a number below 0 for missing values in a linear model.
    """
    remarks = []
    if isinstance(ranker, LinearDeployable) and ranker.scaling:
        remarks.append(
            "Normalisers need version 1.2.1 of the plugin or later, which is for Elasticsearch 7.7."
        )
    system = "Elasticsearch with the plugin elasticsearch-learning-to-rank"
    return _files(ranker, path, system, remarks)


def _files(
    ranker: Deployable,
    path: Path,
    system: str,
    remarks: list[str],
    missing_as_zero: bool = False,
) -> Deployment:
    """Return the feature set and the model, with instructions for a `system` that end with its own remarks."""
    features = path.with_name(f"{path.stem}-features{path.suffix}")
    text = json_bytes({"featureset": {"features": _feature_set(ranker)}})
    sentences = [*ranker.remarks("elasticsearch"), *remarks]
    if isinstance(ranker, TreesDeployable):
        definition: object = _trees(ranker)
        if missing_as_zero:
            definition = {"objective": "rank:ndcg", "missing_as_zero": True, "splits": definition}
        model: Node = {"type": "model/xgboost+json", "definition": definition}
    else:
        model = _linear(ranker)
        if ranker.engine_missing != 0 and any(entry.elasticsearch for entry in ranker.features):
            sentences.append(
                "A query of --features that does not match counts as 0, "
                f"not as {ranker.engine_missing:g}: all must match."
            )
    named_model: Node = {"model": {"name": ranker.name, "model": model}}
    content = json_bytes(named_model, compact=isinstance(ranker, TreesDeployable))
    step = "\n".join([_next_step(ranker, features, path, system), *sentences])
    return Deployment({features: text, path: content}, step)


def _feature_set(ranker: Deployable) -> list[Node]:
    """Return the features: as described by the user, else the value of a field, which must not be below 0."""
    rows = list(zip(ranker.names, ranker.labels, ranker.features, strict=True))
    fields = [name for name, _, entry in rows if entry.elasticsearch is None]
    reasons = refused_below_zero(name for name in fields if name in ranker.negative)
    if reasons:
        raise ValueError(reasons[0])
    features = []
    for name, label, entry in rows:
        if entry.elasticsearch:
            query = entry.elasticsearch.model_dump(mode="json")
        else:
            query = {"params": [], "template": _field_value(ranker, name, label)}
        features.append({"name": label, **query})
    return features


def _field_value(ranker: Deployable, name: str, field: str) -> Node:
    """Return the query whose score is the value of a field, with a default for documents without a value."""
    if ranker.engine_missing >= 0:
        value = {
            "field": field,
            "missing": to_single(ranker.engine_missing, "the number for missing values"),
        }
        query: Node = {"match_all": {}}
    elif isinstance(ranker, TreesDeployable):  # each split says where an absent value goes
        value, query = {"field": field}, {"exists": {"field": field}}
    else:
        raise ValueError(
            f"missing values count as {ranker.engine_missing:g}, but scores of queries are "
            f"at least 0; define a query for {name!r} with --features, or train with another number"
        )
    return {
        "function_score": {"query": query, "field_value_factor": value, "boost_mode": "replace"}
    }


def _linear(ranker: LinearDeployable) -> Node:
    model: Node = {"type": "model/linear"}
    weights = dict(zip(ranker.labels, ranker.single_weights, strict=True))
    if ranker.scaling:
        kind = ranker.scaling.kind
        norms = [_normaliser(*normaliser(term, kind)) for term in ranker.terms]
        model["feature_normalizers"] = dict(zip(ranker.labels, norms, strict=True))
    model["definition"] = weights
    return model


def _normaliser(offset: float, scale: float, maximum: float | None) -> Node:
    """Return a min_max normaliser, whose minimum must not be negative, or a standard one."""
    if maximum is not None and offset >= 0:
        return {"min_max": {"minimum": offset, "maximum": maximum}}
    return {"standard": {"mean": offset, "standard_deviation": scale}}


def _trees(ranker: TreesDeployable) -> list[Node]:
    """Return trees in XGBoost's format; the numbers of leaves follow those of splits."""
    trees = ranker.trees
    n_splits = len(trees.columns)
    depth = [0] * n_splits
    leaves: list[Node] = [
        {"nodeid": n_splits + number, "leaf": to_single(value, "a leaf")}
        for number, value in enumerate(trees.leaves)
    ]
    splits = []
    for number, threshold in enumerate(trees.thresholds):
        children = trees.left[number], trees.right[number]
        for child in children:
            if child >= 0:
                depth[child] = depth[number] + 1
        yes, no = (child if child >= 0 else n_splits - 1 - child for child in children)
        splits.append(
            {
                "nodeid": number,
                "depth": depth[number],
                "split": ranker.labels[trees.columns[number]],
                "split_condition": next_single_above(threshold),
                "yes": yes,
                "no": no,
                "missing": yes if ranker.engine_missing <= threshold else no,
            }
        )
    return nested_trees(trees, splits, leaves, lambda *children: {"children": list(children)})


def _next_step(ranker: Deployable, features: Path, path: Path, system: str) -> str:
    params: Node = {}
    for entry in ranker.features:
        if entry.elasticsearch:
            params |= dict.fromkeys(entry.elasticsearch.params, "TEXT")
    query = {"sltr": {"model": ranker.name, "params": params}}
    rescore = {"query_weight": 0, "rescore_query_weight": 1, "rescore_query": query}
    body = {
        "query": {"match": {"title": "TEXT"}},
        "rescore": {"window_size": 100, "query": rescore},
    }
    return PLUGIN_STEP.format(
        system=system,
        name=ranker.name,
        engine="http://localhost:9200",
        post="curl -X POST -H 'Content-Type: application/json'",
        features=shlex.quote(f"@{features}"),
        model=shlex.quote(f"@{path}"),
        body=shlex.quote(json.dumps(body)),
    )


def opensearch(ranker: Deployable, path: Path) -> Deployment:
    """Return the model as JSON for OpenSearch; files and errors are those of `elasticsearch`.

    The queries written here always have a value, unless missing values count as less than 0. If a value can be absent,
    each split says where it goes, and OpenSearch obeys from version 3.8 on. From 3.9 on a model may say that an absent
    value is 0; earlier versions refuse that key, and versions before 3.2 take an absent value for 0 in any model.
    """
    system = "OpenSearch with the plugin opensearch-learning-to-rank-base"
    has_value = ranker.engine_missing >= 0 and not any(
        entry.elasticsearch for entry in ranker.features
    )
    if isinstance(ranker, LinearDeployable) or has_value:
        return _files(ranker, path, system, [])
    missing_as_zero = ranker.engine_missing == 0
    if missing_as_zero:
        version = "3.9"
        earlier = "refuse this model. Before 3.2 use the file of --format elasticsearch."
    else:
        version, earlier = "3.8", "score them differently."
    remark = (
        f"Use OpenSearch {version} or later for queries without a match: earlier versions {earlier}"
    )
    return _files(ranker, path, system, [remark], missing_as_zero)
