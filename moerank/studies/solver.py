"""Solvers with their parameters, named in commands, studies and problem files, or given as Python objects."""

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
"""Parameters of an estimator that every run sets; results do not depend on them."""

IGNORED = (*SET_BY_RUN, "verbose")
"""Parameters that do not count when two estimators are compared."""

RUN_ARGUMENTS = (*IGNORED, "random_state")
"""Arguments of solvers that belong to a run, not to a method; files must not set them."""


def check_parameters(parameters: Parameters) -> Parameters:
    """Return the parameters; refuse `RUN_ARGUMENTS` and values that JSON cannot store."""
    for name in parameters:
        if name in RUN_ARGUMENTS:
            raise ValueError(f"{name} belongs to a run, not to a method; options such as --seed and --workers set it")
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

    A user's solver runs as it is given: the problem's budgets, backend and solver parameters do not apply to it, and
    it is not tuned unless the estimator tunes itself. Defaults, tuning and source are not stored.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    name: str  # in the table of solvers; for an object its label
    parameters: PlainParameters = Field(default_factory=dict)  # set by the user, and part of the label
    given: Parameters | None = None  # the description of an object, see `identity_of`
    draws: bool = False  # whether an object gives other results with other seeds
    defaults: PlainParameters = Field(default_factory=dict, exclude=True)  # from the problem file
    tune: bool = Field(default=True, exclude=True)  # whether validation queries choose from its grid
    source: Any = Field(default=None, exclude=True, repr=False)  # the object; None if loaded from a folder

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
    def of(cls, source: Any, name: str | None = None) -> Self:
        """Return an estimator, or a function ``make(problem, seed)`` that returns one, as a solver.

        `name` is the label in tables, by default the name of the class or function. It must not be a name in the table
        of solvers, and `identity_of` must be able to describe the object.

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
        # Clone it, because the user may change or fit the object later.
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
        """All parameters that the user or the problem file sets; for an object its description."""
        return {**self.defaults, **self.parameters} if self.given is None else self.given

    @property
    def seeded(self) -> bool:
        """Whether the result depends on the seed; True for a solver of a plug-in that is not installed here."""
        if self.given is not None:
            return self.draws
        entry = solver_entry(self.name)
        return entry is None or "seed" in entry.needs

    @property
    def is_held(self) -> bool:
        """Whether it can run; False for an object that was loaded from a study's folder, which does not store it."""
        return self.given is None or self.source is not None

    @property
    def tuned(self) -> bool:
        """Whether validation queries choose from the published grid; objects run as they are."""
        return self.tune and self.given is None

    def takes(self) -> Parameters:
        """Return the parameters that a problem may set, with their defaults; none for an object."""
        return find_solver(self.name, {}).defaults() if self.given is None else {}

    def make(self, problem: object, defaults: Mapping[str, Any]) -> Any:
        """Return the unfitted estimator of a run.

        `defaults` has the values of the run by parameter name; a solver takes those for its own parameters. A user's
        function gets the problem and the seed, and must return an estimator.
        """
        if self.given is None:
            parameters = self.takes()
            taken = {name: value for name, value in defaults.items() if name in parameters}
            settings = self.settings
            if isinstance(of_user := settings.get("limits"), Mapping):  # the limits of the problem apply as well
                settings["limits"] = {**taken.get("limits", {}), **of_user}
            return with_features(make_solver(self.name, **taken | settings))
        of_run = {name: defaults[name] for name in SET_BY_RUN if name in defaults}
        seed = int(defaults["random_state"]) % 2**31  # some libraries do not accept larger seeds
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
        If an object has no stable description, such as a lock, or if a function has no readable source text and no
        ``version``.

    Notes
    -----
    An estimator is described by its class and parameters, an array by a digest of its bytes, another object by its
    class and its state, as ``__getstate__`` returns it. A function or class is described by its name, its source text,
    its defaults, the values that
    it closes over, and its attribute ``version``; in moerank, or in a language other than Python, by its name only. The
    description does not cover other functions and modules that the source text names, or files that it reads: set
    ``version``, a text of your choice, and change it when they change. The source text comes from the file, so import a
    module again after an edit.

    Examples
    --------
    >>> from moerank.rankers import RankSVM
    >>> identity_of(RankSVM(C=0.5), "the solver")["parameters"]["C"]
    0.5
    >>> import threading
    >>> identity_of(threading.Lock(), "the parameter lock")
    Traceback (most recent call last):
        ...
    ValueError: the parameter lock is a lock, which has no stable description
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
    """Return the class of an object with its parameters, its attributes or joblib's hash."""
    kind = {"class": identity_of(type(value), where), **_version(value)}
    if callable(getattr(value, "get_params", None)):
        state = value.get_params(deep=False)
    elif hasattr(value, "__dict__"):
        computed = {
            n for c in type(value).__mro__ for n, entry in vars(c).items() if isinstance(entry, cached_property)
        }
        pickled = value.__getstate__()  # without caches, if the object leaves them out there
        state = pickled if isinstance(pickled, dict) else vars(value)
        state = {name: entry for name, entry in state.items() if name not in computed}
    else:
        try:
            return {**kind, "hash": joblib.hash(value)}
        except Exception:  # pickling may raise anything
            name = type(value).__name__
            raise ValueError(f"{where} is a {name}, which has no stable description") from None
    state = {name: entry for name, entry in state.items() if name not in without}
    return {**kind, "parameters": {name: identity_of(entry, f"{where}, {name},") for name, entry in state.items()}}


def _code(value: Any, where: str) -> Any:
    """Return the name of a function or class with digests of its source text and values; in moerank only the name."""
    value = getattr(value, "py_func", value)  # numba's compiled functions have it
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
                f"{where}: the source text of {name} cannot be read; move it to a file, or set {name}.version"
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
    """Return a digest of plain JSON values that does not depend on the order of keys."""
    return blake2b(json.dumps(description, sort_keys=True).encode(), digest_size=12).hexdigest()


def data_digest(data: RankingData) -> str:
    """Return a digest of all data that can change a result: features, labels, queries, weights, names, scaling, costs.

    O(bytes of the data), at about 0.5 GB/s.
    """
    arrays = (data.X, data.y, np.asarray(data.qid), data.n_missing, data.query_weights, data.document_weights)
    about = identity_of([data.given_names, str(data.missing), data.scaling, data.costs], f"the features of {data.name}")
    return digest_of([*map(joblib.hash, arrays), about])
