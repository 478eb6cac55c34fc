"""Export to Apache Solr's module ltr: a feature store, and a LinearModel or MultipleAdditiveTreesModel.

Solr computes in single precision: a linear model as Σ wᵢ zᵢ over normalised values zᵢ in the order of the features,
trees as the sum of one leaf each. A value goes left if it is at most the threshold plus 1e-6, so thresholds are written
smaller by 1e-6.
"""

import json
import re
import shlex
from pathlib import Path

import numpy as np

from moerank.arrays import Floats
from moerank.exports import deployable
from moerank.exports.deployable import Deployable, Deployment, Node
from moerank.rankers.model import Forest

PACKAGE = "org.apache.solr.ltr"
SOLR_URL = "http://localhost:8983/solr/COLLECTION"

# What Solr adds to the thresholds of trees.
ADDED = np.float32(1e-6)

# Share of the spread of a feature's thresholds by which Solr may miss one of them.
MOST_MISSED = 1e-4


def solr(ranker: Deployable, path: Path) -> Deployment:
    """Return the model as JSON for Solr, and its feature store in a file of the same name with ``-features``.

    Numbers that single precision cannot hold are a ValueError.
    """
    store = path.with_name(f"{path.stem}-features{path.suffix}")
    kind, features, params = (
        _linear(ranker) if ranker.trees is None else _trees(ranker, ranker.trees)
    )
    class_name = f"{PACKAGE}.model.{kind}"
    model: Node = dict(
        store=ranker.name,
        name=ranker.name,
        **{"class": class_name},
        features=features,
        params=params,
    )
    content = deployable.json_bytes(model, ranker.trees)
    return Deployment(
        {store: deployable.json_bytes(_store(ranker)), path: content},
        _next_step(ranker, store, path),
    )


def _store(ranker: Deployable) -> list[Node]:
    """Return the features: as described by the user, else the value of a field of the same name.

    A default of NaN, which lets a log tell a missing value, becomes the number that stood for it in training.
    """
    features: list[Node] = []
    absent = repr(deployable.single(ranker.absent, "the number for missing values"))
    for label, entry in zip(ranker.labels, ranker.features, strict=True):
        name, params = "FieldValueFeature", Node(field=label)
        if entry.solr is not None:
            name, params = entry.solr.class_, dict(entry.solr.params)
        elif ranker.missing is not None:
            params["defaultValue"] = absent
        if params.get("defaultValue") == "NaN":
            params["defaultValue"] = absent
        class_name = name if "." in name else f"{PACKAGE}.feature.{name}"
        features.append(
            {"store": ranker.name, "name": label, "class": class_name, "params": params}
        )
    return features


def _linear(ranker: Deployable) -> tuple[str, list[Node], Node]:
    """Return class, features and parameters: weights as numbers, those of normalisers as text, as Solr reads them."""
    features: list[Node] = [{"name": label} for label in ranker.labels]
    if ranker.scaling is not None:
        for feature, term in zip(features, ranker.terms, strict=True):
            feature["norm"] = _normaliser(*deployable.normaliser(term, ranker.scaling.kind))
    return (
        "LinearModel",
        features,
        {"weights": dict(zip(ranker.labels, ranker.single_weights, strict=True))},
    )


def _normaliser(offset: float, scale: float, maximum: float | None) -> Node:
    """Return Solr's normaliser of a feature: (x − min) / (max − min) or (x − avg) / std."""
    if maximum is not None:
        return {
            "class": f"{PACKAGE}.norm.MinMaxNormalizer",
            "params": {"min": repr(offset), "max": repr(maximum)},
        }
    return {
        "class": f"{PACKAGE}.norm.StandardNormalizer",
        "params": {"avg": repr(offset), "std": repr(scale)},
    }


def _trees(ranker: Deployable, trees: Forest) -> tuple[str, list[Node], Node]:
    """Return class, features and parameters, numbers as text. No value is absent: the store or Solr has a default."""
    thresholds = _thresholds(trees)[1].tolist()
    values = [repr(deployable.single(value, "a leaf")) for value in trees.leaves]

    def leaf(number: int) -> Node:
        return {"value": values[number]}

    def split(number: int, left: Node, right: Node) -> Node:
        feature = ranker.labels[trees.columns[number]]
        return {
            "feature": feature,
            "threshold": repr(thresholds[number]),
            "left": left,
            "right": right,
        }

    features: list[Node] = [{"name": label} for label in ranker.labels]
    roots = [{"weight": "1", "root": root} for root in deployable.nested_trees(trees, leaf, split)]
    return "MultipleAdditiveTreesModel", features, {"trees": roots}


def _thresholds(trees: Forest) -> tuple[Floats, Floats]:
    """Return the thresholds in single precision, and the largest numbers v with v + 1e-6 at most them there."""
    most = np.array([deployable.single_at_most(value) for value in trees.thresholds], np.float32)
    return most, deployable.largest_value(len(most), lambda v: v + ADDED <= most, np.float32)


def _too_small(ranker: Deployable, trees: Forest) -> list[str]:
    """Return the warning about features whose thresholds are so near 0 that v + 1e-6 misses them, if there are any."""
    most, written = _thresholds(trees)
    wanted, miss = most.astype(np.float64), most - (written + ADDED)
    names = []
    for index, name in enumerate(ranker.names):
        own = np.equal(trees.columns, index)
        if (
            own.any() and miss[own].max() > MOST_MISSED * np.ptp(wanted[own]) > 0
        ):  # a single threshold has no spread
            names.append(repr(name))
    sentence = (
        f"Solr adds 1e-6 to thresholds, after which single precision hardly tells the values of {', '.join(names)} "
        "apart. Multiply them by 1e6 or more before they are stored, and train again."
    )
    return [sentence] if names else []


def _next_step(ranker: Deployable, store: Path, path: Path) -> str:
    described = [entry.solr.params for entry in ranker.features if entry.solr]
    parameters = sorted(
        set(re.findall(r"\$\{(\w+)", json.dumps(described)))
    )  # of the request, such as ${user_query}
    rerank = " ".join(
        [f"!ltr model={ranker.name} reRankDocs=100", *(f'efi.{name}="TEXT"' for name in parameters)]
    )
    put = ["curl", "-X", "PUT", "-H", "Content-type: application/json"]
    values = ("q=TEXT", f"rq={{{rerank}}}", "fl=id,score,[features]")
    query = [word for value in values for word in ("--data-urlencode", value)]
    remarks = ranker.remarks("solr") + (
        [] if ranker.trees is None else _too_small(ranker, ranker.trees)
    )
    if ranker.absent != 0 and not all("defaultValue" in params for params in described):
        remarks.append(
            f"A feature of --features without defaultValue counts as 0 where it has no value, not as {ranker.absent:g}."
        )
    return "\n".join(
        [
            "Upload it to Solr with the module ltr; delete existing objects of these names first:",
            f"  {shlex.join([*put, f'{SOLR_URL}/schema/feature-store', '--data-binary', f'@{store}'])}",
            f"  {shlex.join([*put, f'{SOLR_URL}/schema/model-store', '--data-binary', f'@{path}'])}",
            "Reload the collection, then rank with it:",
            f"  {shlex.join(['curl', f'{SOLR_URL}/query', *query])}",
            "Check that [features] shows the values of the same documents in the training data.",
            *remarks,
        ]
    )
