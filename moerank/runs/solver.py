"""Solvers with their parameters, named in commands, studies and problem files, or given as Python objects."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from moerank.checks import Parameters, unknown
from moerank.data.inputs import listed
from moerank.evolution import BIT_SEARCHES
from moerank.files import Json
from moerank.identity import digest, identify
from moerank.metrics import Metric, as_metric
from moerank.mofsrank.objectives import FRONT, read_objectives
from moerank.mofsrank.settings import STAGES, SearchProgress, Section, given_settings
from moerank.rankers import FitnessBackend, RankingEstimator, with_features
from moerank.runs.problem import (
    IGNORED,
    SET_BY_RUN,
    PlainParameters,
    Problem,
    parse_solver,
    solver_label,
)
from moerank.scikit_learn import clone
from moerank.solvers import (
    code_is_allowed,
    find_solver,
    format_argument,
    is_code,
    load_code,
    make_solver,
    names_of_code,
    read_solver,
    solver_entry,
    solvers,
)


@dataclass(frozen=True)
class RunArguments:
    """The arguments of a run, which a solver takes for the parameters that it leaves open."""

    backend: FitnessBackend
    metric: Metric
    tuning: Metric
    random_state: int
    workers: Any
    memo: str | Path | None
    resume: bool
    progress: SearchProgress
    limits: Parameters
    search_settings: Parameters  # with those of its stages
    tune: bool = False  # the backend is tuned already

    def offers(self, names: Container[str]) -> Parameters:
        """Return the arguments with these names, those of the settings and each limit among them."""
        arguments = {**vars(self), **self.search_settings, **self.limits}
        return {name: value for name, value in arguments.items() if name in names}


class NamedSolver(BaseModel):
    """A solver in the table of solvers, or a class named as ``module:name``, with parameters.

    The problem sets metric, objectives, backend, limits and budgets that are left open, and validation queries choose
    from the published grid.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    parameters: PlainParameters = {}

    tune: ClassVar[bool] = True
    own_goal: ClassVar[bool] = False
    is_held: ClassVar[bool] = True

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a solver in the form of the command line, NAME or NAME[key=value,…]; see `moerank.solvers.read_solver`.

        Examples
        --------
        >>> NamedSolver.parse('mofsrank[ensemble={"generations":5,"population":8},final=train]').parameters
        {'ensemble': {'generations': 5, 'population': 8}, 'final': 'train'}
        """
        name, parameters = parse_solver(text)
        return cls(name=name, parameters=parameters)

    @property
    def label(self) -> str:
        """The name, with the parameters in brackets."""
        return solver_label(self.name, self.parameters)

    @property
    def seeded(self) -> bool:
        """Whether the result depends on the seed; True for a solver of a plug-in that is not installed here."""
        entry = solver_entry(self.name)
        return entry is None or "seed" in entry.needs

    def fixed_parameters(self, problem: Problem, estimator: object = None) -> Parameters:
        """Return the parameters of the problem file and those of the user, which no grid changes."""
        return {**problem.solver.parameters, **self.parameters}

    def open_parameters(self) -> Parameters:
        """Return the parameters that a problem may set."""
        return find_solver(self.name, {}).defaults()

    def identity(self, problem: Problem) -> Json:
        """Return what identifies the solver in a configuration, as plain JSON values."""
        parameters = self.fixed_parameters(problem)
        return {"name": self.name, "label": self.label, "parameters": parameters}

    def settings(self, problem: Problem) -> Json:
        """Return the settings of a problem, with those that the name of the solver or the user fixes instead."""
        settings = problem.configuration()
        entry = solver_entry(self.name)
        if entry is None:
            return settings
        fixed = entry.settled(self.fixed_parameters(problem))
        for stage in STAGES:
            if fixed.get(stage) is False:
                del settings[stage]
            elif isinstance(fixed.get(stage), Mapping):
                settings[stage] |= fixed[stage]
        settings["search"] |= {name: fixed[name] for name in settings["search"] if name in fixed}
        backend = fixed.get("backend")
        if isinstance(backend, str):
            name, parameters = read_solver(backend)
            tune = fixed.get("tune", False)
            settings["backend"] = {"name": name, "parameters": parameters, "tune": tune}
        if "instance_selection" not in fixed and _judges_instances(settings["backend"]["name"]):
            del settings["instance_selection"]  # MOFSRank leaves the stage out
        return settings

    def make(self, problem: Problem, arguments: RunArguments) -> Any:
        """Return the unfitted estimator of a run, whose arguments set the parameters that are left open."""
        offered = arguments.offers(self.open_parameters())
        parameters = merged_tables(offered, self.fixed_parameters(problem))
        return with_features(make_solver(self.name, **parameters))


class GivenSolver(BaseModel):
    """An estimator of the user, or a function ``make(problem, seed)`` that returns one.

    It is treated as a solver of the table is: what has the default of its class is left open. A folder stores its
    description alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    name: str
    description: Parameters  # see `moerank.identity`
    own_goal: bool  # whether it may have another metric or other objectives than the problem
    tune: bool  # whether validation queries choose from its grid
    takes_settings: bool  # whether parameters with the names of those of a problem mean the same
    source: Any = Field(default=None, exclude=True, repr=False)  # None if loaded from a folder

    @classmethod
    def of(
        cls, source: Any, name: str | None = None, *, own_goal: bool = False, tune: bool = True
    ) -> Self:
        """Return an estimator or a function as a solver.

        `name` is the label in tables, by default the name of the class or function. It must not be a name in the table
        of solvers, and `moerank.identity` must be able to describe the object. With `own_goal` it may have another
        metric or other objectives than a problem. Without `tune` validation queries do not choose its parameters.

        Examples
        --------
        >>> from moerank.rankers import RankSVM
        >>> GivenSolver.of(RankSVM(C=0.5)).label
        'RankSVM'
        """
        is_estimator = _is_estimator(source)
        if isinstance(source, type) or not (is_estimator or callable(source)):
            raise ValueError(
                "a solver is a name, an estimator such as RankSVM(C=1) with fit, predict and "
                f"get_params, or a function make(problem, seed), not {source!r:.80}"
            )
        label = getattr(source, "__name__", type(source).__name__) if name is None else name
        if label.partition("[")[0] in solvers():
            raise ValueError(f"give the solver another name: {label!r} is in the table of solvers")
        description = identify(source, f"the solver {label}", without=IGNORED)
        return cls(
            name=label,
            description=description if is_estimator else {"function": description},
            own_goal=own_goal,
            tune=tune,
            takes_settings=not is_estimator or isinstance(source, RankingEstimator),
            source=clone(source) if is_estimator else source,  # the user may change or fit it later
        )

    @property
    def label(self) -> str:
        """The name in tables."""
        return self.name

    @property
    def seeded(self) -> bool:
        """Whether the result depends on the seed: always for a function, else if the random state is None."""
        parameters = self.description.get("parameters", {"random_state": None})
        return parameters.get("random_state", 0) is None

    @property
    def is_held(self) -> bool:
        """Whether it can run; False if it was loaded from a folder."""
        return self.source is not None

    def fixed_parameters(self, problem: Problem, estimator: Any = None) -> Parameters:
        """Return the parameters of an estimator that are not left open, or all of the user's, nested ones included."""
        if estimator is not None:
            return changed_parameters(estimator)
        return self.source.get_params(deep=True) if _is_estimator(self.source) else {}

    def open_parameters(self) -> Parameters:
        """Return the parameters that a problem may set; a function may take all, an object of another library none."""
        if not self.takes_settings:
            return {}
        if "function" in self.description:
            return find_solver("mofsrank", {}).defaults()
        return self.description["parameters"]

    def identity(self, problem: Problem) -> Json:
        """Return what identifies the solver in a configuration, as plain JSON values."""
        return {**self.model_dump(), "label": self.label}

    def settings(self, problem: Problem) -> Json:
        """Return the settings of a problem."""
        return problem.configuration()

    def is_edit_of(self, earlier: Solver) -> bool:
        """Return whether the texts of the user's code are all that differs from an earlier solver."""
        now, before = self.model_dump(), earlier.model_dump()
        return now != before and _without_sources(now) == _without_sources(before)

    def make(self, problem: Problem, arguments: RunArguments) -> Any:
        """Return the unfitted estimator of a run; a function gets the problem and the seed."""
        seed = arguments.random_state % 2**31  # some libraries do not accept larger seeds
        source = self.source
        estimator = clone(source) if _is_estimator(source) else source(problem, seed)
        if not _is_estimator(estimator):
            raise ValueError(
                f"{self.label} must return an estimator with fit, predict and get_params, not "
                f"{estimator!r:.80}"
            )
        parameters, nested = estimator.get_params(deep=False), estimator.get_params(deep=True)
        _refuse_other_goal(self, problem, nested)
        fixed = changed_parameters(estimator)
        is_ranker, names = isinstance(estimator, RankingEstimator), parameters.keys()
        if not is_ranker:  # in other libraries the same names may have another meaning
            names = names & {*SET_BY_RUN}
        _refuse_limits(self.label, arguments.limits, names)
        offered = arguments.offers(names)
        if self.seeded and parameters.get("random_state", 0) in (None, seed):
            fixed["random_state"] = arguments.random_state if is_ranker else seed
        if "backend" in fixed:  # it is not tuned already
            offered.pop("tune", None)
        for name, value in nested.items():
            if name.rpartition("__")[2] == "metric" and value is None:
                offered[name] = arguments.metric
            if name.rpartition("__")[2] == "objectives" and value == FRONT:
                offered[name] = arguments.search_settings["objectives"]
        fixed |= {name: offered[name] for name in SET_BY_RUN if name in offered}
        return with_features(estimator.set_params(**merged_tables(offered, fixed)))


