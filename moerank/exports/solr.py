"""Apache Solr's module ltr: a feature store, and a LinearModel or MultipleAdditiveTreesModel over it.

Solr computes a linear model as Σ wᵢ zᵢ over its features in their order, zᵢ what the feature's normaliser makes of its
value, and of trees the sum of one leaf each; all in single precision. A value goes left where it is at most the
threshold plus 1e-6, so thresholds are written that much smaller.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from moerank.exports.deployable import (
    Deployable,
    Deployment,
    Floats,
    Node,
    compact_json,
    largest_value,
    nested_trees,
    normaliser,
    single,
    single_at_most,
)
from moerank.rankers.model import Forest
from moerank.systems import command_line

__all__ = ["solr"]

PACKAGE = "org.apache.solr.ltr"
URL = "http://localhost:8983/solr/COLLECTION"


def solr(ranker: Deployable, path: Path) -> Deployment:
    """Write a model in Solr's format, and its feature store beside it.

    Parameters
    ----------
    ranker : Deployable
    path : Path
        Of the model; the features go to the same name with ``-features``.

    Raises
    ------
    ValueError
        If a number is too large, or a scale too small, for single precision.

    Examples
    --------
    >>> from moerank.exports.deployable import deployable
    >>> from moerank.rankers.model import Model
    >>> model = deployable(Model(names=("price",), columns=(0,), weights=(-0.5,)), "moerank", {})
    >>> json.loads(solr(model, Path("solr.json")).files[Path("solr.json")])["params"]
    {'weights': {'price': -0.5}}
    """
    store = path.with_name(f"{path.stem}-features{path.suffix}")
    features = json.dumps(_store(ranker), indent=1, allow_nan=False) + "\n"
    if ranker.trees is not None:
        content = compact_json(_trees_model(ranker, ranker.trees))
    else:
        content = (json.dumps(_linear_model(ranker), indent=1, allow_nan=False) + "\n").encode()
    return Deployment({store: features.encode(), path: content}, _next_step(ranker, store, path))


def _store(ranker: Deployable) -> list[Node]:
    """Return the features: what a file says of them, else the value of a field of their name."""
    features = []
    for label, known in zip(ranker.labels, ranker.features, strict=True):
        name, params = "FieldValueFeature", dict[str, Any](field=label)
        if known.solr is not None:
            name, params = known.solr.class_, dict(known.solr.params)
        if ranker.missing is not None:
            params.setdefault("defaultValue", repr(single(ranker.missing, "the value of what is missing")))
        whole = name if "." in name else f"{PACKAGE}.feature.{name}"
        features.append({"store": ranker.name, "name": label, "class": whole, "params": params})
    return features


def _linear_model(ranker: Deployable) -> Node:
    """Return a linear model: weights are numbers, and the values of normalisers texts, as Solr takes them."""
    assert ranker.weights is not None
    features: list[Node] = []
    weights = {}
    for place, (name, label) in enumerate(zip(ranker.names, ranker.labels, strict=True)):
        norm = _normaliser(ranker, place)
        features.append({"name": label} if norm is None else {"name": label, "norm": norm})
        weights[label] = single(ranker.weights[place], f"the weight of {name!r}")
    return {
        "store": ranker.name,
        "name": ranker.name,
        "class": f"{PACKAGE}.model.LinearModel",
        "features": features,
        "params": {"weights": weights},
    }


def _normaliser(ranker: Deployable, place: int) -> Node | None:
    """Return Solr's normaliser of a feature: (x − min) / (max − min) or (x − avg) / std."""
    if ranker.scaling is None:
        return None
    offset, scale, maximum = normaliser(ranker.scaling, place, ranker.names[place])
    if maximum is not None:
        return {"class": f"{PACKAGE}.norm.MinMaxNormalizer", "params": {"min": repr(offset), "max": repr(maximum)}}
    return {"class": f"{PACKAGE}.norm.StandardNormalizer", "params": {"avg": repr(offset), "std": repr(scale)}}


def _trees_model(ranker: Deployable, trees: Forest) -> Node:
    """Return a model of trees, whose numbers Solr takes as texts.

    No value is absent there: the store has one for what is missing, and Solr 0 for what has none.
    """
    thresholds = [repr(value) for value in _thresholds(trees)]
    values = [repr(single(value, "a leaf")) for value in trees.leaves]

    def leaf(number: int) -> Node:
        return {"value": values[number]}

    def split(number: int, left: Node, right: Node) -> Node:
        feature = ranker.labels[trees.columns[number]]
        return {"feature": feature, "threshold": thresholds[number], "left": left, "right": right}

    return {
        "store": ranker.name,
        "name": ranker.name,
        "class": f"{PACKAGE}.model.MultipleAdditiveTreesModel",
        "features": [{"name": label} for label in ranker.labels],
        "params": {"trees": [{"weight": "1", "root": root} for root in nested_trees(trees, leaf, split)]},
    }


def _thresholds(trees: Forest) -> list[float]:
    """Return the largest thresholds v for which v + 1e-6 is at most that of the tree, in single precision."""
    most = np.array([single_at_most(value) for value in trees.thresholds], np.float32)

    def low_enough(v: Floats) -> Any:
        return v + np.float32(1e-6) <= most

    thresholds: list[float] = largest_value(len(most), low_enough, np.float32).astype(np.float64).tolist()
    return thresholds


def _next_step(ranker: Deployable, store: Path, path: Path) -> str:
    texts = json.dumps([known.solr.params for known in ranker.features if known.solr])
    asked = sorted(set(re.findall(r"\$\{(\w+)", texts)))  # of the request, as ${user_query} does
    rerank = " ".join([f"!ltr model={ranker.name} reRankDocs=100", *(f"efi.{name}=TEXT" for name in asked)])
    put = ["curl", "-X", "PUT", "-H", "Content-type: application/json"]
    values = ("q=TEXT", f"rq={{{rerank}}}", "fl=id,score,[features]")
    query = [word for value in values for word in ("--data-urlencode", value)]
    return "\n".join(
        [
            "Upload it to Solr with the module ltr (names that are there already have to be deleted first):",
            f"  {command_line([*put, f'{URL}/schema/feature-store', '--data-binary', f'@{store}'])}",
            f"  {command_line([*put, f'{URL}/schema/model-store', '--data-binary', f'@{path}'])}",
            "Reload the collection, then rank with it:",
            f"  {command_line(['curl', f'{URL}/query', *query])}",
            "Check that [features] shows the values that the training data had for the same documents.",
            *ranker.remarks("solr"),
        ]
    )
