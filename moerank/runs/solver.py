"""Solvers with their parameters, named in commands, studies and problem files, or given as Python objects."""

import inspect
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from moerank.checks import Parameters, unknown
from moerank.data.inputs import listed
from moerank.evolution import BIT_SEARCHES
from moerank.identity import identify
from moerank.metrics import as_metric
from moerank.mofsrank.objectives import FRONT, read_objectives
from moerank.mofsrank.settings import STAGES, Section, given_settings
from moerank.rankers import RankingEstimator, with_features
from moerank.scikit_learn import clone
from moerank.solvers import (
    find_solver,
    is_code,
    make_solver,
    read_solver,
    solver_entry,
    solvers,
    written,
)

# Parameters of an estimator that every run sets; results do not depend on them.
SET_BY_RUN = ("memo", "progress", "resume", "workers")

# Parameters that do not count when two estimators are compared.
IGNORED = (*SET_BY_RUN, "verbose")

# Arguments of solvers that belong to a run, not to a method; files must not set them.
RUN_ARGUMENTS = (*IGNORED, "random_state")


def check_parameters(parameters: Parameters) -> Parameters:
    """Return the parameters; refuse `RUN_ARGUMENTS` and values that JSON cannot store."""
    for name in parameters:
        if name in RUN_ARGUMENTS:
            raise ValueError(
                f"{name} belongs to a run, not to a method; options such as --seed and --workers set it"
            )
        try:
            json.dumps(parameters[name], allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{name} must be a text, true or false, a finite number, or a table or list of these ({error})"
            ) from None
    return parameters


PlainParameters = Annotated[Parameters, AfterValidator(check_parameters)]