def _without_sources(description: Any) -> Any:
    """Return a description of `moerank.identity` without the digests of source texts."""
    if not isinstance(description, dict):
        return description
    return {key: _without_sources(entry) for key, entry in description.items() if key != "sources"}


Solver: TypeAlias = NamedSolver | GivenSolver


def configuration(
    problem: Problem, fold: int, solver: Solver, seed: int, *, baselines: bool = True
) -> Json:
    """Return all that can be seen of what determines the result of a run, as plain JSON values.

    Only the settings of the problem that the solver takes count: a ranker does not depend on the budget of a search.
    Settings of the baselines and their backend count if baselines are measured.

    Raises
    ------
    ValueError
        If the solver cannot keep the limits on features in the problem file, or has another metric or objectives.
    """
    parameters = solver.open_parameters()
    _refuse_other_goal(solver, problem, solver.fixed_parameters(problem))
    _refuse_limits(solver.label, problem.features.given, parameters)
    identity, settings = solver.identity(problem), solver.settings(problem)
    identity["tune"] = problem.solver.tune and solver.tune
    optional = STAGES if baselines else (*STAGES, "backend", "comparison")
    for name in optional:
        if name not in parameters:
            settings.pop(name, None)
    if not settings["search"].keys() & parameters.keys():
        # Only the margin of a verdict may count.
        settings["search"] = {"margin": settings["search"]["margin"]}
    if "refit" not in parameters or settings["serve"]["rankers"] is None:
        settings.pop("serve")
    settings = {name: values for name, values in settings.items() if values}
    texts = {**settings, "data": None}
    if isinstance(solver, NamedSolver):  # others are described in full
        texts["solver"] = identity
    code = {}
    for text in names_of_code(texts) if code_is_allowed() else ():
        with suppress(ValueError):  # another text of the form module:name
            code[text] = digest(load_code(text), text)
    run = {"problem": problem.name, "fold": fold, "seed": seed, "solver": identity, **settings}
    return {**run, "code": code} if code else run


