"""What each stage of MOFSRank can be told: the sections of problem files and the arguments of MOFSRank alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar

from numpy.typing import ArrayLike
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo
from pymoo.core.sampling import Sampling
from pymoo.core.termination import Termination
from pymoo.termination import get_termination
from pymoo.termination.max_time import TimeBasedTermination

from moerank.checks import check_at_least, check_room, check_switch, unknown
from moerank.evolution import DECAY, DENSITY, FORM, Decay, Form

__all__ = [
    "KINDS",
    "STAGES",
    "EnsembleSettings",
    "FeatureSelectionSettings",
    "InstanceSelectionSettings",
    "StageArgument",
    "StagePlan",
    "StageSettings",
    "at_least",
    "read_plan",
    "listed_settings",
    "merged_settings",
]

STAGES = ("instance_selection", "feature_selection", "ensemble")
"""The stages in their order, by the names of their sections and arguments."""

MOST_GENERATIONS = 10**9
"""More would not end in a lifetime."""

INDIVIDUAL = 1024
"""Bytes that an individual takes at least, whatever its length."""


def at_least(least: int, most: int | None = None) -> BeforeValidator:
    """Return what refuses smaller and larger numbers, and what only looks like an integer: "5", 5.0 and true."""

    def check(value: Any, info: ValidationInfo) -> int:
        check_at_least(least, most, **{str(info.field_name): value})
        return int(value)

    # The type is what a JSON schema, and so the reference of the keys, shows of the range.
    return BeforeValidator(check, json_schema_input_type=Annotated[int, Field(ge=least, le=most)])


def _fits(population: int) -> int:
    check_room(f"a population of {population:,} individuals", population * INDIVIDUAL)
    return population


class StageSettings(BaseModel):
    """What every stage can be told.

    Attributes
    ----------
    population : int
        Individuals per generation.
    generations : int
        Generations, the initial population counted.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    population: Annotated[int, at_least(2, 2**63), AfterValidator(_fits)] = 100
    generations: Annotated[int, at_least(1, MOST_GENERATIONS)] = 100


class InstanceSelectionSettings(StageSettings):
    """Settings of the first stage: what is chosen among, initial densities, and the subsets it hands on.

    Attributes
    ----------
    unit : {"auto", "pair", "document", "query"}
        What a bit stands for; see `InstanceSelection`. "auto" is a pair for up to five million of them, else a query.
    density : (float, float)
        Range of the shares of bits that are set in the initial population.
    max_subsets : int
        Most instance subsets that go to the second stage, spread along the front.
    include_all : bool
        Whether the subset of all instances is among them.
    """

    generations: Annotated[int, at_least(1, MOST_GENERATIONS)] = 50
    unit: Literal["auto", "pair", "document", "query"] = "auto"
    density: tuple[float, float] = DENSITY
    max_subsets: Annotated[int, at_least(1)] = 10
    include_all: bool = True


class FeatureSelectionSettings(StageSettings):
    """Settings of the second stage: what a bit stands for, and the reading of equations (3) and (4).

    Attributes
    ----------
    by_group : bool
        A bit stands for all features of a group, as the data's costs have them, here and in the third stage.
    form, decay : str
        See `AdaptiveBitFlip`.
    """

    by_group: bool = False
    form: Form = FORM
    decay: Decay = DECAY


class EnsembleSettings(StageSettings):
    """Settings of the third stage: what becomes of the members of the second stage's front.

    Attributes
    ----------
    keep_members : bool
        Whether they stay in the front where no ensemble dominates them, so that it is never worse than before. In the
        paper's front there are ensembles alone.
    inject : bool
        Whether they are in the initial population, so that the search goes on from them.
    """

    keep_members: bool = True
    inject: bool = False


KINDS: dict[str, type[Any]] = dict(
    zip(STAGES, (InstanceSelectionSettings, FeatureSelectionSettings, EnsembleSettings), strict=True)
)
"""The settings of each stage."""

Settings = TypeVar("Settings", bound=StageSettings)

StageArgument: TypeAlias = bool | Mapping[str, Any]
"""Whether there is a stage, or what it is told: keys of its settings, ``termination`` and ``initial``."""


@dataclass(frozen=True)
class StagePlan(Generic[Settings]):
    """How a stage is run.

    Attributes
    ----------
    settings : StageSettings
    termination : pymoo termination or tuple, optional
        Instead of ``generations``, as pymoo users know it: ``("time", "00:01:00")``, ``("n_eval", 5000)``, …
    initial : ndarray or pymoo Sampling, optional
        Initial population instead of the stage's own sampling.
    """

    settings: Settings
    termination: Termination | tuple[Any, ...] | None = None
    initial: ArrayLike | Sampling | None = None