class Solver(BaseModel):
    """A solver: a name in the table of solvers with parameters, or an estimator or function of the user.

    Both are treated alike: the problem sets metric, objectives, backend, limits and budgets that are left open, and
    validation queries choose from the published grid. An estimator leaves open what has the default of its class.
    Defaults, tuning and source are not stored.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    name: str  # in the table of solvers; for an object its label
    parameters: PlainParameters = Field(
        default_factory=dict
    )  # set by the user, and part of the label
    given: Parameters | None = None  # the description of an object, see `of`
    defaults: PlainParameters = Field(default_factory=dict, exclude=True)  # from the problem file
    tune: bool = Field(
        default=True, exclude=True
    )  # whether validation queries choose from its grid
    source: Any = Field(
        default=None, exclude=True, repr=False
    )  # the object; None if loaded from a folder

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a solver in the form of the command line, NAME or NAME[key=value,…]; see `moerank.solvers.read_solver`.

        Examples
        --------
        >>> Solver.parse('mofsrank[ensemble={"generations":5,"population":8},final=train]').parameters
        {'ensemble': {'generations': 5, 'population': 8}, 'final': 'train'}
        """
        name, parameters = read_solver(text)
        try:
            check_parameters(parameters)
        except ValueError as error:
            raise ValueError(f"solver {text!r}: {error}") from None
        find_solver(name, parameters)
        return cls(name=name, parameters=parameters)

    @classmethod
    def of(
        cls, source: Any, name: str | None = None, *, own: bool = False, tune: bool = True
    ) -> Self:
        """Return an estimator, or a function ``make(problem, seed)`` that returns one, as a solver.

        `name` is the label in tables, by default the name of the class or function. It must not be a name in the table
        of solvers, and `moerank.identity` must be able to describe the object. With `own` it may have another metric or
        other objectives than a problem. Without `tune` validation queries do not choose its parameters.

        Examples
        --------
        >>> from moerank.rankers import RankSVM
        >>> Solver.of(RankSVM(C=0.5)).label
        'RankSVM'
        """
        if isinstance(source, type) or not (_is_estimator(source) or callable(source)):
            raise ValueError(
                "a solver is a name, an estimator such as RankSVM(C=1) with fit, predict and get_params, or a function "
                f"make(problem, seed), not {source!r:.80}"
            )
        label = getattr(source, "__name__", type(source).__name__) if name is None else name
        if not isinstance(label, str) or not label.strip() or label.partition("[")[0] in solvers():
            taken = f"{label!r} is in the table of solvers" if label else "it must not be empty"
            raise ValueError(f"give the solver another name: {taken}")
        described = identify(source, f"the solver {label}", without=IGNORED)
        switches = {"own": own, "tune": tune, "takes": isinstance(source, RankingEstimator)}
        if not _is_estimator(source):
            return cls(name=label, given={**switches, "function": described}, source=source)
        # Clone it, because the user may change or fit the object later.
        return cls(name=label, given={**switches, **described}, source=clone(source))

    @property
    def label(self) -> str:
        """The name, with the user's parameters in brackets."""
        set_by_user = ",".join(f"{key}={written(value)}" for key, value in self.parameters.items())
        return f"{self.name}[{set_by_user}]" if set_by_user else self.name

    @property
    def settings(self) -> Parameters:
        """All parameters that the user or the problem file sets; for an object its description."""
        return {**self.defaults, **self.parameters} if self.given is None else self.given

    @property
    def seeded(self) -> bool:
        """Whether the result depends on the seed; True for a solver of a plug-in that is not installed here."""
        if self.given is not None:
            return (
                self.given.get("parameters", {"random_state": None}).get("random_state", 0) is None
            )
        entry = solver_entry(self.name)
        return entry is None or "seed" in entry.needs

    @property
    def is_held(self) -> bool:
        """Whether it can run; False for an object that was loaded from a study's folder, which does not store it."""
        return self.given is None or self.source is not None

    @property
    def tuned(self) -> bool:
        """Whether validation queries choose from the published grid."""
        return self.tune and (self.given is None or self.given["tune"])

    @property
    def own(self) -> bool:
        """Whether an object may have another metric or other objectives than the problem."""
        return self.given is not None and bool(self.given["own"])

    def takes(self) -> Parameters:
        """Return the parameters that a problem may set; a function may take all, an object of another library none."""
        if self.given is None or "function" in self.given:
            return find_solver(self.name if self.given is None else "mofsrank", {}).defaults()
        return dict(self.given["parameters"]) if self.given["takes"] else {}

    def refuse_limits(self, limits: Iterable[str], takes: Mapping[str, Any]) -> None:
        """Refuse limits on features that a solver with these parameters cannot keep."""
        foreign = (
            []
            if "limits" in takes
            else [name for name in limits if name not in (*takes, "exclude")]
        )
        if foreign:
            raise ValueError(
                f"{self.label} cannot keep [features] {', '.join(foreign)}: it has its own rules for selection; use "
                "mofsrank or another search of its family, or remove these limits"
            )

    def refuse_other_goal(self, problem: Any, parameters: Mapping[str, Any]) -> None:
        """Refuse parameters with another metric or other objectives than those of the problem, unless `own`."""
        goals = {"metric": problem.metric.make(), "objectives": problem.search.objectives}
        for key, value in parameters.items():
            name = key.rpartition("__")[2]
            if self.own or name not in goals or value is None or value == FRONT:  # left open
                continue
            mine, theirs = _goal(name, value), _goal(name, goals[name])
            if mine not in (None, theirs):
                raise ValueError(
                    f"{self.label} has the {name} {mine}, and the problem {problem.name} has {theirs}. Leave {name} "
                    "out, or give the estimator to Study(…, own=True)"
                )

    def make(self, problem: object, defaults: Mapping[str, Any]) -> Any:
        """Return the unfitted estimator of a run.

        `defaults` has the values of the run by parameter name; a solver takes those for its own parameters. A user's
        function gets the problem and the seed, and must return an estimator.
        """
        if self.given is None:
            parameters = self.takes()
            taken = {name: value for name, value in defaults.items() if name in parameters}
            return with_features(make_solver(self.name, **merged_tables(taken, self.settings)))
        seed = int(defaults["random_state"]) % 2**31  # some libraries do not accept larger seeds
        made = clone(self.source) if _is_estimator(self.source) else self.source(problem, seed)
        if not _is_estimator(made):
            raise ValueError(
                f"{self.label} must return an estimator with fit, predict and get_params, not {made!r:.80}"
            )
        self.refuse_other_goal(problem, made.get_params(deep=True))
        parameters, changed = made.get_params(deep=False), changed_parameters(made)
        ours = isinstance(made, RankingEstimator)
        self.refuse_limits(defaults.get("limits", ()), parameters if ours else {})
        if self.seeded and parameters.get("random_state", 0) in (None, seed):
            changed["random_state"] = int(defaults["random_state"]) if ours else seed
        # Parameters of other libraries may have the same names and another meaning.
        offered = {name: value for name, value in defaults.items() if name in parameters}
        offered = {name: offered[name] for name in offered if ours or name in SET_BY_RUN}
        for key, value in made.get_params(deep=True).items():
            if (name := key.rpartition("__")[2], value) in (
                ("metric", None),
                ("objectives", FRONT),
            ):
                offered[key] = defaults[name]
        if "backend" in changed:  # it is not tuned already
            offered.pop("tune", None)
        made.set_params(
            **merged_tables(
                offered, {**changed, **{n: offered[n] for n in SET_BY_RUN if n in offered}}
            )
        )
        return with_features(made)


