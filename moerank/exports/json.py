"""Export to plain JSON, from which a program in any language can score documents in double precision."""

from dataclasses import asdict
from pathlib import Path

from moerank.exports.deployable import (
    Deployable,
    Deployment,
    LinearDeployable,
    TreesDeployable,
    json_bytes,
)
from moerank.version import VERSION

# Version of the format; it increases when older readers would misread a file.
JSON_FORMAT = 1

SUM_RULE = (
    "the sum, over the features in their order, of weight * ((value - offset) / scale); "
    "the largest ranks first"
)
TREES_RULE = (
    "the sum of one leaf per tree: begin at its number in roots; while that is a split, 0 or more, "
    "go to its entry in left if the value of the feature with the number in columns is at most its "
    "threshold, else to that in right; a number n below 0 is leaf -1 - n; the largest ranks first"
)


def plain_json(ranker: Deployable, path: Path) -> Deployment:
    """Return a model with the rule that computes its scores."""
    values = {"format": JSON_FORMAT, "moerank": VERSION, "name": ranker.name}
    if isinstance(ranker, LinearDeployable):
        features = [term._asdict() for term in ranker.terms]
        values |= {"kind": "linear", "score": SUM_RULE}
    else:
        features = [{"name": name} for name in ranker.names]
        values |= {"kind": "trees", "score": TREES_RULE}
    values |= {"missing": ranker.missing, "features": features}
    if isinstance(ranker, TreesDeployable):
        values["trees"] = asdict(ranker.trees)
    step = (
        f"Read {path.name} in your own system: its entry score says how to compute scores, and "
        "missing is the number for missing values (null: the training data had none).\n"
        "Check that it gets raw values, as in the training data before scaling."
    )
    return Deployment({path: json_bytes(values)}, step)
