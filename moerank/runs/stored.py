"""The shape of a stored result: what a result.json or the file of a cell may hold, checked entry by entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from moerank.checks import first_mistake
from moerank.data import PER_QUERY, UNSCALED, FittedScaling, Scaling
from moerank.data.folds import MOST_FOLDS
from moerank.data.missing import QueryRule
from moerank.data.scales import FittedKind, Kind
from moerank.files import read_json
from moerank.rankers.forest import Forest
from moerank.runs.features import FeaturesSection
from moerank.runs.problem import BackendSection, MetricSection, SearchSection
from moerank.runs.section import Parameters, Section
from moerank.runs.sources import Data
from moerank.stages.settings import EnsembleSettings, FeatureSelectionSettings, InstanceSelectionSettings
from moerank.verdict import Part, Verdict
from moerank.version import VERSION

__all__ = ["FORMAT", "PARTS", "StoredRanker", "StoredResult", "check_format", "read_stored"]

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
    search: SearchSection | None = None
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
