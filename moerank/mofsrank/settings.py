"""Settings of a search: arguments of `MOFSRank`, tables of problem files, and configurations of memos."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pymoo.core.termination import Termination
from pymoo.termination import get_termination

from moerank.checks import (
    Parameters,
    cap_workers,
    check_choice,
    require_integer,
    require_switch,
    unknown,
)
from moerank.data import FeatureCosts
from moerank.data.inputs import listed
from moerank.evolution import ALGORITHMS, BIT_SEARCHES, Factory, make_algorithm
from moerank.evolution.operators import CROSSOVER, DENSITY, Decay, Form, Importance, Redundancy
from moerank.identity import identify
from moerank.metrics import NDCG, Metric, as_metric
from moerank.mofsrank.objectives import FRONT, Final, read_objectives
from moerank.rankers import FitnessBackend, as_backend
from moerank.scikit_learn import clone
from moerank.solvers import PROPOSALS, make_solver, read_solver, solver_entry, solvers
from moerank.verdict import MARGIN

StageArgument: TypeAlias = bool | Mapping[str, object]
"""True or False to run a stage or leave it out, or its settings."""

SearchProgress: TypeAlias = Callable[[str, float, int, int], object]
"""Function of the stage, the fraction of it that is done, the generation and the evaluations."""


def _read_features(features: Any) -> tuple[Any, ...]:
    """Return features as a tuple of values that JSON can hold."""
    return tuple(
        int(feature) if isinstance(feature, np.integer) else feature for feature in listed(features)
    )


# Features by their columns, counted from 0, or by their names.
Features: TypeAlias = Annotated[
    tuple[Any, ...],
    BeforeValidator(_read_features, json_schema_input_type=tuple[int | str, ...]),
]


def at_least(minimum: int, maximum: int | None = None) -> BeforeValidator:
    """Return a validator of integers from `minimum` to `maximum`, which refuses "5", 5.0 and true."""

    def check(value: Any, info: ValidationInfo) -> int:
        require_integer(str(info.field_name), value, minimum, maximum)
        return int(value)

    # The JSON schema, from which the reference of the keys is made, takes the range from this type.
    return BeforeValidator(
        check, json_schema_input_type=Annotated[int, Field(ge=minimum, le=maximum)]
    )


ZeroOrMore: TypeAlias = Annotated[int, at_least(0)]
OneOrMore: TypeAlias = Annotated[int, at_least(1)]
TwoOrMore: TypeAlias = Annotated[int, at_least(2)]


def _read_switch(value: object, info: ValidationInfo) -> object:
    require_switch(str(info.field_name), value)
    return value


Switch: TypeAlias = Annotated[bool, BeforeValidator(_read_switch)]


def _checked_by(check: Callable[[Any], object], shown_as: object) -> BeforeValidator:
    """Return a validator that calls `check` for its ValueError; the JSON schema shows the type `shown_as`."""

    def validate(value: object) -> object:
        check(value)
        return value

    return BeforeValidator(validate, json_schema_input_type=shown_as)


# The attributes of pymoo's terminations that hold a number of generations, of evaluations, or of seconds.
_COUNTS = {"n_max_gen", "n_max_evals"}
_BUDGETS = _COUNTS | {"max_time"}


def _budgets(termination: Any) -> Parameters:
    """Return the attributes of a termination, which may also have the form of `get_termination`, or be None."""
    if not isinstance(termination, Termination | None):
        termination = get_termination(*listed(termination))
    return vars(termination) if termination else {}


def _check_termination(termination: Any) -> None:
    """Refuse a termination that pymoo misreads, or refuses without naming it."""
    try:
        budgets = _budgets(termination)
        valid = all(0 < budgets.get(name, 1) < inf for name in _BUDGETS)
    except Exception:  # pymoo raises Exception itself
        valid = False
    if not valid:
        raise ValueError(
            'termination must be ("n_gen", 50), ("n_eval", 5000), ("time", "00:01:00"), '
            "another one that pymoo knows by name, or a pymoo Termination, "
            f"not {termination!r}"
        )


def _check_algorithm(algorithm: object) -> None:
    if not callable(algorithm):
        check_choice(ALGORITHMS, algorithm=str(algorithm).partition("[")[0])


AsJson = PlainSerializer(lambda value: identify(value, "a setting"), when_used="json")


@contextmanager
def pydantic_errors_as_value_errors(
    describe: Callable[[ValidationError], str],
) -> Iterator[None]:
    """Turn an error of pydantic into a ValueError that describes it."""
    try:
        yield
    except ValidationError as error:
        raise ValueError(describe(error)) from None


class Section(BaseModel):
    """A table of settings: unknown keys are errors."""

    # Schemas are built at first use; building them takes a tenth of the time to import this package.
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
        defer_build=True,
    )


class LimitsSection(Section):
    """Limits as a problem file has them; `Limits` adds costs and groups."""

    include: Features = ()
    exclude: Features = ()
    max_features: OneOrMore | None = None
    max_cost: Annotated[float, Field(ge=0)] | None = None

    @property
    def given(self) -> Parameters:
        """The limits that are set, by name."""
        return self.model_dump(include=set(LimitsSection.model_fields), exclude_defaults=True)


class Limits(LimitsSection):
    """Limits that every selection of features keeps, with the costs and groups of the features.

    `MOFSRank`, its stages and problem files share them. Every string that a search evaluates keeps them: the operators
    repair strings, and stages refuse others. Limits that no selection can keep are refused before a search.

    Parameters
    ----------
    include : int, str or sequence of these, default ()
        Columns, from 0, or names of features of every selection, which count even if their weight is 0.
    exclude : int, str or sequence of these, default ()
        Columns or names of features that no selection has. `MOFSRank` also leaves them out of tuning and of the
        reference of the verdict.
    max_features : int, optional
        Largest number of features of a selection, including those of `include`.
    max_cost : float, optional
        Largest cost of all features of a selection together; the features must have costs.
    costs : array-like, mapping or FeatureCosts, shape (n_features,), optional
        Cost of each feature, in the order of the columns or by name, for `max_cost` and for the objective "cost"; by
        default that of the data. A `FeatureCosts` also has groups.
    groups : sequence or mapping, optional
        Group of each feature that is computed together with others, None for the rest. Without `costs` a feature costs
        0 by itself. With ``feature_selection={"by_group": True}`` groups are selected as a whole.
    group_costs : mapping, optional
        Cost of each group, paid once however many of its features are used.

    Raises
    ------
    ValueError
        For an unknown limit, and for a number out of range.

    Examples
    --------
    >>> Limits(max_features=10, include="bm25")
    Limits(include=('bm25',), max_features=10)
    """

    costs: FeatureCosts | Mapping[Any, float] | ArrayLike | None = Field(default=None, exclude=True)
    groups: Mapping[Any, Any] | ArrayLike | None = Field(default=None, exclude=True)
    group_costs: Mapping[Any, float] | None = Field(default=None, exclude=True)

    def __init__(self, **limits: Any) -> None:
        with pydantic_errors_as_value_errors(_sentence):
            super().__init__(**limits)

    def __repr_args__(self) -> list[tuple[str, Any]]:
        return list(given_settings(self).items())


Probability = Annotated[float, Field(ge=0, le=1)]
ShareOfOnes = Annotated[float, Field(gt=0, le=1)]


class StageSettings(Section):
    """Settings of every stage.

    Attributes
    ----------
    population : int
        Individuals per generation.
    generations : int
        Number of generations, including the initial population.
    termination : list, optional
        Termination of pymoo instead of ``generations``: ``("time", "00:01:00")``, ``("n_eval", 5000)``, … or a
        Termination object.
    crossover : float
        Probability p_c that two parents are crossed.
    mutation : float, optional
        Probability p_m that an entry of a string changes; by default 1 / the length of a string. Sparse searches have
        other operators.
    initial : ndarray, pymoo Sampling or "random", optional
        Initial population instead of the sampling of the stage; "random" sets each bit with probability one half.
    eliminate_duplicates : bool
        Whether a string that is in the population is drawn again. Sparse searches have rules of their own.
    repair : bool
        Whether strings that break limits are repaired; otherwise they are the worst in all objectives.
    """

    population: TwoOrMore = 100
    generations: OneOrMore = 100
    termination: Annotated[object, _checked_by(_check_termination, list[str | int]), AsJson] = None
    crossover: Probability = CROSSOVER
    mutation: Probability | None = None
    eliminate_duplicates: bool = True
    repair: bool = True
    initial: SkipJsonSchema[Annotated[object, AsJson]] = None

    @model_serializer(mode="wrap")
    def _without_none(self, serialise: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {name: value for name, value in serialise(self).items() if value is not None}


class InstanceSelectionSettings(StageSettings):
    """Settings of the first stage: unit of selection, initial population, and subsets for the second stage.

    In a problem file they do not turn the stage on for additive rankers; ``mofsrank[instance_selection=true]`` does.

    Attributes
    ----------
    unit : {"auto", "pair", "document", "query"}
        Unit of a bit; see `InstanceSelection`. "auto" is a pair for up to a million pairs, else a query; it is a query
        if queries or documents have weights, or the backend is additive.
    density : (float, float)
        Range of the shares of ones in the initial population.
    max_subsets : int
        Largest number of instance subsets for the second stage, spread along the front.
    include_all : bool
        Whether the subset of all instances is one of them.
    """

    generations: OneOrMore = 50
    unit: Literal["auto", "pair", "document", "query"] = "auto"
    density: tuple[ShareOfOnes, ShareOfOnes] = DENSITY
    max_subsets: OneOrMore = 10
    include_all: bool = True


class FeatureSelectionSettings(StageSettings):
    """Settings of the second stage: features or groups as bits, and the reading of equations (3) to (6).

    Attributes
    ----------
    by_group : bool
        Whether a bit stands for all features of a group in the costs of the data, here and in the third stage.
    form, decay : str
        See `AdaptiveBitFlip`.
    importance, redundancy : str
        See `importance_degrees` and `redundancy_degrees`.
    """

    by_group: bool = False
    form: Form = "additive"
    decay: Decay = "inverse"
    importance: Importance = "share"
    redundancy: Redundancy = "share"


class EnsembleSettings(StageSettings):
    """Settings of the third stage: use of the members of the second stage, and number of features of an ensemble.

    Attributes
    ----------
    keep_members : bool
        Whether members that no ensemble dominates stay in the front, so that it is never worse than before. In the
        paper the front has only ensembles.
    inject : bool
        Whether the members are in the initial population.
    count : {"weights", "bits"}
        Count the features with a weight, or the bits that are 1, as in the paper.
    """

    keep_members: bool = True
    inject: bool = False
    count: Literal["weights", "bits"] = "weights"


STAGE_SETTINGS: dict[str, type[StageSettings]] = {
    "instance_selection": InstanceSelectionSettings,
    "feature_selection": FeatureSelectionSettings,
    "ensemble": EnsembleSettings,
}

STAGES = tuple(STAGE_SETTINGS)  # in their order, as sections and arguments

# Arguments of `MOFSRank` whose keys can also be set one by one, as feature_selection__generations.
NESTED: dict[str, type[Section]] = {**STAGE_SETTINGS, "limits": Limits}


class SearchSettings(Section):
    """Settings of all stages, see `MOFSRank`. The verdicts of other selections have the same margin."""

    algorithm: Annotated[str | Factory, _checked_by(_check_algorithm, str), AsJson] = "nsga2"
    objectives: Annotated[
        tuple[Any, ...], _checked_by(read_objectives, tuple[str, ...]), AsJson
    ] = FRONT
    final: Final = "auto"
    margin: Annotated[float, Field(gt=0, le=1)] = MARGIN


SEARCH_DEFAULTS = SearchSettings()

Refit = Annotated[
    object, _checked_by(lambda value: read_refit(value), str | list[str] | None), AsJson
]


class ServeSettings(Section):
    """The rankers that serve, in a problem file; see `MOFSRank`.

    Attributes
    ----------
    rankers : str or list of str, optional
        The argument `refit`.
    proposals : list of str
    """

    rankers: Refit = None
    proposals: tuple[str, ...] = PROPOSALS


class Settings(SearchSettings):
    """Checked arguments of `MOFSRank`, with None for a stage that is left out, and a drawn seed if none is given."""

    backend: FitnessBackend
    metric: Metric
    instance_selection: InstanceSelectionSettings | None
    feature_selection: FeatureSelectionSettings
    ensemble: EnsembleSettings | None
    limits: Limits
    refit: Refit
    proposals: tuple[str, ...]
    adaptive_mutation: Switch
    tune: Switch
    random_state: ZeroOrMore
    workers: Annotated[OneOrMore, AfterValidator(cap_workers)] = Field(exclude=True)
    client: Any = Field(default=None, exclude=True)
    memo: str | Path | None = Field(exclude=True)
    resume: Switch = Field(exclude=True)
    progress: SearchProgress | None = Field(exclude=True)
    verbose: Switch = Field(exclude=True)

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the checked arguments; a ValueError names the argument, or the stage and the key."""
        settings = {name: arguments[name] for name in cls.model_fields if name in arguments}
        if hasattr(settings["workers"], "scatter"):  # it is a Dask client
            settings |= {"client": settings["workers"], "workers": 1}
        settings["backend"] = as_backend(settings["backend"])
        if settings["instance_selection"] is None:
            settings["instance_selection"] = not hasattr(settings["backend"], "judge_of_instances")
        settings["metric"] = as_metric(settings["metric"], NDCG(10))
        settings["limits"] = settings["limits"] or {}
        if settings["random_state"] is None:
            settings["random_state"] = int(np.random.SeedSequence().generate_state(1)[0])
        with pydantic_errors_as_value_errors(_sentence):
            return cls.model_validate(settings)

    @field_validator(*STAGES, mode="before")
    @classmethod
    def _read_stage(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, Mapping | StageSettings):
            return value
        _read_switch(value, info)
        if not value and info.field_name == "feature_selection":
            raise ValueError("feature_selection cannot be switched off: it is what MOFSRank is for")
        return {} if value else None

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if is_sparse(self.algorithm):
            make_algorithm(
                self.algorithm, self.feature_selection.population, {}, len(self.objectives)
            )
        for stage in STAGES if self.algorithm == "rvea" else ():
            budgets = _budgets(getattr(getattr(self, stage), "termination", None))
            if budgets and not budgets.keys() & _COUNTS:
                raise ValueError(
                    f"{stage}: rvea must know its end beforehand. Give the termination as "
                    '("n_gen", 50) or ("n_eval", 5000), or take another algorithm'
                )
        return self

    def configuration(self) -> dict[str, object]:
        """Return the settings that determine the evaluations, as JSON values."""
        settings = self.model_dump(exclude={"final", "margin", "proposals", "refit", "tune"})
        settings["objectives"] = read_objectives(self.objectives)
        return {name: identify(value, name) for name, value in settings.items()}


