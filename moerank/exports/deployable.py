"""Models for other systems, which compute scores from raw feature values, document by document."""

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

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
from moerank.checks import PLAIN_NAME, Parameters, first_mistake, plain_name, toml_value
from moerank.data.scaling import FittedScaling, Scaling
from moerank.files import read_toml
from moerank.rankers.model import Forest, Model

# A JSON object.
Node: TypeAlias = dict[str, object]

LARGEST = float(np.finfo(np.float32).max)

Name = Annotated[str, StringConstraints(pattern=PLAIN_NAME)]
Line = Annotated[str, StringConstraints(pattern=r"^[^\r\n]*\S[^\r\n]*$")]

# Largest offset of a feature in units of its scale; beyond it single precision keeps fewer than three digits.
MOST_OFFSET = 2.0**14

# Share of its range that a feature may lose when its minimum and maximum are rounded to single precision.
CLOSE = 1e-6


class Term(NamedTuple):
    """A summand of a linear model: weight · (x − offset) / scale."""

    name: str
    weight: float
    offset: float
    scale: float


@dataclass(frozen=True)
class Deployable:
    """A model for another system, the target; tuples have one entry per feature.

    Attributes
    ----------
    name : str
        Name of the model in the target.
    names : tuple of str
        Names of the features in the training data.
    weights : tuple of float or None
        Weights of a linear model.
    scaling : FittedScaling or None
        Scaling of raw values before the weights are applied; thresholds of trees are those of raw values already.
    trees : Forest or None
        Trees over raw values of these features, numbered from 0.
    missing : float or None
        Raw value that stands for a missing one; None if the training data had no missing values.
    features : tuple of TargetFeature
        Descriptions of the features in the target.
    negative : tuple of str
        Names of features with raw values below 0 in the training data.
    """

    name: str
    names: tuple[str, ...]
    weights: tuple[float, ...] | None
    scaling: FittedScaling | None
    trees: Forest | None
    missing: float | None
    features: "tuple[TargetFeature, ...]"
    negative: tuple[str, ...] = ()

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the features in the target; two equal names are a ValueError."""
        return engine_names(self.names, [feature.name for feature in self.features])

    @property
    def terms(self) -> list[Term]:
        """The summands weight · (x − offset) / scale of a linear model."""
        assert self.weights is not None
        n = len(self.names)
        scaling = self.scaling or FittedScaling("standard", (0.0,) * n, (1.0,) * n)
        return [
            Term(*term)
            for term in zip(self.names, self.weights, scaling.offset, scaling.scale, strict=True)
        ]

    @property
    def single_weights(self) -> list[float]:
        """The weights of a linear model in single precision."""
        return [single(term.weight, f"the weight of {term.name!r}") for term in self.terms]

    @property
    def absent(self) -> float:
        """Value that stands for a missing one in a search engine: 0 if the training data had no missing values."""
        return 0.0 if self.missing is None else self.missing

    def remarks(
        self, engine: Literal["solr", "elasticsearch", "vespa"], own: Container[str] = ()
    ) -> list[str]:
        """Return the sentences that users should read before they deploy this model to a search engine.

        The engine computes features with the names `own` by itself.
        """
        sentences = []
        rows = zip(self.names, self.labels, self.features, strict=True)
        others = [row for row in rows if row[0] not in own]
        if renamed := [f"{name!r} is {label}" for name, label, _ in others if name != label]:
            sentences.append(f"Names in the engine: {', '.join(renamed)}.")
        if fields := [label for _, label, feature in others if getattr(feature, engine) is None]:
            sentences.append(
                f"Features without a definition in --features are fields of these names: {', '.join(fields)}."
            )
        had_none = ". The training data had none: check that yours are never missing."
        rule = ", as in training." if self.missing is not None else had_none
        sentences.append(f"A missing value counts as {self.absent:g} in the engine{rule}")
        return sentences + self.coarse

    @property
    def coarse(self) -> list[str]:
        """The warning about features whose values hardly differ in single precision, if there are any.

        Of raw values only the thresholds are known; a single one has no spread.
        """
        ranges: list[tuple[float, float]] = []  # how far from 0 the values lie, and their spread
        if self.scaling is not None:
            ranges = list(zip(map(abs, self.scaling.offset), self.scaling.scale, strict=True))
        elif self.trees is not None:
            columns, thresholds = np.array(self.trees.columns), np.array(self.trees.thresholds)
            by_feature = [thresholds[columns == index] for index in range(len(self.names))]
            ranges = [
                (np.abs(own).max(initial=0.0), np.ptp(own) if len(own) else 0.0)
                for own in by_feature
            ]
        far = [size > MOST_OFFSET * spread > 0 for size, spread in ranges]
        coarse = ", ".join(map(repr, compress(self.names, far)))
        sentence = (
            f"Single precision keeps fewer than three digits of {coarse}, because its values are far from 0 compared "
            "to their spread. Subtract a constant before it is stored, and train again."
        )
        return [sentence] if coarse else []


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
    """Prepare a model for another system under a name; descriptions of features that it does not use are ignored.

    A model raises a ValueError if it is neither linear nor a sum of trees, uses no feature, or depends on the other
    documents of a query.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(
            f"name must have lower-case letters, digits and _, and begin with a letter, not {name!r}"
        )
    if reasons := obstacles(model):
        raise ValueError("; ".join(reasons))
    assert not isinstance(model.missing, str)
    scaling = model.scaling if isinstance(model.scaling, FittedScaling) else None
    return Deployable(
        name=name,
        names=model.names,
        weights=model.weights,
        scaling=scaling,
        trees=None
        if model.trees is None
        else _over_raw_values(model.trees, model.columns, scaling),
        missing=model.missing,
        features=tuple(features.get(own, TargetFeature()) for own in model.names),
        negative=model.negative,
    )


