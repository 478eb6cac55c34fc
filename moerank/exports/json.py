"""Export to plain JSON, from which a program in any language can score documents in double precision."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from moerank.exports.deployable import Deployable, Deployment, indented_json
from moerank.version import VERSION

__all__ = ["plain_json"]

FORMAT = 1
"""Number of the format; it grows when older readers would misread a file."""

LINEAR = "the sum, over the features in their order, of weight * ((value - offset) / scale); the largest ranks first"
TREES = (
    "the sum of one leaf per tree: begin at its number in roots; while that is a split, 0 or more, go to its entry in "
    "left if the value of the feature with the number in columns is at most its threshold, else to that in right; a "
    "number n below 0 is leaf -1 - n; the largest ranks first"
)


def plain_json(ranker: Deployable, path: Path) -> Deployment:
    """Return a model with a sentence that says how to compute its scores.

    Examples
    --------
    >>> import json
    >>> from moerank.exports.deployable import deployable
    >>> from moerank.rankers.model import Model
    >>> model = deployable(Model(names=("price",), columns=(0,), weights=(-0.5,)), "moerank", {})
    >>> json.loads(plain_json(model, Path("r.json")).files[Path("r.json")])["features"]
    [{'name': 'price', 'weight': -0.5, 'offset': 0.0, 'scale': 1.0}]
    """
    features: list[dict[str, Any]] = [{"name": name} for name in ranker.names]
    if ranker.weights is not None:
        for place, feature in enumerate(features):
            feature["weight"] = ranker.weights[place]
            feature["offset"] = 0.0 if ranker.scaling is None else ranker.scaling.offset[place]
            feature["scale"] = 1.0 if ranker.scaling is None else ranker.scaling.scale[place]
    values: dict[str, Any] = {
        "format": FORMAT,
        "moerank": VERSION,
        "name": ranker.name,
        "kind": "linear" if ranker.trees is None else "trees",
        "score": LINEAR if ranker.trees is None else TREES,
        "missing": ranker.missing,
        "features": features,
    }
    if ranker.trees is not None:
        values["trees"] = {entry.name: getattr(ranker.trees, entry.name) for entry in fields(ranker.trees)}
    step = (
        f"Read {path.name} in the system that is to score: its entry score says how, and missing what a value counts "
        "as that is not there (null: there was none in the training data).\n"
        "Check that it is given raw values, as the training data had them before scaling."
    )
    return Deployment({path: indented_json(values)}, step)
