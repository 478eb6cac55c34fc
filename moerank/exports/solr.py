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
from moerank.exports.deployable import (
    Deployable,
    Deployment,
    LinearDeployable,
    Node,
    TreesDeployable,
    json_bytes,
    largest_value,
    nested_trees,
    normaliser,
    round_down_to_single,
    to_single,
)
from moerank.rankers.model import Forest

PACKAGE = "org.apache.solr.ltr"

SOLR_STEP = """\
Upload it to Solr with the module ltr; delete existing objects of these names first:
  {put} {solr}/schema/feature-store --data-binary {store}
  {put} {solr}/schema/model-store --data-binary {model}
Reload the collection, then rank with it:
  curl {solr}/query --data-urlencode q=TEXT --data-urlencode {rerank} --data-urlencode 'fl=id,score,[features]'
Check that [features] shows the values of the same documents in the training data."""

# Number that Solr adds to the thresholds of trees.
SHIFT = np.float32(1e-6)

# Largest error of a threshold in Solr, as a share of the spread of the feature's thresholds.
MAX_ERROR = 1e-4


def solr(ranker: Deployable, path: Path) -> Deployment:
    """Return the model as JSON for Solr, and its feature store in a file of the same name with ``-features``.

    Numbers that single precision cannot hold are a ValueError.
    """
    store = path.with_name(f"{path.stem}-features{path.suffix}")
    form = _linear(ranker) if isinstance(ranker, LinearDeployable) else _trees(ranker)
    model = {"store": ranker.name, "name": ranker.name, **form}
    content = json_bytes(model, compact=isinstance(ranker, TreesDeployable))
    files = {store: json_bytes(_store(ranker)), path: content}
    return Deployment(files, _next_step(ranker, store, path))


def _store(ranker: Deployable) -> list[Node]:
    """Return the features: as described by the user, else the value of a field of the same name.

    A default of NaN, which lets a log tell a missing value, becomes the number that stood for it in training.
    """
    features: list[Node] = []
    absent = repr(to_single(ranker.engine_missing, "the number for missing values"))
    for label, entry in zip(ranker.labels, ranker.features, strict=True):
        name, params = "FieldValueFeature", Node(field=label)
        if entry.solr:
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


def _linear(ranker: LinearDeployable) -> Node:
    """Return class, features and parameters: weights as numbers, those of normalisers as text, as Solr reads them."""
    features: list[Node] = [{"name": label} for label in ranker.labels]
    if ranker.scaling:
        for feature, term in zip(features, ranker.terms, strict=True):
            feature["norm"] = _normaliser(*normaliser(term, ranker.scaling.kind))
    weights = dict(zip(ranker.labels, ranker.single_weights, strict=True))
    params = {"weights": weights}
    return {"class": f"{PACKAGE}.model.LinearModel", "features": features, "params": params}


def _normaliser(offset: float, scale: float, maximum: float | None) -> Node:
    """Return Solr's normaliser of a feature: (x − min) / (max − min) or (x − avg) / std."""
    if maximum is not None:
        name, params = "MinMaxNormalizer", {"min": repr(offset), "max": repr(maximum)}
    else:
        name, params = "StandardNormalizer", {"avg": repr(offset), "std": repr(scale)}
    return {"class": f"{PACKAGE}.norm.{name}", "params": params}


def _trees(ranker: TreesDeployable) -> Node:
    """Return class, features and parameters, numbers as text. No value is absent: the store or Solr has a default."""
    trees = ranker.trees
    leaves: list[Node] = [{"value": repr(to_single(value, "a leaf"))} for value in trees.leaves]
    splits: list[Node] = [
        {"feature": ranker.labels[column], "threshold": repr(threshold)}
        for column, threshold in zip(trees.columns, _thresholds(trees)[1].tolist(), strict=True)
    ]
    nested = nested_trees(trees, splits, leaves, lambda low, high: {"left": low, "right": high})
    return {
        "class": f"{PACKAGE}.model.MultipleAdditiveTreesModel",
        "features": [{"name": label} for label in ranker.labels],
        "params": {"trees": [{"weight": "1", "root": root} for root in nested]},
    }


def _thresholds(trees: Forest) -> tuple[Floats, Floats]:
    """Return the thresholds in single precision, and the largest numbers v with v + 1e-6 at most them there."""
    rounded = [round_down_to_single(value) for value in trees.thresholds]
    targets = np.array(rounded, np.float32)
    return targets, largest_value(len(targets), lambda v: v + SHIFT <= targets, np.float32)


def _threshold_remarks(ranker: TreesDeployable) -> list[str]:
    """Return the warning about features whose thresholds are so near 0 that v + 1e-6 misses them, if there are any."""
    targets, thresholds = _thresholds(ranker.trees)
    exact_targets, errors = targets.astype(float), targets - (thresholds + SHIFT)
    names = []
    for index, name in enumerate(ranker.names):
        splits = np.equal(ranker.trees.columns, index)
        # A single threshold has no spread.
        if splits.any() and errors[splits].max() > MAX_ERROR * np.ptp(exact_targets[splits]) > 0:
            names.append(repr(name))
    sentence = (
        "Solr adds 1e-6 to thresholds, after which single precision hardly tells the values of "
        f"{', '.join(names)} apart. Multiply them by 1e6 or more before they are stored, and train "
        "again."
    )
    return [sentence] if names else []


def _next_step(ranker: Deployable, store: Path, path: Path) -> str:
    definitions = [entry.solr.params for entry in ranker.features if entry.solr]
    # Parameters of the request, such as ${user_query}.
    parameters = sorted(set(re.findall(r"\$\{(\w+)", json.dumps(definitions))))
    values = "".join(f' efi.{name}="TEXT"' for name in parameters)
    rerank = f"rq={{!ltr model={ranker.name} reRankDocs=100{values}}}"
    remarks = ranker.remarks("solr")
    if isinstance(ranker, TreesDeployable):
        remarks += _threshold_remarks(ranker)
    if ranker.engine_missing != 0 and not all("defaultValue" in params for params in definitions):
        remarks.append(
            "A feature of --features without defaultValue counts as 0 where it has no value, "
            f"not as {ranker.engine_missing:g}."
        )
    step = SOLR_STEP.format(
        solr="http://localhost:8983/solr/COLLECTION",
        put="curl -X PUT -H 'Content-type: application/json'",
        store=shlex.quote(f"@{store}"),
        model=shlex.quote(f"@{path}"),
        rerank=shlex.quote(rerank),
    )
    return "\n".join([step, *remarks])
