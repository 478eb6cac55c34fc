"""The shape of a stored result: what a result.json or the file of a cell may hold, checked entry by entry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from moerank.checks import first_mistake
from moerank.data import PER_QUERY, UNSCALED, FittedScaling, MissingRule, Scaling
from moerank.data.folds import MOST_FOLDS
from moerank.data.missing import QueryRule
from moerank.data.scaling import FittedKind, Kind
from moerank.files import read_json
from moerank.mofsrank.instance_selection import Unit
from moerank.mofsrank.objectives import FRONT
from moerank.mofsrank.settings import (
    EnsembleSettings,
    FeatureSelectionSettings,
    InstanceSelectionSettings,
    SearchSettings,
)
from moerank.rankers.model import Forest, Model
from moerank.studies.problem import BackendSection, FeaturesSection, MetricSection
from moerank.studies.sources import Data, Parameters, Section
from moerank.verdict import Part, Verdict
from moerank.version import VERSION

__all__ = [
    "FORMAT",
    "PARTS",
    "StoredRanker",
    "StoredResult",
    "check_format",
    "read_stored",
    "RunResult",
    "ScoredRanker",
]

FORMAT = 3
"""Number of the format of results and studies; raised whenever older files cannot be read any more."""

PARTS = ("train", "validation", "test")

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
"""No unknown keys, no NaN, and no "1" or true where a number should be."""

Natural = Annotated[int, Field(ge=0)]
Scores = dict[str, dict[str, float]]
PerQuery = dict[str, dict[str, list[float]]]


class StoredRanker(BaseModel):
    """What `ScoredRanker.as_dict` returns; `Model` checks what belongs to a model."""

    model_config = STRICT

    name: str
    features: tuple[Natural, ...]
    weights: tuple[float, ...] | None
    trees: Forest | None
    parameters: dict[str, Any]
    objectives: dict[str, float]
    scores: Scores
    per_query: PerQuery
    paired_error: Annotated[float, Field(ge=0)] | None = None
    further: Scores = Field(default_factory=dict)


class Convergence(BaseModel):
    """How a stage went, generation by generation."""

    model_config = STRICT

    generation: list[Natural]
    evaluations: list[Natural]
    hypervolume: list[float]


class Seconds(BaseModel):
    """Seconds of each step."""

    model_config = STRICT

    data: float
    baselines: float
    tuning: float
    solver: float
    measuring: float


class Times(Seconds):
    """Seconds of each step, of the clock and of the processor, and of each generation."""

    processor: Seconds
    stages: dict[str, list[float]]


class _Solver(Section):
    """The solver of a configuration."""

    name: str
    label: str
    parameters: Parameters
    tune: bool


class _Configuration(Section):
    """What `configuration` returns: the sections of the problem file that count, checked as those of a file."""

    problem: str
    fold: int
    seed: int
    solver: _Solver
    data: Data
    features: FeaturesSection | None = None
    metric: MetricSection
    backend: BackendSection | None = None
    search: SearchSettings | None = None
    instance_selection: InstanceSelectionSettings | None = None
    feature_selection: FeatureSelectionSettings | None = None
    ensemble: EnsembleSettings | None = None


class StoredScaling(BaseModel):
    """How the features of a result are scaled, where the configuration does not say it all."""

    model_config = STRICT

    kind: Kind
    offset: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    def read(self) -> Scaling:
        """Return the scaling."""
        if self.kind == "none" or self.kind == "query":
            return PER_QUERY if self.kind == "query" else UNSCALED
        return FittedScaling(self.kind, self.offset, self.scale)


class StoredVerdict(BaseModel):
    """What `Verdict.as_dict` returns."""

    model_config = STRICT

    part: Part
    metric: str
    n_queries: Annotated[int, Field(ge=1)]
    n_features: Natural
    n_allowed: Annotated[int, Field(ge=1)]
    difference: float
    error: Annotated[float, Field(ge=0)] | None
    p: Annotated[float, Field(ge=0, le=1)]
    margin: Annotated[float, Field(gt=0)]
    p_equivalent: Annotated[float, Field(ge=0, le=1)]
    advice: str
    against: str = ""
    sentence: str

    def read(self) -> Verdict:
        """Return the verdict.

        Raises
        ------
        ValueError
            If its sentence says something else than its numbers.
        """
        verdict = Verdict(**self.model_dump(exclude={"sentence"}))
        if self.sentence != verdict.sentence:
            raise ValueError(f"verdict.sentence is {self.sentence!r}, but the numbers say {verdict.sentence!r}")
        return verdict


class StoredResult(BaseModel):
    """What `RunResult.as_dict` returns."""

    model_config = STRICT

    format: int
    problem: str
    fold: Annotated[int, Field(ge=1, le=MOST_FOLDS)]
    solver: str
    seed: Natural
    random_state: Natural
    metrics: Annotated[list[str], Field(min_length=1)]
    objectives: Annotated[list[str], Field(min_length=1)]
    configuration: dict[str, Any]
    feature_names: Annotated[list[str], Field(min_length=1)]
    scaling: StoredScaling | None = None
    missing: float | QueryRule | None = None
    instances: Literal["document", "query"] | None = None
    verdict: StoredVerdict | None = None
    queries: dict[str, list[int | float | str]]
    front: Annotated[list[StoredRanker], Field(min_length=1)]
    chosen: Natural
    baselines: list[StoredRanker]
    convergence: dict[str, Convergence]
    n_evaluations: Natural
    times: Times
    versions: dict[str, str]


def read_stored(text: str) -> StoredResult:
    """Read the text of a result and check that all of it fits together.

    Raises
    ------
    ValueError
        If it does not; the message names the place.
    """
    try:
        stored = StoredResult.model_validate_json(text)
    except ValidationError as error:
        _check_older(text)
        raise ValueError(first_mistake(error)) from None
    check_format(stored.format, stored.versions.get("moerank"))
    _check_configuration(stored)
    _check_scaling(stored)
    _check_keys("queries", stored.queries, PARTS)
    if stored.chosen >= len(stored.front):
        raise ValueError(f"chosen is {stored.chosen}, but front has {len(stored.front)} members, counted from 0")
    for stage, columns in stored.convergence.items():
        if not len(columns.generation) == len(columns.evaluations) == len(columns.hypervolume):
            raise ValueError(f"convergence.{stage}: its lists have different lengths")
    for key, rankers in (("front", stored.front), ("baselines", stored.baselines)):
        for number, ranker in enumerate(rankers):
            whole = key == "baselines" or number == stored.chosen
            _check_ranker(f"{key}.{number}", ranker, stored, whole=whole)
    return stored


def check_format(number: object, version: object) -> None:
    """Refuse files of another format; `version` is that of the package which wrote them, where it is known.

    Raises
    ------
    ValueError
        If `number` is not `FORMAT`.
    """
    if number != FORMAT or isinstance(number, bool):
        writer = f"moerank {version}" if isinstance(version, str) and version else "another version"
        shown = number if isinstance(number, int) and number.bit_length() < 64 else "of another kind"
        raise ValueError(f"format {shown}, written by {writer}; moerank {VERSION} here reads format {FORMAT}")


def _check_older(text: str) -> None:
    """Say of a result of another format that it is one, rather than what is strange about it."""
    values = read_json(text)
    if isinstance(values, dict) and "format" in values:
        versions = values.get("versions")
        check_format(values["format"], versions.get("moerank") if isinstance(versions, dict) else None)


def _check_configuration(stored: StoredResult) -> None:
    try:
        read = _Configuration.model_validate(stored.configuration)
    except ValidationError as error:
        raise ValueError(f"configuration.{first_mistake(error)}") from None
    _check_keys("configuration.data", stored.configuration["data"], read.data.settings())
    said = {"problem": read.problem, "fold": read.fold, "seed": read.seed, "solver": read.solver.label}
    for name, value in said.items():
        if value != getattr(stored, name):
            raise ValueError(f"{name} is {getattr(stored, name)!r}, but {value!r} in configuration")


def _check_scaling(stored: StoredResult) -> None:
    """Check that fitted values are there for every feature, and for data that are to be scaled by them."""
    fitted = stored.configuration["data"]["normalize"] in get_args(FittedKind)
    if stored.scaling is None:
        if fitted:
            raise ValueError("scaling is missing, and configuration.data.normalize is one by fitted values")
        return
    n_values = len(stored.feature_names) if stored.scaling.kind in get_args(FittedKind) else 0
    if not len(stored.scaling.offset) == len(stored.scaling.scale) == n_values:
        raise ValueError(f"scaling: {stored.scaling.kind!r} needs offset and scale of {n_values} features")


def _check_ranker(place: str, ranker: StoredRanker, stored: StoredResult, *, whole: bool) -> None:
    """Check that a ranker has what the result has; `whole`, if the values of all queries must be there."""
    if ranker.features and max(ranker.features) >= len(stored.feature_names):
        raise ValueError(
            f"{place}.features has column {max(ranker.features)}, but there are {len(stored.feature_names)} features, "
            "counted from 0"
        )
    _check_keys(f"{place}.objectives", ranker.objectives, stored.objectives)
    _check_keys(f"{place}.scores", ranker.scores, PARTS)
    for part, scores in ranker.scores.items():
        _check_keys(f"{place}.scores.{part}", scores, stored.metrics)
    if ranker.further:
        _check_keys(f"{place}.further", ranker.further, PARTS)
    if not ranker.per_query and not whole:
        return
    _check_keys(f"{place}.per_query", ranker.per_query, PARTS)
    for part, columns in ranker.per_query.items():
        _check_keys(f"{place}.per_query.{part}", columns, stored.metrics)
        for metric, values in columns.items():
            if len(values) != len(stored.queries[part]):
                raise ValueError(
                    f"{place}.per_query.{part}.{metric} has {len(values)} values, but there are "
                    f"{len(stored.queries[part])} queries"
                )


def _check_keys(place: str, given: Mapping[str, object], known: Iterable[str]) -> None:
    if given.keys() != set(known):
        raise ValueError(f"{place} must have the keys {', '.join(known)}, not {', '.join(given) or 'none'}")


_PLAIN: dict[str, Scaling] = {scaling.kind: scaling for scaling in (UNSCALED, PER_QUERY)}


@dataclass(frozen=True)
class ScoredRanker:
    """A ranker, and how it ranks each part of the fold.

    Attributes
    ----------
    name : str
    model : Model
        The ranker itself, as far as it can be stored.
    objectives : dict
        The value of each objective of the problem on the training part, also for rankers that no search found.
    scores : dict
        Part ("train", "validation", "test"), then metric, then the mean over queries.
    per_query : dict
        The same with the values of all queries; empty for members that were not chosen.
    further : dict
        Part, then each metric that is not in `scores`, then the mean over queries; empty for members that were not
        chosen, and in results of earlier versions.
    paired_error : float or None
        Standard error of the difference from the baseline "all features", query by query: of the first metric, on the
        test part. None where that baseline was not measured, and for baselines.
    """

    name: str
    model: Model
    objectives: dict[str, float]
    scores: dict[str, dict[str, float]]
    per_query: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    further: dict[str, dict[str, float]] = field(default_factory=dict, kw_only=True)
    paired_error: float | None = None

    @property
    def features(self) -> tuple[int, ...]:
        """The columns that it needs, ascending."""
        return self.model.columns

    @property
    def weights(self) -> tuple[float, ...] | None:
        """Their weights; None if the ranker does not score by wᵀx."""
        return self.model.weights

    def as_dict(self) -> dict[str, Any]:
        """Return the ranker as a result keeps it: names and scaling of the features are there once for all rankers."""
        return {
            "name": self.name,
            "features": self.features,
            "weights": self.weights,
            "trees": None if self.model.trees is None else asdict(self.model.trees),
            "parameters": self.model.parameters,
            "objectives": self.objectives,
            "scores": self.scores,
            "per_query": self.per_query,
            **({} if self.paired_error is None else {"paired_error": self.paired_error}),
            **({"further": self.further} if self.further else {}),
        }

    @classmethod
    def from_stored(
        cls, stored: StoredRanker, feature_names: Sequence[str], scaling: Scaling, missing: MissingRule | None
    ) -> ScoredRanker:
        """Read what `as_dict` returned, with the names of all columns, how they are scaled, and what was missing."""
        own = set(stored.features)
        model = Model(
            names=tuple(feature_names[feature] for feature in stored.features),
            columns=stored.features,
            weights=stored.weights,
            trees=stored.trees,
            scaling=scaling.of_features(np.array([column in own for column in range(len(feature_names))])),
            missing=missing,
            parameters=stored.parameters,
        )
        values = stored.objectives, stored.scores, stored.per_query, stored.paired_error
        return cls(stored.name, model, *values, further=stored.further)


@dataclass(frozen=True)
class RunResult:
    """The result of one solver with one seed on one fold of a problem.

    Attributes
    ----------
    problem : str
    fold : int
    solver : str
        The label of the solver: its name, with the parameters that were asked for in brackets.
    seed : int
        The number of the run among those that differ in their draws alone.
    random_state : int
        What the draws came from.
    metrics : list of str
        The metric of the error, then the second one of the tables.
    objectives : list of str
        The names of the objectives.
    configuration : dict
        All settings that decide the result.
    feature_names : list of str
    queries : dict of list
        The query ids of each part, in the order of the per-query values.
    front : list of ScoredRanker
        What the solver offers, by size: the non-dominated members of a search, the path of another selection, the
        only ranker of a solver that selects nothing.
    chosen : int
        Which of them was chosen.
    baselines : list of ScoredRanker
        All features, the best single feature, FSMRank.
    convergence : dict
        For each stage the lists "generation", "evaluations" and "hypervolume".
    n_evaluations : int
    times : dict
        Seconds of each step; under "processor" those that the processor worked, which do not grow when others use the
        machine; under "stages" those of each generation. With `versions` all that differs between two runs of the same
        configuration.
    versions : dict of str
        Of the libraries; and the "machine", for the sake of the times.
    scaling : Scaling
        How the features of all parts were scaled.
    missing : float, str or None
        The rule for missing values.
    instances : {"pair", "document", "query"} or None
        What instance selection chose among; None without it.
    verdict : Verdict or None
        The chosen member against the same ranker on all features, on the test queries; None of what selects nothing.
    """

    problem: str
    fold: int
    solver: str
    seed: int
    random_state: int
    metrics: list[str]
    objectives: list[str]
    configuration: dict[str, Any]
    feature_names: list[str]
    queries: dict[str, list[Any]]
    front: list[ScoredRanker]
    chosen: int
    baselines: list[ScoredRanker]
    convergence: dict[str, dict[str, list[float]]]
    n_evaluations: int
    times: dict[str, Any]
    versions: dict[str, str]
    scaling: Scaling = UNSCALED
    missing: MissingRule | None = None
    instances: Unit | None = None
    verdict: Verdict | None = None

    @property
    def best(self) -> ScoredRanker:
        """The chosen member of the front."""
        return self.front[self.chosen]

    @property
    def further_objectives(self) -> list[str]:
        """The objectives beyond the number of features and the error, which every table has."""
        return [name for name in self.objectives if name not in FRONT]

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of the image whose pixels the features are, if they are, and none is left out."""
        grid = self.configuration["data"]["grid"]
        return None if grid is None or grid[0] * grid[1] != len(self.feature_names) else (grid[0], grid[1])

    def names(self, features: Sequence[int]) -> list[str]:
        """Return the names of columns."""
        return [self.feature_names[feature] for feature in features]

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON keeps it, keys always in the same order."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        rankers = {key: [ranker.as_dict() for ranker in values[key]] for key in ("front", "baselines")}
        if values.pop("instances") not in (None, "pair"):  # as it always was
            values["instances"] = self.instances
        if (verdict := values.pop("verdict")) is not None:
            values["verdict"] = verdict.as_dict()
        if values.pop("missing") is not None:
            values["missing"] = self.missing
        if values.pop("scaling").kind != self.configuration["data"]["normalize"]:
            values["scaling"] = {"kind": self.scaling.kind}
        if isinstance(self.scaling, FittedScaling):
            values["scaling"] = {"kind": self.scaling.kind, **asdict(self.scaling)}
        return {"format": FORMAT, **values, **rankers}

    def to_json(self) -> str:
        """Return the text of result.json."""
        return json.dumps(self.as_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> RunResult:
        """Read the text of a result.json.

        Raises
        ------
        ValueError
            If it is not one, or one of another format; the message names the place.
        """
        try:
            stored = read_stored(text)
            scaling = _PLAIN.get(stored.configuration["data"]["normalize"], UNSCALED)
            if stored.scaling is not None:
                scaling = stored.scaling.read()
            shared = stored.feature_names, scaling, stored.missing
            values: dict[str, Any] = {name: getattr(stored, name) for name in type(stored).model_fields}
            del values["format"]
            values["scaling"] = scaling
            if stored.instances is None and "instance_selection" in stored.convergence:
                values["instances"] = "pair"
            values["convergence"] = {stage: columns.model_dump() for stage, columns in stored.convergence.items()}
            values["times"] = stored.times.model_dump()
            values["verdict"] = None if stored.verdict is None else stored.verdict.read()
            for key in ("front", "baselines"):
                values[key] = [ScoredRanker.from_stored(ranker, *shared) for ranker in values[key]]
            return cls(**values)
        except ValueError as error:
            raise ValueError(f"not a result of this version of moerank ({error})") from None
