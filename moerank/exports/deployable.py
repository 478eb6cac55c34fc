"""Models for other systems, which compute scores from raw feature values, document by document."""

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from moerank.arrays import Floats, Integers, Mask
from moerank.checks import PLAIN_NAME, first_mistake, plain_name, toml_value
from moerank.data.preparation import FittedScaling, Scaling
from moerank.files import read_toml
from moerank.rankers.model import Forest, Model

# A JSON object.
Node: TypeAlias = dict[str, object]

MAX_SINGLE = float(np.finfo(np.float32).max)

Name = Annotated[str, StringConstraints(pattern=PLAIN_NAME)]
Line = Annotated[str, StringConstraints(pattern=r"^[^\r\n]*\S[^\r\n]*$")]

# Largest offset of a feature in units of its scale; beyond it single precision keeps fewer than three digits.
MAX_OFFSET = 2.0**14

# Fraction of its range that a feature may lose when its minimum and maximum are rounded to single precision.
MAX_RANGE_LOSS = 1e-6


class Term(NamedTuple):
    """A summand of a linear model: weight · (x − offset) / scale."""

    name: str
    weight: float
    offset: float
    scale: float


@dataclass(frozen=True, kw_only=True)
class DeployableModel:
    """Base of the models for another system, the target; tuples have one entry per feature.

    Attributes
    ----------
    name : str
        Name of the model in the target.
    names : tuple of str
        Names of the features in the training data.
    scaling : FittedScaling or None
        How the training scaled raw values. Linear models apply it before the weights.
    missing : float or None
        Raw value that stands for a missing one; None if the training data had no missing values.
    features : tuple of TargetFeature
        Descriptions of the features in the target.
    negative : tuple of str
        Names of features with raw values below 0 in the training data.
    """

    name: str
    names: tuple[str, ...]
    scaling: FittedScaling | None
    missing: float | None
    features: "tuple[TargetFeature, ...]"
    negative: tuple[str, ...] = ()

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the features in the target; two equal names are a ValueError."""
        return engine_names(self.names, [feature.name for feature in self.features])

    @property
    def engine_missing(self) -> float:
        """Value that stands for a missing one in a search engine: 0 if the training data had no missing values."""
        return 0.0 if self.missing is None else self.missing

    def remarks(
        self,
        engine: Literal["solr", "elasticsearch", "vespa"],
        engine_features: Container[str] = (),
    ) -> list[str]:
        """Return the sentences that users should read before they deploy this model to a search engine.

        The engine computes the features `engine_features` by itself.
        """
        sentences = []
        rows = zip(self.names, self.labels, self.features, strict=True)
        fields = [row for row in rows if row[0] not in engine_features]
        new_names = [f"{name!r} is {label}" for name, label, _ in fields if name != label]
        if new_names:
            sentences.append(f"Names in the engine: {', '.join(new_names)}.")
        undefined = [label for _, label, feature in fields if getattr(feature, engine) is None]
        if undefined:
            sentences.append(
                "Features without a definition in --features are fields of these names: "
                f"{', '.join(undefined)}."
            )
        if self.missing is None:
            rule = ". The training data had none: check that yours are never missing."
        else:
            rule = ", as in training."
        sentences.append(f"A missing value counts as {self.engine_missing:g} in the engine{rule}")
        return sentences + self.precision_remarks

    @property
    def precision_remarks(self) -> list[str]:
        """The warning about features whose values hardly differ in single precision, if there are any."""
        is_coarse = [size > MAX_OFFSET * spread > 0 for size, spread in self._ranges()]
        names = ", ".join(map(repr, compress(self.names, is_coarse)))
        sentence = (
            f"Single precision keeps fewer than three digits of {names}, because its values are "
            "far from 0 compared to their spread. Subtract a constant before it is stored, and "
            "train again."
        )
        return [sentence] if names else []

    def _ranges(self) -> list[tuple[float, float]]:
        """Return the distance from 0 and the spread of each feature's values, if they are known."""
        if self.scaling is None:
            return []
        return list(zip(map(abs, self.scaling.offset), self.scaling.scale, strict=True))