def _sentence(error: ValidationError) -> str:
    """Describe the first wrong argument, with its stage."""
    mistake = error.errors()[0]
    name, *keys = map(str, mistake["loc"] or ("",))
    if mistake["type"] == "extra_forbidden":
        kind, key = (f"setting of {name}", keys[-1]) if keys else ("limit", name)
        return unknown(kind, key, STAGE_SETTINGS.get(name, Limits).model_fields)
    if mistake["type"] == "value_error":
        reason = str(mistake["ctx"]["error"])
        return f"{name}: {reason}" if keys else reason
    path = f"{name}: {'.'.join(keys)}" if keys else name
    return f"{path} {mistake['msg'].removeprefix('Input ')}, not {mistake['input']!r:.80}"


def is_sparse(algorithm: str | Factory) -> bool:
    """Return whether an algorithm can search only the feature strings of the second stage."""
    return isinstance(algorithm, str) and algorithm.partition("[")[0] in BIT_SEARCHES


def read_refit(value: object, random_state: int = 0) -> Any:
    """Return the ranker for the argument `refit` of `MOFSRank`, a name or an object, or a list of several.

    None stays None. A ranker without a seed is given `random_state`. Raises a ValueError for an unknown name and for an
    object without ``fit`` or ``predict``.

    >>> read_refit("lambdamart"), read_refit(["additive", "lambdamart"])
    (LambdaMART(), [AdditiveRLS(), LambdaMART()])
    """
    if value is None:
        return None
    if isinstance(value, list | tuple):
        return [read_refit(ranker, random_state) for ranker in value]
    if isinstance(value, str):
        name, parameters = read_solver(value)
        entry = solver_entry(name)
        if entry is None or entry.selects:
            names = [entry.name for entry in solvers().values() if not entry.selects]
            raise ValueError(unknown("ranker", name, names))
        ranker = make_solver(name, **parameters)
    elif isinstance(value, type) or not hasattr(value, "fit") & hasattr(value, "predict"):
        raise ValueError(
            f"refit must be the name of a ranker, or a ranker with fit and predict, "
            f"not {value!r:.80}"
        )
    else:
        ranker = clone(value, safe=False)
    if hasattr(ranker, "get_params") and ranker.get_params().get("random_state", 0) is None:
        ranker.set_params(random_state=random_state)
    return ranker