def read_plan(kind: type[Settings], name: str, value: StageArgument) -> StagePlan[Settings]:
    """Read the argument of a stage.

    Raises
    ------
    ValueError
        For an unknown key, with the nearest that exists, or a wrong value; the message names the stage and the key.
    """
    if not isinstance(value, Mapping):
        check_switch(**{name: value})
        return StagePlan(kind())
    known = [*kind.model_fields, "termination", "initial"]
    for key in value:
        if key not in known:
            raise ValueError(unknown(f"setting of {name}", key, known))
    try:
        settings = kind(**{key: entry for key, entry in value.items() if key in kind.model_fields})
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "value_error":
            raise ValueError(f"{name}: {first['ctx']['error']}") from None
        raise ValueError(f"{name}: {'.'.join(map(str, first['loc']))} {first['msg'].removeprefix('Input ')}") from None
    termination, initial = value.get("termination"), value.get("initial")
    _check_termination(name, termination)
    if isinstance(initial, str | Mapping):
        raise ValueError(f"{name}: initial must be an array of individuals or a pymoo Sampling, not {initial!r}")
    return StagePlan(settings, termination, initial)


def _check_termination(name: str, value: Any) -> None:
    """Refuse what pymoo would take without a word or refuse without naming it."""
    if value is None or isinstance(value, Termination):
        return
    kind, *arguments = value if isinstance(value, list | tuple) and value else (value,)
    try:
        if kind in ("n_gen", "n_iter", "n_eval", "n_evals"):
            (number,) = arguments
            check_at_least(1, **{kind: number})
        elif kind == "time":
            (limit,) = arguments
            seconds = TimeBasedTermination(limit).max_time
            if isinstance(limit, bool) or not 0 < seconds < inf:
                raise ValueError
        else:
            get_termination(kind, *arguments)
    except Exception:  # pymoo raises Exception itself
        raise ValueError(
            f'{name}: termination must be ("n_gen", 50), ("n_eval", 5000), ("time", "00:01:00"), another one that '
            f"pymoo knows by name, or a pymoo Termination, not {value!r}"
        ) from None


def listed_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of all stages by their nested names, those that were not given with their defaults.

    Parameters
    ----------
    parameters : mapping
        Those of MOFSRank. A stage that is left out has no settings.

    Examples
    --------
    >>> stages = {"instance_selection": False, "feature_selection": {"generations": 5}, "ensemble": False}
    >>> {name: value for name, value in listed_settings(stages).items() if "generations" in name}
    {'feature_selection__generations': 5}
    """
    return {
        f"{stage}__{key}": value
        for stage, kind in KINDS.items()
        if parameters[stage] is not False
        for key, value in {**_defaults(kind), **_given(parameters[stage])}.items()
    }


def merged_settings(parameters: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes of parameters in which those of a stage's settings have become one new mapping for the stage.

    Parameters
    ----------
    parameters : mapping
        Those of MOFSRank as they are.
    changes : mapping
        What ``set_params`` was given: parameters, and settings by their nested names.

    Raises
    ------
    ValueError
        For an unknown setting, the nearest one being suggested, for settings of a stage that is left out, and for
        parameters of a backend or another object that is None.

    Examples
    --------
    >>> merged_settings({"ensemble": {"population": 50}}, {"ensemble__generations": 5, "final": "knee"})
    {'final': 'knee', 'ensemble': {'population': 50, 'generations': 5}}
    """
    merged = {name: value for name, value in changes.items() if name.partition("__")[0] not in KINDS or name in KINDS}
    for name, value in changes.items():
        stage, _, key = name.partition("__")
        if key and merged.get(stage, parameters.get(stage, ())) is None:
            raise ValueError(f"{name}: {stage} is None, and so has no parameters of its own; set {stage} itself")
        if stage not in KINDS or not key:
            continue
        known, whole = _defaults(KINDS[stage]), merged.get(stage, parameters.get(stage))
        if key not in known:
            raise ValueError(unknown(f"setting of {stage}", key, known))
        if whole is False:
            raise ValueError(
                f"{name}: the stage is left out ({stage}=False), and has no settings; set {stage}=True, too"
            )
        merged[stage] = {**_given(whole), key: value}
    return merged


def _given(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _defaults(kind: type[StageSettings]) -> dict[str, Any]:
    """Return the keys of a stage's mapping with what each is if it is not given."""
    return {**{key: field.default for key, field in kind.model_fields.items()}, "termination": None, "initial": None}