def _judges_instances(backend: str) -> bool:
    """Return whether a backend judges instances in its own way."""
    if is_code(backend) and not code_is_allowed():
        return False
    entry = solver_entry(backend)
    return entry is not None and hasattr(entry.kind, "judge_of_instances")


def _refuse_limits(label: str, limits: Iterable[str], parameters: Container[str]) -> None:
    """Refuse limits on features that a solver with these parameters cannot keep."""
    if "limits" in parameters:
        return
    foreign = [name for name in limits if name != "exclude" and name not in parameters]
    if foreign:
        raise ValueError(
            f"{label} cannot keep [features] {', '.join(foreign)}: it has its own rules for "
            "selection; use mofsrank or another search of its family, or remove these limits"
        )


def _refuse_other_goal(solver: Solver, problem: Problem, parameters: Parameters) -> None:
    """Refuse parameters with another metric or other objectives than those of the problem, if they matter."""
    if solver.own_goal:
        return
    goals = {"metric": problem.metric.make(), "objectives": problem.search.objectives}
    for key, value in parameters.items():
        name = key.rpartition("__")[2]
        if name not in goals or value is None or value == FRONT:  # left open
            continue
        solver_goal, goal = _goal(name, value), _goal(name, goals[name])
        if solver_goal not in (None, goal):
            raise ValueError(
                f"{solver.label} has the {name} {solver_goal}, and the problem {problem.name} has "
                f"{goal}. Leave {name} out, or give the estimator to Study(…, own_goal=True)"
            )


def changed_parameters(estimator: Any) -> Parameters:
    """Return the parameters of an estimator that differ from the defaults of its class."""
    defaults = inspect.signature(type(estimator)).parameters
    return {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in defaults or repr(defaults[name].default) != repr(value)
    }