def read_proposal(name: str, metric: Metric, random_state: int) -> Any:
    """Return a solver that orders features, for an entry of the argument `proposals` of `MOFSRank`.

    Its own ranker, which nobody uses, is trained on one feature, and takes weights.
    """
    name, parameters = read_solver(name)
    solver = make_solver(name, **parameters)
    settings = {
        "n_features_to_select": 1,
        "ranker": as_backend(None),
        "metric": metric,
        "tuning": metric,
        "random_state": random_state,
    }
    free = solver.get_params(deep=False).keys() - parameters.keys()
    return solver.set_params(**{key: settings[key] for key in settings.keys() & free})


def listed_settings(parameters: Mapping[str, object]) -> dict[str, object]:
    """Return the limits and the settings of all stages that run, given or default, by their nested names.

    >>> stages = {"instance_selection": False, "feature_selection": {"generations": 5}, "ensemble": False}
    >>> {name: value for name, value in listed_settings(stages | {"limits": None}).items() if "generations" in name}
    {'feature_selection__generations': 5}
    """
    settings: dict[str, object] = {}
    for name, model in NESTED.items():
        if parameters[name] is not False:
            section = model.model_construct(**given_settings(parameters[name]))
            settings |= {f"{name}__{key}": value for key, value in section}
    return settings