def obstacles(model: Model) -> list[str]:
    """Return all reasons why no other system can compute the scores of a model, each with its remedy."""
    reasons = obstacles_of_data(model.scaling, model.missing)
    if model.missing_values:
        values = ", ".join(f"{value:g}" for value in model.missing_values)
        remedy = "leave such values out of the index and the data, and train without missing_values"
        reasons.append(
            f"{values} counted as missing in training, but is a number to other systems; {remedy}"
        )
    if model.weights is None and model.trees is None:
        reasons.append(
            "this model has neither weights nor trees, and cannot be exported; train a linear ranker or LambdaMART on "
            "its features"
        )
    elif not model.columns or (model.trees is not None and not model.trees.columns):
        reasons.append("this ranker uses no feature; all documents get the same score")
    return reasons


def obstacles_of_data(scaling: Scaling, missing: float | str | None) -> list[str]:
    """Return the reasons in the training data why a model cannot be exported, each with its remedy."""
    reasons = []
    if scaling.kind == "query":
        reasons.append(
            'the features are scaled per query, by moerank or in the files (scaled = "query"), but a search engine '
            'scores each document alone; train on raw values with normalize = "minmax" or "standard"'
        )
    if isinstance(missing, str):
        reasons.append(
            f"the rule {missing!r} for missing values depends on other documents of the query, but a search engine "
            "scores each document alone; train with a number, such as missing = 0"
        )
    return reasons


def refused_below_zero(names: Iterable[str]) -> list[str]:
    """Return the sentence on features with values below 0, which two engines refuse, if there are any."""
    listed = ", ".join(map(repr, names))
    return [
        f"Elasticsearch and OpenSearch refuse values below 0, which these features have in training: {listed}. Add a "
        "constant to each in the index, or by a script_score query in --features; log again, and train on that log"
    ] * bool(listed)


def _over_raw_values(
    trees: Forest, columns: tuple[int, ...], scaling: FittedScaling | None
) -> Forest:
    """Return the same trees with thresholds for raw values, over the used features only.

    A threshold t of scaled values becomes the largest x with (x − offset) / scale ≤ t in floating point, so that the
    same values go left.
    """
    index_of = {column: index for index, column in enumerate(columns)}
    used = tuple(index_of[column] for column in trees.columns)
    thresholds = np.array(trees.thresholds)
    if scaling is not None:
        offset, scale = np.array(scaling.offset)[list(used)], np.array(scaling.scale)[list(used)]
        with np.errstate(over="ignore"):
            thresholds = largest_value(
                len(used), lambda x: (x - offset) / scale <= thresholds, np.float64
            )
    return replace(trees, columns=used, thresholds=tuple(thresholds.tolist()))


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SolrFeature(_Table):
    """A feature of Solr: its class, with or without the package name, and its parameters."""

    class_: Annotated[Line, Field(alias="class")]
    params: dict[str, JsonValue] = Field(default_factory=dict)


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