def changed_parameters(estimator: Any) -> Parameters:
    """Return the parameters of an estimator that differ from the defaults of its class."""
    defaults = inspect.signature(type(estimator)).parameters
    return {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in defaults or repr(defaults[name].default) != repr(value)
    }


def merged_tables(offered: Parameters, own: Parameters) -> Parameters:
    """Return own parameters over offered ones; an own table changes only its keys, and True takes the offered one."""
    merged = offered | own
    for name, value in own.items():
        table = offered.get(name)
        if isinstance(table, Mapping) and (value is True or isinstance(value, Mapping | Section)):
            changes = {} if value is True else given_settings(value)
            if "generations" in changes:  # a termination of the problem would win
                table = {key: entry for key, entry in table.items() if key != "termination"}
            merged[name] = {**table, **changes}
    return merged


def _goal(name: str, value: Any) -> str | None:
    """Return a metric or objectives as a text; None if another library means something else by the parameter."""
    try:
        return (
            as_metric(value).name
            if name == "metric"
            else ", ".join(map(repr, read_objectives(value)))
        )
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
    name, given = read_solver(base)
    entry = find_solver(name, given)
    arguments = {**entry.defaults(), **entry.settled(given)}
    if "feature_selection" not in arguments:
        raise ValueError(
            f"{name} has no parts to leave out; ablate mofsrank, or another search of its family"
        )
    algorithm, options = read_solver(str(arguments["algorithm"]))
    own = BIT_SEARCHES[algorithm].parts if algorithm in BIT_SEARCHES else ()
    able: dict[str, str] = {}
    for part in (*SWITCHES, *(part for part in own if part not in SWITCHES)):
        changes = {
            key: value
            for key, value in SWITCHES.get(part, {}).items()
            if arguments[key] is not False
        }
        variant, parameters = name, given
        if part in own:
            variant, parameters = "mofsrank", entry.settled(given)  # the name may fix the algorithm
            changes = {key: changes[key] for key in STAGES[::2] if key in changes}
            left_out = [*listed(options.get("without")), part]
            changes["algorithm"] = (
                f"{algorithm}[without={written(left_out if len(left_out) > 1 else part)}]"
            )
        elif algorithm in BIT_SEARCHES and part in _OPERATORS:
            continue
        if changes:
            able[part] = Solver(name=variant, parameters=merged_tables(parameters, changes)).label
    chosen = list(parts) or [part for part in list(SWITCHES)[:3] if part in able]
    for part in chosen:
        if part not in able:
            raise ValueError(unknown(f"part of {base}", part, able))
    return {base: base, **{f"without {part}": able[part] for part in chosen}}


def _is_estimator(source: object) -> bool:
    return all(
        callable(getattr(source, method, None)) for method in ("fit", "predict", "get_params")
    )


def files_of_code(description: object) -> set[str]:
    """Return the files of the modules that a description names, also as ``module:name``."""
    if not isinstance(description, Mapping | list):
        return set()
    modules, entries = [], description
    if isinstance(description, Mapping):
        entries = list(description.values())
        modules = [
            description.get("module"),
            *(key.partition(":")[0] for key in description if is_code(key)),
        ]
    files = {
        getattr(sys.modules.get(name), "__file__", None)
        for name in modules
        if isinstance(name, str)
    }
    return {file for file in files if file}.union(*map(files_of_code, entries))