@dataclass(frozen=True, kw_only=True)
class LinearDeployable(DeployableModel):
    """A linear model for another system, with a weight per feature."""

    weights: tuple[float, ...]

    @property
    def terms(self) -> list[Term]:
        """The summands weight · (x − offset) / scale."""
        n = len(self.names)
        scaling = self.scaling or FittedScaling("standard", (0.0,) * n, (1.0,) * n)
        return list(map(Term, self.names, self.weights, scaling.offset, scaling.scale))

    @property
    def single_weights(self) -> list[float]:
        """The weights in single precision."""
        return [to_single(term.weight, f"the weight of {term.name!r}") for term in self.terms]


@dataclass(frozen=True, kw_only=True)
class TreesDeployable(DeployableModel):
    """Trees over raw values of the features, numbered from 0, for another system."""

    trees: Forest

    def _ranges(self) -> list[tuple[float, float]]:
        """Return the ranges of the scaling, or else of the thresholds; a single threshold has no spread."""
        if self.scaling:
            return super()._ranges()
        ranges = []
        for index in range(len(self.names)):
            cuts = np.array(self.trees.thresholds)[np.equal(self.trees.columns, index)]
            ranges.append((np.abs(cuts).max(initial=0.0), np.ptp(cuts) if len(cuts) else 0.0))
        return ranges


Deployable: TypeAlias = LinearDeployable | TreesDeployable
"""A model for another system, which computes its scores from raw values."""


@dataclass(frozen=True)
class Deployment:
    """Files of an export.

    Attributes
    ----------
    files : dict of Path to bytes
        Contents by path, the model last.
    next_step : str
        Instructions to upload the files, and to check the result.
    """

    files: dict[Path, bytes]
    next_step: str


