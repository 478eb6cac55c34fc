"""A solver with its parameters, as commands, studies and problem files name it, or given as a Python object."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from functools import cached_property, partial
from hashlib import blake2b
from math import isfinite
from types import FunctionType, MethodType
from typing import Annotated, Any, Self

import joblib
import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sklearn.base import clone

from moerank.checks import Parameters
from moerank.data import RankingData
from moerank.rankers import with_features
from moerank.solvers import find_solver, make_solver, read_solver, solver_entry, solvers, written

SET_BY_RUN = ("memo", "progress", "resume", "workers")
"""Parameters of an estimator that a run sets in any case; results do not depend on them."""

IGNORED = (*SET_BY_RUN, "verbose")
"""Parameters that do not count where two estimators are compared."""

RUN_ARGUMENTS = (*IGNORED, "random_state")
"""Arguments of solvers that belong to a run and not to a method; no file may set them."""


def check_parameters(parameters: Parameters) -> Parameters:
    """Return parameters of a file; refuse `RUN_ARGUMENTS`, and what JSON cannot keep."""
    for name in parameters:
        if name in RUN_ARGUMENTS:
            raise ValueError(f"{name} belongs to a run, not to a method; options such as --seed and --workers set it")
        try:
            json.dumps(parameters[name], allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(
                f"{name} must be a text, a switch, a finite number, or a table or list of such ({error})"
            ) from None
    return parameters


PlainParameters = Annotated[Parameters, AfterValidator(check_parameters)]


class Solver(BaseModel):
    """A solver: a name of the table with parameters, or an estimator or function of the user's.

    A user's solver is run as it is given: a problem's budgets, backend and parameters of solvers are not for it, and
    nothing is chosen among a published grid unless the estimator does so itself. Defaults, tuning and source are not
    stored.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    name: str  # in the table of solvers; for an object its label
    parameters: PlainParameters = Field(default_factory=dict)  # set by the user: tables tell solvers by them
    given: Parameters | None = None  # the description of an object, see `identity_of`
    draws: bool = False  # the seeds of an object differ
    defaults: PlainParameters = Field(default_factory=dict, exclude=True)  # from the problem file
    tune: bool = Field(default=True, exclude=True)  # by validation MAP, among the published grid
    source: Any = Field(default=None, exclude=True, repr=False)  # the object; None for a study of a folder

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a solver as the command line has it: NAME or NAME[key=value,…]; see `moerank.solvers.read_solver`.

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
    def of(cls, source: Any, name: str | None = None) -> Self:
        """Return an estimator, or a function ``make(problem, seed)`` that returns one, as a solver.

        Its name is the label in tables, by default that of its class or function. Names of the table, and objects that
        cannot be described, are refused.

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
        described = identity_of(source, f"the solver {label}", without=IGNORED)
        given = described if isinstance(described, dict) else {"function": described}
        if not _is_estimator(source):
            return cls(name=label, given=given, draws=True, source=source)
        draws = source.get_params(deep=False).get("random_state", 0) is None
        # A copy, because the user may change or fit the object later.
        return cls(name=label, given=given, draws=draws, source=clone(source))

    def __eq__(self, other: object) -> bool:
        mine = {"name", "parameters", "given", "draws", "defaults"}
        return isinstance(other, Solver) and all(getattr(self, name) == getattr(other, name) for name in mine)

    def __hash__(self) -> int:
        return hash(self.label)

    @property
    def label(self) -> str:
        """The name, with the user's parameters in brackets."""
        set_by_user = ",".join(f"{key}={written(value)}" for key, value in self.parameters.items())
        return f"{self.name}[{set_by_user}]" if set_by_user else self.name

    @property
    def settings(self) -> Parameters:
        """All parameters that the user or the problem file sets; of an object its description."""
        return {**self.defaults, **self.parameters} if self.given is None else self.given

    @property
    def seeded(self) -> bool:
        """Whether its seeds differ. A solver of the table that is not installed here may draw."""
        if self.given is not None:
            return self.draws
        entry = solver_entry(self.name)
        return entry is None or "seed" in entry.needs

    @property
    def is_held(self) -> bool:
        """Whether it can be run: a study's folder keeps no objects."""
        return self.given is None or self.source is not None

    @property
    def tuned(self) -> bool:
        """Whether validation MAP chooses among a published grid; an object is run as it is."""
        return self.tune and self.given is None

    def takes(self) -> Parameters:
        """Return the parameters that a problem may set, with their defaults; none of an object."""
        return find_solver(self.name, {}).defaults() if self.given is None else {}

    def make(self, problem: object, defaults: Mapping[str, Any]) -> Any:
        """Return the estimator of a run, not fitted.

        `defaults` has the values of a run by the names of parameters; a solver takes those that it has. A user's
        function gets the problem, and must return an estimator.
        """
        if self.given is None:
            parameters = self.takes()
            taken = {name: value for name, value in defaults.items() if name in parameters}
            settings = self.settings
            if isinstance(of_user := settings.get("limits"), Mapping):  # those of the problem hold, too
                settings["limits"] = {**taken.get("limits", {}), **of_user}
            return with_features(make_solver(self.name, **taken | settings))
        of_run = {name: defaults[name] for name in SET_BY_RUN if name in defaults}
        seed = int(defaults["random_state"]) % 2**31  # other libraries have no larger ones
        if _is_estimator(self.source):
            made = clone(self.source)
            if self.seeded:
                of_run["random_state"] = seed
        else:
            made = self.source(problem, seed)
            if not _is_estimator(made):
                raise ValueError(
                    f"{self.label} must return an estimator with fit, predict and get_params, not {made!r:.80}"
                )
        parameters = made.get_params(deep=False)
        made.set_params(**{name: value for name, value in of_run.items() if name in parameters})
        return with_features(made)