def merged_settings(
    parameters: Mapping[str, object], changes: Mapping[str, object]
) -> dict[str, object]:
    """Return changes of the parameters of MOFSRank, where nested ones are merged into a mapping for each stage.

    Raises a ValueError for unknown settings, settings of a stage that is left out, and parameters of None.

    >>> merged_settings({"ensemble": {"population": 50}}, {"ensemble__generations": 5, "final": "knee"})
    {'final': 'knee', 'ensemble': {'population': 50, 'generations': 5}}
    """
    merged: dict[str, object] = {}
    for name, value in sorted(changes.items(), key=lambda change: "__" in change[0]):
        outer, _, key = name.partition("__")
        current = merged.get(outer, parameters.get(outer, ()))
        if key and outer in NESTED:
            if key not in NESTED[outer].model_fields:
                raise ValueError(unknown(f"setting of {outer}", key, NESTED[outer].model_fields))
            if current is False:
                reason = f"the stage is left out ({outer}=False), and has no settings"
                raise ValueError(f"{name}: {reason}; set {outer}=True as well")
            merged[outer] = given_settings(current) | {key: value}
        elif key and current is None:
            reason = f"{outer} is None, and so has no parameters of its own"
            raise ValueError(f"{name}: {reason}; set {outer} itself")
        else:
            merged[name] = value
    return merged


StageSettingsT = TypeVar("StageSettingsT", bound=StageSettings)


def settings_with(
    kind: type[StageSettingsT], settings: object, keywords: dict[str, object]
) -> StageSettingsT:
    """Return settings of a stage, by default the default ones, with keywords in place of some of them."""
    for name in keywords:
        if name not in kind.model_fields:
            raise TypeError(unknown("argument", name, kind.model_fields))
    with pydantic_errors_as_value_errors(_sentence):
        return kind.model_validate(given_settings(settings) | keywords)


def given_settings(settings: object) -> dict[str, Any]:
    """Return the settings of a stage, or the limits, that the user gave."""
    if isinstance(settings, Section):
        return {name: value for name, value in settings if name in settings.model_fields_set}
    return dict(settings) if isinstance(settings, Mapping) else {}
