"""A model as other systems can compute it: of raw values, document by document; what none can compute is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from moerank.data import FittedScaling
from moerank.exports.names import TargetFeature, check_name, names_there
from moerank.exports.rounding import largest_value
from moerank.rankers.forest import Forest
from moerank.rankers.model import Model

__all__ = ["Deployable", "Deployment", "deployable"]

Engine: TypeAlias = Literal["solr", "elasticsearch", "vespa"]

COARSE = 2.0**14
"""How many times its scale the offset of a feature may be, before single precision keeps under three digits of it."""


@dataclass(frozen=True)
class Deployable:
    """A model to deploy; lists have one entry per feature.

    Attributes
    ----------
    name : str
        Of the model in the other system.
    names : tuple of str
        The names of the features here.
    weights : tuple of float or None
        Of a linear model.
    scaling : FittedScaling or None
        What is applied to raw values before the weights.
    trees : Forest or None
        Over these features, from 0, and raw values.
    missing : float or None
        The value of a document that has none, before it is scaled; None where the training data had all.
    features : tuple of TargetFeature
        What is known of the features there.
    """

    name: str
    names: tuple[str, ...]
    weights: tuple[float, ...] | None
    scaling: FittedScaling | None
    trees: Forest | None
    missing: float | None
    features: tuple[TargetFeature, ...]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Their names in a search engine.

        Raises
        ------
        ValueError
            If two of them are the same.
        """
        return names_there(self.names, [feature.name for feature in self.features])

    @property
    def absent(self) -> float:
        """What search engines count a missing value as, whose rule is 0 where the training data say nothing."""
        return 0.0 if self.missing is None else self.missing

    def remarks(self, engine: Engine) -> list[str]:
        """Return the sentences about this model that whoever deploys it to a search engine should read."""
        said = []
        pairs = list(zip(self.names, self.labels, strict=True))
        if renamed := [f"{name!r} is {label}" for name, label in pairs if name != label]:
            said.append(f"Names there: {', '.join(renamed)}.")
        known = zip(self.labels, self.features, strict=True)
        if fields := [label for label, feature in known if getattr(feature, engine) is None]:
            said.append(f"Read from fields of these names, as --features says nothing else: {', '.join(fields)}.")
        beside = "as in the training" if self.missing is not None else "though the training data had every value"
        said.append(f"A document without a value counts as having {self.absent:g} there, {beside}.")
        return said + self.coarse

    @property
    def coarse(self) -> list[str]:
        """The sentence about features that are scaled and whose values single precision hardly tells apart."""
        if self.scaling is None:
            return []
        values = zip(self.names, self.scaling.offset, self.scaling.scale, strict=True)
        if not (found := [repr(name) for name, offset, scale in values if abs(offset) > COARSE * scale]):
            return []
        return [
            f"Single precision keeps under three digits of {', '.join(found)}, far from 0 beside the spread: subtract "
            "a constant before it is stored, and train again."
        ]


@dataclass(frozen=True)
class Deployment:
    """What an export writes.

    Attributes
    ----------
    files : dict of Path to bytes
        The files, the model last.
    next_step : str
        How to upload them, and what to check.
    """

    files: dict[Path, bytes]
    next_step: str


def deployable(model: Model, name: str, features: Mapping[str, TargetFeature]) -> Deployable:
    """Prepare a model for another system, and refuse what none can compute.

    Parameters
    ----------
    model : Model
    name : str
        What it will be called there.
    features : mapping
        What is known of its features there, by their names; others are passed over.

    Raises
    ------
    ValueError
        If the model is neither linear nor of trees, has no feature, or looks at other documents of a query.
    """
    check_name(name)
    if model.weights is None and model.trees is None:
        raise ValueError(
            "this ranker is neither a sum of weights nor one of trees, and cannot be deployed; train a linear ranker "
            "or LambdaMART on its features"
        )
    if not model.columns or (model.trees is not None and not model.trees.columns):
        raise ValueError("this ranker uses no feature: all documents would score alike")
    if model.scaling.kind == "query":
        raise ValueError(
            "this ranker was trained on features that are scaled per query, by moerank or in the files (scaled = "
            '"query"), and a search engine scores each document by itself; train it on raw values with normalize = '
            '"minmax" or "standard"'
        )
    if isinstance(model.missing, str):
        raise ValueError(
            f"missing values follow the rule {model.missing!r}, which looks at other documents of the query, and a "
            "search engine scores each document by itself; train with a number, as missing = 0"
        )
    scaling = model.scaling if isinstance(model.scaling, FittedScaling) else None
    return Deployable(
        name=name,
        names=model.names,
        weights=model.weights,
        scaling=scaling if model.trees is None else None,
        trees=None if model.trees is None else _over_raw_values(model.trees, model.columns, scaling),
        missing=model.missing,
        features=tuple(features.get(own, TargetFeature()) for own in model.names),
    )


def _over_raw_values(trees: Forest, columns: tuple[int, ...], scaling: FittedScaling | None) -> Forest:
    """Return the same trees over the features alone, with thresholds for raw values.

    A threshold t of scaled values becomes the largest x with (x − offset) / scale ≤ t, as these are computed: the
    same values go left, without a rounding before each comparison.
    """
    place_of = {column: place for place, column in enumerate(columns)}
    places = tuple(place_of[column] for column in trees.columns)
    thresholds = np.array(trees.thresholds)
    if scaling is not None:
        offset, scale = np.array(scaling.offset)[list(places)], np.array(scaling.scale)[list(places)]
        with np.errstate(over="ignore"):
            thresholds = largest_value(len(places), lambda x: (x - offset) / scale <= thresholds, np.float64)
    return replace(trees, columns=places, thresholds=tuple(thresholds.tolist()))