def _is_estimator(source: object) -> bool:
    return all(callable(getattr(source, method, None)) for method in ("fit", "predict", "get_params"))


def identity_of(value: object, where: str, *, without: tuple[str, ...] = ()) -> Any:
    """Return a plain JSON value that identifies `value` in every process, without some parameters of an estimator.

    `where` is the name of the value in messages.

    Raises
    ------
    ValueError
        For an object without a description that stays the same, such as a lock, and for a function whose source text
        cannot be read and that has no ``version``.

    Notes
    -----
    An estimator is its class and parameters, an array a digest of its bytes, another object its class and attributes.
    A function or class is its name, its source text, its defaults, the values that it closes over, and its attribute
    ``version``; one of moerank, or of another language than Python, is its name. The description does not see other
    functions and modules that the source text names, nor files that it reads: set ``version``, a text of your own, and
    change it with them. The source text is that of the file: import a module again after an edit.

    Examples
    --------
    >>> from moerank.rankers import RankSVM
    >>> identity_of(RankSVM(C=0.5), "the solver")["parameters"]["C"]
    0.5
    >>> import threading
    >>> identity_of(threading.Lock(), "the parameter lock")
    Traceback (most recent call last):
        ...
    ValueError: the parameter lock is a lock, which has no description that stays the same
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str | int) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, RankingData):
        return {"data": data_digest(value)}
    if isinstance(value, Mapping):
        return {str(key): identity_of(entry, f"{where}, {key}") for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [identity_of(entry, where) for entry in value]
    if isinstance(value, partial | MethodType):
        parts = (value.func, value.args, value.keywords) if isinstance(value, partial) else value.__reduce__()[1]
        return {type(value).__name__: identity_of(parts, where)}
    if isinstance(value, type | FunctionType) or isinstance(getattr(value, "py_func", None), FunctionType):
        return _code(value, where)
    return _object(value, where, without)


def _object(value: Any, where: str, without: tuple[str, ...]) -> Any:
    """Return the class of an object with its parameters, its attributes, or the hash of joblib."""
    kind = {"class": identity_of(type(value), where), **_version(value)}
    if callable(getattr(value, "get_params", None)):
        state = value.get_params(deep=False)
    elif hasattr(value, "__dict__"):
        computed = {
            n for c in type(value).__mro__ for n, entry in vars(c).items() if isinstance(entry, cached_property)
        }
        state = {name: entry for name, entry in vars(value).items() if name not in computed}
    else:
        try:
            return {**kind, "hash": joblib.hash(value)}
        except Exception:  # whatever pickling raises
            name = type(value).__name__
            raise ValueError(f"{where} is a {name}, which has no description that stays the same") from None
    state = {name: entry for name, entry in state.items() if name not in without}
    return {**kind, "parameters": {name: identity_of(entry, f"{where}, {name},") for name, entry in state.items()}}


def _code(value: Any, where: str) -> Any:
    """Return the name of a function or class, its source text and its values; of moerank the name alone."""
    value = getattr(value, "py_func", value)  # numba's
    name = f"{value.__module__}.{value.__qualname__}"
    if str(value.__module__).partition(".")[0] == "moerank":
        return name
    described = {"code": name, **_version(value)}
    try:
        described["source"] = digest_of(inspect.getsource(value))
    except (OSError, TypeError):
        in_python = isinstance(value, FunctionType) or value.__module__ == "__main__"
        if in_python and "version" not in described:
            raise ValueError(
                f"{where}: the source text of {name} cannot be read; put it into a file, or set {name}.version"
            ) from None
    if isinstance(value, FunctionType):
        enclosed = [cell.cell_contents for cell in value.__closure__ or () if cell.cell_contents is not value]
        values = [value.__defaults__, value.__kwdefaults__, enclosed]
        described["values"] = digest_of(identity_of(values, f"{where}, a value in it"))
    return described


def _version(value: object) -> dict[str, str]:
    version = vars(value).get("version") if hasattr(value, "__dict__") else None
    return {"version": version} if isinstance(version, str) else {}


def digest_of(description: object) -> str:
    """Return the digest of plain JSON values, whatever the order of keys."""
    return blake2b(json.dumps(description, sort_keys=True).encode(), digest_size=12).hexdigest()


def data_digest(data: RankingData) -> str:
    """Return a digest of everything that can decide a result: values, labels, queries, weights, names, scaling, costs.

    O(bytes of the data), at about 0.5 GB/s.
    """
    arrays = (data.X, data.y, np.asarray(data.qid), data.n_missing, data.query_weights, data.document_weights)
    about = identity_of([data.given_names, str(data.missing), data.scaling, data.costs], f"the features of {data.name}")
    return digest_of([*map(joblib.hash, arrays), about])