def merged_tables(offered: Parameters, fixed: Parameters) -> Parameters:
    """Return fixed parameters over offered ones; a fixed table changes its keys alone, True takes the offered one."""
    merged = offered | fixed
    for name, value in fixed.items():
        table = offered.get(name)
        if not isinstance(table, Mapping):
            continue
        if value is True:
            merged[name] = table
        elif isinstance(value, Mapping | Section):
            changes = given_settings(value)
            merged[name] = {**table, **changes}
            if "generations" in changes and "termination" not in changes:
                merged[name].pop("termination", None)  # a termination of the problem would win
    return merged


def _goal(name: str, value: Any) -> str | None:
    """Return a metric or objectives as a text; None if another library means something else by the parameter."""
    try:
        if name == "metric":
            return as_metric(value).name
        return ", ".join(map(repr, read_objectives(value)))
    except (TypeError, ValueError):
        return None


# The arguments that leave out a part of MOFSRank; searches such as Staircase have further parts of their own.
SWITCHES: dict[str, Parameters] = {
    "instance selection": {"instance_selection": False},
    "adaptive mutation": {"adaptive_mutation": False},
    "ensemble": {"ensemble": False},
    "crossover": {stage: {"crossover": 0} for stage in STAGES},
    "mutation": {"adaptive_mutation": False, **{stage: {"mutation": 0} for stage in STAGES}},
    "repair": {stage: {"repair": False} for stage in STAGES[1:]},
    "elimination of duplicates": {stage: {"eliminate_duplicates": False} for stage in STAGES},
    "initial sizes": {stage: {"initial": "random"} for stage in STAGES[:2]},
}

# Parts for which searches of bit strings have steps of their own.
_OPERATORS = ("adaptive mutation", "crossover", "mutation", "elimination of duplicates")


def ablations(base: str, parts: Iterable[str] = ()) -> dict[str, str]:
    """Return the base and its variants without one of the parts each, as names for ``Study(ablate=…)``.

    By default the parts are the first three of `SWITCHES`, which the paper leaves out, as far as the base has them. A
    ValueError names the parts of the base if it does not have one.

    Examples
    --------
    >>> ablations("mofsrank", ["ensemble"])
    {'mofsrank': 'mofsrank', 'without ensemble': 'mofsrank[ensemble=false]'}
    >>> ablations("mofsrank-staircase[ensemble=false]", ["restarts"])["without restarts"]
    'mofsrank[ensemble=false,algorithm=staircase[without=restarts]]'
    """
    name, parameters = read_solver(base)
    entry = find_solver(name, parameters)
    fixed = entry.settled(parameters)
    arguments = {**entry.defaults(), **fixed}
    if "feature_selection" not in arguments:
        raise ValueError(
            f"{name} has no parts to leave out; ablate mofsrank, or another search of its family"
        )
    algorithm, options = read_solver(str(arguments["algorithm"]))
    search_parts = BIT_SEARCHES[algorithm].parts if algorithm in BIT_SEARCHES else ()
    variants = {}
    for part in dict.fromkeys((*SWITCHES, *search_parts)):
        switches = SWITCHES.get(part, {})
        changes = {key: switches[key] for key in switches if arguments[key] is not False}
        if part in search_parts:
            changes = {key: changes[key] for key in STAGES[::2] if key in changes}
            missing = [*listed(options.get("without")), part]
            text = format_argument(missing if len(missing) > 1 else part)
            changes["algorithm"] = f"{algorithm}[without={text}]"
            # The name may fix the algorithm.
            variants[part] = solver_label("mofsrank", merged_tables(fixed, changes))
        elif changes and not (algorithm in BIT_SEARCHES and part in _OPERATORS):
            variants[part] = solver_label(name, merged_tables(parameters, changes))
    requested = list(parts) or [part for part in list(SWITCHES)[:3] if part in variants]
    for part in requested:
        if part not in variants:
            raise ValueError(unknown(f"part of {base}", part, variants))
    return {base: base, **{f"without {part}": variants[part] for part in requested}}


def _is_estimator(source: object) -> bool:
    return all(
        callable(getattr(source, method, None)) for method in ("fit", "predict", "get_params")
    )


def files_of_code(description: object) -> set[str]:
    """Return the files of the modules that a description names, also as ``module:name``."""
    names = set()

    def note(table: Json) -> None:
        names.add(table.get("module", ""))
        names.update(key.partition(":")[0] for key in table if is_code(key))

    json.loads(json.dumps(description), object_hook=note)  # it calls the hook for every table
    files = {getattr(sys.modules.get(name), "__file__", None) for name in names}
    return {file for file in files if file}