def deployable(model: Model, name: str, features: "Mapping[str, TargetFeature]") -> Deployable:
    """Return a model for another system under a name; descriptions of features that it does not use are ignored.

    A model raises a ValueError if it is neither linear nor a sum of trees, uses no feature, or depends on the other
    documents of a query.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(
            "name must have lower-case letters, digits and _, and begin with a letter, "
            f"not {name!r}"
        )
    reasons = obstacles(model)
    if reasons:
        raise ValueError("; ".join(reasons))
    scaling = model.scaling if isinstance(model.scaling, FittedScaling) else None
    described = DeployableModel(
        name=name,
        names=model.names,
        scaling=scaling,
        missing=cast("float | None", model.missing),  # a rule is one of the reasons
        features=tuple(features.get(feature, TargetFeature()) for feature in model.names),
        negative=model.negative,
    )
    if model.trees is None:
        return LinearDeployable(**vars(described), weights=model.weights or ())
    trees = _with_raw_thresholds(model.trees, model.columns, scaling)
    return TreesDeployable(**vars(described), trees=trees)


def obstacles(model: Model) -> list[str]:
    """Return the reasons why no other system can compute the scores of a model, each with its remedy."""
    reasons = obstacles_of_data(model.scaling, model.missing)
    if model.missing_values:
        values = ", ".join(f"{value:g}" for value in model.missing_values)
        remedy = "leave such values out of the index and the data, and train without missing_values"
        reasons.append(
            f"{values} counted as missing in training, but is a number to other systems; {remedy}"
        )
    if model.weights is None and model.trees is None:
        reasons.append(
            "this model has neither weights nor trees, and cannot be exported; "
            "train a linear ranker or LambdaMART on its features"
        )
    elif not model.columns or (model.trees is not None and not model.trees.columns):
        reasons.append("this ranker uses no feature; all documents get the same score")
    return reasons


def obstacles_of_data(scaling: Scaling, missing: float | str | None) -> list[str]:
    """Return the reasons in the training data why a model cannot be exported, each with its remedy."""
    reasons = []
    if scaling.kind == "query":
        reasons.append(
            'the features are scaled per query, by moerank or in the files (scaled = "query"), '
            "but a search engine scores each document alone; train on raw values with "
            'normalize = "minmax" or "standard"'
        )
    if isinstance(missing, str):
        reasons.append(
            f"the rule {missing!r} for missing values depends on other documents of the query, "
            "but a search engine scores each document alone; train with a number, such as "
            "missing = 0"
        )
    return reasons


def refused_below_zero(names: Iterable[str]) -> list[str]:
    """Return the warning about features with values below 0, which two engines refuse, if there are any."""
    features = ", ".join(map(repr, names))
    if not features:
        return []
    return [
        "Elasticsearch and OpenSearch refuse values below 0, which these features have in "
        f"training: {features}. Add a constant to each in the index, or by a script_score query "
        "in --features; log again, and train on that log"
    ]


def _with_raw_thresholds(
    trees: Forest, columns: tuple[int, ...], scaling: FittedScaling | None
) -> Forest:
    """Return the trees with thresholds for raw values, over the features that they use.

    A threshold t of scaled values becomes the largest x with (x − offset) / scale ≤ t in floating point, so that the
    same values go left.
    """
    index_of = {column: index for index, column in enumerate(columns)}
    indices = [index_of[column] for column in trees.columns]
    thresholds = np.array(trees.thresholds)
    if scaling:
        offset, scale = np.array(scaling.offset)[indices], np.array(scaling.scale)[indices]
        with np.errstate(over="ignore"):
            thresholds = largest_value(
                len(indices), lambda x: (x - offset) / scale <= thresholds, np.float64
            )
    return replace(trees, columns=tuple(indices), thresholds=tuple(thresholds.tolist()))


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SolrFeature(_Table):
    """A feature of Solr: its class, with or without the package name, and its parameters."""

    class_: Annotated[Line, Field(alias="class")]
    params: dict[str, JsonValue] = {}


class TemplateFeature(_Table):
    """A feature of the plugins of Elasticsearch and OpenSearch: a query, whose score is the value."""

    template: dict[str, JsonValue] | Line
    params: tuple[str, ...] = ()
    template_language: Line = "mustache"


class TargetFeature(_Table):
    """Description of a feature in a search engine.

    Attributes
    ----------
    name : str, optional
        Name in the engine: ASCII letters, digits and _, not beginning with a digit.
    solr : SolrFeature, optional
    elasticsearch : TemplateFeature, optional
        Also used for OpenSearch.
    vespa : str, optional
        A ranking expression, such as ``bm25(title)``.
    """

    name: Name | None = None
    solr: SolrFeature | None = None
    elasticsearch: TemplateFeature | None = None
    vespa: Line | None = None


_FEATURES = TypeAdapter(dict[str, TargetFeature])


def read_features(features: str | Path | Mapping[str, object] | None) -> dict[str, TargetFeature]:
    """Read descriptions of features by name, from a TOML file or a mapping of the same content."""
    is_file = isinstance(features, str | Path)
    where = str(features) if is_file else "features"
    try:
        return _FEATURES.validate_python(read_toml(Path(where)) if is_file else features or {})
    except ValidationError as error:
        raise ValueError(f"{where}: {first_mistake(error)}") from None


def engine_names(names: Sequence[str], labels: Sequence[str | None]) -> tuple[str, ...]:
    """Return the labels of features in a search engine, or else plain names; two equal ones are a ValueError."""
    name_of: dict[str, str] = {}
    for name, new_name in zip(names, labels, strict=True):
        label = new_name or plain_name(name)
        if label in name_of:
            raise ValueError(
                f"the features {name_of[label]!r} and {name!r} would both be called {label!r}; "
                "rename one of them in the file of --features: "
                f'[{toml_value(name)}] with name = "{label}_2"'
            )
        name_of[label] = name
    return tuple(name_of)


def to_single(value: float, name: str) -> float:
    """Return the nearest number of single precision; a larger number is a ValueError, with the `name` of the number."""
    if abs(value) > MAX_SINGLE:
        raise ValueError(
            f"{name} is {value:g}, too large for single precision; "
            "scale the features, and train again"
        )
    return float(np.float32(value))


def round_down_to_single(value: float) -> float:
    """Return the largest number of single precision that is at most `value`, or else the smallest of all."""
    if abs(value) >= MAX_SINGLE:
        return MAX_SINGLE if value > 0 else -MAX_SINGLE
    nearest = np.float32(value)
    return float(nearest if float(nearest) <= value else np.nextafter(nearest, np.float32(-np.inf)))


def next_single_above(value: float) -> float:
    """Return the smallest number of single precision above `value`, or else the largest of all.

    For x in single precision, x ≤ value exactly if x is less than the result.
    """
    below = np.float32(round_down_to_single(value))
    return float(
        below if below == np.float32(MAX_SINGLE) else np.nextafter(below, np.float32(np.inf))
    )


def largest_value(
    size: int, holds: Callable[[Floats], Mask], dtype: type[np.float32 | np.float64]
) -> Floats:
    """Return the largest finite numbers (size,) for which their conditions hold, or the smallest of all.

    ``holds(x)`` tests each number of x (size,) against its own condition, which must also hold for all smaller numbers.
    The bisection over the ordered bit patterns of the numbers takes at most 64 calls.
    """
    bits = np.int32 if dtype is np.float32 else np.int64

    def number(pattern: Integers) -> Floats:
        magnitude = np.abs(pattern).view(dtype)
        return np.where(pattern < 0, np.negative(magnitude), magnitude)

    high = np.full(size, np.finfo(dtype).max, dtype).view(bits)
    low = np.negative(high)
    while (low < high).any():
        middle = (low | high) - ((low ^ high) >> 1)  # the mean rounded up, without overflow
        fits = holds(number(middle))
        low = np.where(fits, middle, low)
        high = np.where(fits, high, np.maximum(middle - 1, low))
    return number(low)


def normaliser(term: Term, kind: str) -> tuple[float, float, float | None]:
    """Return the offset, the scale and the maximum of a feature with a scaling of this kind, in single precision.

    The maximum, which is offset + scale, is None unless minimum and maximum were fitted and their difference survives
    rounding. Numbers that single precision cannot hold are a ValueError, which names the feature.
    """
    offset = to_single(term.offset, f"the offset of {term.name!r}")
    scale = to_single(term.scale, f"the scale of {term.name!r}")
    if scale <= 0.0:
        raise ValueError(
            f"the scale of {term.name!r} is {term.scale:g}, which is 0 in single precision; "
            "scale the features, and train again"
        )
    if kind == "standard":
        return offset, scale, None
    maximum = to_single(term.offset + term.scale, f"the maximum of {term.name!r}")
    divided_by = float(np.float32(maximum) - np.float32(offset))
    return offset, scale, maximum if abs(divided_by - scale) < MAX_RANGE_LOSS * scale else None


def nested_trees(
    trees: Forest,
    splits: list[Node],
    leaves: list[Node],
    children: Callable[[Node, Node], Node],
) -> list[Node]:
    """Return the root of each tree as a nested object, after adding ``children(low, high)`` to each split."""
    nodes = [*splits, *reversed(leaves)]  # leaf l is node −1 − l
    for split, low, high in zip(splits, trees.left, trees.right, strict=True):
        split |= children(nodes[low], nodes[high])
    return [nodes[root] for root in trees.roots]


def breadth_first(trees: Forest, root: int) -> Iterator[tuple[int, int]]:
    """Yield the splits and leaves of a tree level by level, each with the number of its left child.

    The right child has the next number. Leaves have no children, and yield 0.
    """
    waiting = [root]
    for number in waiting:  # the list grows
        yield number, len(waiting) if number >= 0 else 0
        waiting += [trees.left[number], trees.right[number]] if number >= 0 else []


def json_bytes(values: Node | list[Node], *, compact: bool = False) -> bytes:
    """Return JSON for people to read, or without spaces if it is compact."""
    indent, separators = (None, (",", ":")) if compact else (1, None)
    text = json.dumps(values, allow_nan=False, indent=indent, separators=separators)
    return f"{text}\n".encode()