def engine_names(names: Sequence[str], given: Sequence[str | None]) -> tuple[str, ...]:
    """Return the given names of features in a search engine, or else plain ones; two equal names are a ValueError."""
    taken: dict[str, str] = {}
    for name, new in zip(names, given, strict=True):
        plain = new or plain_name(name)
        if plain in taken:
            raise ValueError(
                f"the features {taken[plain]!r} and {name!r} would both be called {plain!r}; rename one of them in the "
                f'file of --features: [{toml_value(name)}] with name = "{plain}_2"'
            )
        taken[plain] = name
    return tuple(taken)


def single(value: float, what: str) -> float:
    """Return the nearest number of single precision; a larger number is a ValueError, which names `what`."""
    if abs(value) > LARGEST:
        raise ValueError(
            f"{what} is {value:g}, too large for single precision; scale the features, and train again"
        )
    return float(np.float32(value))


def single_positive(value: float, what: str) -> float:
    """Return the number of single precision nearest to a divisor; 0 is a ValueError, which names `what`."""
    rounded = single(value, what)
    if rounded <= 0.0:
        raise ValueError(
            f"{what} is {value:g}, which is 0 in single precision; scale the features, and train again"
        )
    return rounded


def single_at_most(value: float) -> float:
    """Return the largest number of single precision that is at most `value`, or else the smallest of all."""
    if abs(value) >= LARGEST:
        return LARGEST if value > 0 else -LARGEST
    nearest = np.float32(value)
    return float(nearest if float(nearest) <= value else np.nextafter(nearest, np.float32(-np.inf)))


def single_above(value: float) -> float:
    """Return the smallest number of single precision above `value`, or else the largest of all.

    For x in single precision, x ≤ value exactly if x is less than the result.
    """
    below = np.float32(single_at_most(value))
    return float(below if below == np.float32(LARGEST) else np.nextafter(below, np.float32(np.inf)))


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

    most = np.full(size, np.finfo(dtype).max, dtype).view(bits)
    least = np.negative(most)
    while (least < most).any():
        middle = (least | most) - ((least ^ most) >> 1)  # the mean rounded up, without overflow
        fits = holds(number(middle))
        least, most = (
            np.where(fits, middle, least),
            np.where(fits, most, np.maximum(middle - 1, least)),
        )
    return number(least)


def normaliser(term: Term, kind: str) -> tuple[float, float, float | None]:
    """Return the offset, the scale and the maximum of a feature with a scaling of this kind, in single precision.

    The maximum, which is offset + scale, is None unless minimum and maximum were fitted and their difference survives
    rounding. Numbers that single precision cannot hold are a ValueError, which names the feature.
    """
    offset = single(term.offset, f"the offset of {term.name!r}")
    scale = single_positive(term.scale, f"the scale of {term.name!r}")
    if kind == "standard":
        return offset, scale, None
    maximum = single(term.offset + term.scale, f"the maximum of {term.name!r}")
    divided_by = float(np.float32(maximum) - np.float32(offset))
    return offset, scale, maximum if abs(divided_by - scale) < CLOSE * scale else None


def nested_trees(
    trees: Forest, leaf: Callable[[int], Node], split: Callable[[int, Node, Node], Node]
) -> list[Node]:
    """Return the root of each tree as a nested object, built from the leaves up without recursion.

    ``leaf(number)`` returns the node of a leaf, ``split(number, left, right)`` that of a split above two nodes.
    """
    splits: dict[int, Node] = {}

    def node(number: int) -> Node:
        return splits.pop(number) if number >= 0 else leaf(-1 - number)

    for number in reversed(range(len(trees.columns))):
        splits[number] = split(number, node(trees.left[number]), node(trees.right[number]))
    return [node(root) for root in trees.roots]


def breadth_first(trees: Forest, root: int) -> Iterator[tuple[int, int]]:
    """Yield the splits and leaves of a tree level by level, each with the number of its left child.

    The right child has the next number. Leaves have no children, and yield 0.
    """
    waiting = [root]
    for number in waiting:  # the list grows
        yield number, len(waiting) if number >= 0 else 0
        waiting += [trees.left[number], trees.right[number]] if number >= 0 else []


def depths(trees: Forest) -> list[int]:
    """Return the depth of each split."""
    depth = [0] * len(trees.columns)
    for number, below in enumerate(zip(trees.left, trees.right, strict=True)):
        for child in below:
            if child >= 0:
                depth[child] = depth[number] + 1
    return depth


def json_bytes(values: Node | list[Node], trees: Forest | None = None) -> bytes:
    """Return JSON for people to read, or without spaces if it has trees."""
    form: Parameters = {"indent": 1} if trees is None else {"separators": (",", ":")}
    return (json.dumps(values, allow_nan=False, **form) + "\n").encode()
