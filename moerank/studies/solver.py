"""A solver with its parameters, as commands, studies and problem files name it, or given as a Python object."""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
import sysconfig
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from hashlib import blake2b
from math import isfinite
from pathlib import Path, PurePath
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Annotated, Any, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from sklearn.base import clone

from moerank.arrays import Array
from moerank.checks import Parameters
from moerank.data import RankingData
from moerank.rankers import Selection, with_features
from moerank.solvers import find_solver, make_solver, read_text, solver_entry, solvers, written

RUN_ARGUMENTS = {
    "checkpoint": "moerank run keeps its own in the folder of its results, and --resume goes on from it",
    "memo": "moerank run keeps its own in the folder of its results, and --resume goes on from it",
    "progress": "moerank run shows it",
    "random_state": "set it with --seed",
    "resume": "set it with --resume",
    "verbose": "moerank run shows its progress",
    "workers": "set it with --workers",
}
"""Arguments of solvers that belong to a run and not to a method, with their substitutes; no file may set them."""

SET_BY_RUN = ("memo", "progress", "resume", "workers")
"""Parameters of an estimator that a run sets in any case; results do not depend on them."""

IGNORED = (*SET_BY_RUN, "verbose")
"""Parameters that do not count where two estimators are compared."""

DEEPEST = 20
"""Levels of tables and lists inside each other that a parameter may have."""

LONGEST_LABEL = 80
"""Characters of a label that is made from parameters; tables have no room for longer ones."""

STARTED = time.time()
"""The time at which this process began to describe solvers."""


def check_parameters(parameters: Parameters) -> Parameters:
    """Return parameters of a file; refuse those that do not describe a method, or that no result could keep.

    These are the `RUN_ARGUMENTS`, and values other than a text, a switch, a finite number, or a table or list of such.
    """
    for name, value in parameters.items():
        if name in RUN_ARGUMENTS:
            raise ValueError(f"{name} belongs to a run, not to a method: {RUN_ARGUMENTS[name]}")
        _check_plain(name, value, DEEPEST)
    return parameters


def _check_plain(name: str, value: object, depth: int) -> None:
    if depth == 0:
        raise ValueError(f"{name} has more than {DEEPEST} tables or lists inside each other")
    if isinstance(value, Mapping):
        for key, entry in value.items():
            _check_plain(f"{name}.{key}", entry, depth - 1)
    elif isinstance(value, list | tuple):
        for entry in value:
            _check_plain(name, entry, depth - 1)
    elif isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{name} must be finite, not {value}")
    elif isinstance(value, int) and value.bit_length() > 64:
        raise ValueError(f"{name} is a number of more than 64 bits")
    elif not isinstance(value, str | int | float | None):
        raise ValueError(f"{name} must be a text, a switch, a number, or a table or list of such, not {value}")


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
    given: Parameters | None = None  # the description of an object, see `describe`
    draws: bool = False  # the seeds of an object differ
    defaults: PlainParameters = Field(default_factory=dict, exclude=True)  # from the problem file
    tune: bool = Field(default=True, exclude=True)  # by validation MAP, among the published grid
    source: Any = Field(default=None, exclude=True, repr=False)  # the object; None for a study of a folder

    @model_validator(mode="before")
    @classmethod
    def _objects_are_not_tuned(cls, values: Any) -> Any:
        is_object = isinstance(values, dict) and values.get("given") is not None
        return {**values, "tune": False} if is_object else values

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a solver as the command line has it: NAME or NAME[key=value,…]; see `moerank.solvers.read_text`.

        Examples
        --------
        >>> Solver.parse('mofsrank[ensemble={"generations":5,"population":8},final=train]').parameters
        {'ensemble': {'generations': 5, 'population': 8}, 'final': 'train'}
        """
        name, parameters = read_text(text)
        try:
            check_parameters(parameters)
        except ValueError as error:
            raise ValueError(f"solver {text!r}: {error}") from None
        find_solver(name, parameters)
        return cls(name=name, parameters=parameters)

    @classmethod
    def of(cls, source: Any, name: str | None = None) -> Self:
        """Return an estimator, or a function ``make(problem, seed)`` that returns one, as a solver.

        Its name is the label in tables; by default the class of an estimator with the parameters that are not its
        defaults. A function needs one. Names of the table, and objects that cannot be described, are refused. If the
        file that defines the solver has changed since it was imported, a UserWarning says so.

        Examples
        --------
        >>> from moerank.rankers import RankSVM
        >>> Solver.of(RankSVM(C=0.5)).label
        'RankSVM[C=0.5]'
        """
        if isinstance(source, type) or not (_is_estimator(source) or callable(source)):
            raise ValueError(
                "a solver is a name, an estimator such as RankSVM(C=1) with fit, predict and get_params, or a function "
                f"make(problem, seed), not {source!r:.80}"
            )
        label = _label(source) if name is None else name
        if not isinstance(label, str) or not label.strip() or label.partition("[")[0] in solvers():
            taken = f"{label!r} is in the table of solvers" if label else "it must not be empty"
            raise ValueError(f"give the solver another name: {taken}")
        described = describe(source, f"the solver {label}", without=IGNORED)
        given = described if isinstance(described, dict) else {"function": described}
        if _is_estimator(source):
            draws = source.get_params(deep=False).get("random_state", 0) is None
            # A copy, because the user may change or fit the object later.
            return cls(name=label, given=_shallow(given), draws=draws, source=clone(source))
        return cls(name=label, given=_shallow(given), draws=True, source=source)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Solver) and self._known == other._known

    def __hash__(self) -> int:
        return hash(self.label)

    @property
    def _known(self) -> tuple[Any, ...]:
        return self.name, self.parameters, self.given, self.draws, self.defaults

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
    def selects(self) -> bool:
        """Whether a verdict on it depends on the problem's margin, as far as this is known."""
        return self.given is not None or issubclass(find_solver(self.name, {}).kind, Selection)

    def plain(self) -> Any:
        """Return the solver with its defaults; an object as it is."""
        return make_solver(self.name) if self.given is None else self.source

    def takes(self) -> Parameters:
        """Return the parameters that a problem may set, with their defaults; none of an object."""
        return find_solver(self.name, {}).defaults() if self.given is None else {}

    def make(self, problem: object, offered: Mapping[str, Any]) -> Any:
        """Return the estimator of a run, not fitted.

        `offered` has the values of a run for solvers by the names of parameters; a solver takes those that it knows. A
        user's function gets the problem, and must return an estimator.
        """
        if self.given is None:
            known = self.takes()
            taken = {name: value for name, value in offered.items() if name in known}
            settings = self.settings
            if isinstance(of_user := settings.get("limits"), Mapping):  # those of the problem hold, too
                settings["limits"] = {**taken.get("limits", {}), **of_user}
            return with_features(make_solver(self.name, **taken | settings))
        if not self.is_held:
            raise ValueError(f"{self.label} was given as a Python object; give it to Study again to run it")
        of_run = {name: offered[name] for name in SET_BY_RUN if name in offered}
        seed = int(offered["random_state"]) % 2**31  # other libraries have no larger ones
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
        known = made.get_params(deep=False)
        made.set_params(**{name: value for name, value in of_run.items() if name in known})
        return with_features(made)


def _is_estimator(source: object) -> bool:
    return all(callable(getattr(source, method, None)) for method in ("fit", "predict", "get_params"))


def _label(estimator: Any) -> str:
    """Return the class and the parameters that are not its defaults."""
    kind = type(estimator).__name__
    if not _is_estimator(estimator):
        raise ValueError(f"a {kind} needs a name for tables: solvers={{'name': make}} gives it one")
    defaults = inspect.signature(type(estimator).__init__).parameters
    changed = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in IGNORED and (name not in defaults or repr(value) != repr(defaults[name].default))
    }
    label = f"{kind}[{','.join(f'{name}={_shown(value)}' for name, value in changed.items())}]" if changed else kind
    if len(label) > LONGEST_LABEL or "\n" in label:
        raise ValueError(f"{label[:60]}… is too long for tables; give it a name: solvers={{'name': {kind}(…)}}")
    return label


def _shown(value: object) -> str:
    try:
        return written(value)
    except TypeError:  # no JSON
        return getattr(value, "__name__", None) or " ".join(repr(value).split())


def _shallow(description: Parameters) -> Parameters:
    """Return a description as files keep it, with the digests of deep tables in their places."""
    plain: Parameters = json.loads(json.dumps(description))
    parameters = plain.get("parameters")
    if isinstance(parameters, dict):
        plain["parameters"] = {
            name: value if len(json.dumps(value)) <= 4 * LONGEST_LABEL else {"digest": digest_of(value)}
            for name, value in parameters.items()
        }
    return plain


def describe(value: object, place: str, *, without: tuple[str, ...] = ()) -> Any:
    """Return a plain JSON value that identifies `value` in every process, without some parameters of an estimator.

    `place` is the name of the value in messages.

    Raises
    ------
    ValueError
        For an object without a description that stays the same, such as a generator of random numbers, and for a
        function whose source text cannot be read and that has no ``version``.

    Notes
    -----
    An estimator is its class and parameters, an array a digest of its bytes. A function or class of the user's is its
    name, its source text, its defaults, the values that it closes over, and its attribute ``version``. Objects of
    Python, installed packages and moerank are their names. The description does not see other functions and modules
    that the source text names, nor files that it reads: set ``version``, a text of your own, and change it with them.

    Examples
    --------
    >>> from moerank.rankers import RankSVM
    >>> describe(RankSVM(C=0.5), "the solver")["parameters"]["C"]
    0.5
    >>> describe(np.random.default_rng(0), "the parameter rng")
    Traceback (most recent call last):
        ...
    ValueError: the parameter rng is a Generator, which has no description that stays the same
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float | np.generic):
        return _number(value)
    if isinstance(value, np.ndarray):
        return {"array": _array_digest(value)}
    if isinstance(value, bytes | PurePath | complex) or value is Ellipsis:
        return {type(value).__name__: str(value)}
    if isinstance(value, RankingData):
        return {"data": data_digest(value)}
    if isinstance(value, Mapping):
        entries = [[describe(key, place), describe(entry, f"{place}, {key}")] for key, entry in value.items()]
        texts = all(isinstance(key, str) for key, _ in entries)
        return dict(entries) if texts else {"entries": sorted(entries, key=json.dumps)}
    if isinstance(value, list | tuple):
        return [describe(entry, place) for entry in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted((describe(entry, place) for entry in value), key=json.dumps)}
    if isinstance(value, BuiltinFunctionType | np.ufunc):
        return {"function": f"{getattr(value, '__module__', '')}.{value.__name__}"}
    if isinstance(value, partial):
        return {"partial": [describe(part, place) for part in (value.func, value.args, value.keywords)]}
    if isinstance(value, MethodType):
        return {"method": value.__func__.__name__, "of": describe(value.__self__, place)}
    if isinstance(value, type | FunctionType) or isinstance(getattr(value, "py_func", None), FunctionType):
        return _code(value, place)
    return _object(value, place, without)


def _object(value: Any, place: str, without: tuple[str, ...]) -> Any:
    """Return the class of an object with its parameters, its fields or its attributes."""
    kind = {"class": describe(type(value), place), **_version(value)}
    if callable(getattr(value, "get_params", None)):
        parameters = {k: v for k, v in value.get_params(deep=False).items() if k not in without}
    elif is_dataclass(value):
        parameters = {entry.name: getattr(value, entry.name) for entry in fields(value)}
    elif hasattr(value, "__dict__"):
        members = {name: entry for cls in reversed(type(value).__mro__) for name, entry in vars(cls).items()}
        own = {k: v for k, v in vars(value).items() if not isinstance(members.get(k), cached_property)}
        return {**kind, "state": digest_of(describe(own, place))}
    else:
        raise ValueError(f"{place} is a {type(value).__name__}, which has no description that stays the same")
    return {**kind, "parameters": {k: describe(v, f"{place}, parameter {k},") for k, v in parameters.items()}}


def _code(value: Any, place: str) -> Any:
    """Return the name of a function or class, and for a user's own its source text and its values."""
    value = getattr(value, "py_func", value)  # numba's
    module = value.__module__ if isinstance(value, type) else value.__globals__.get("__name__")
    name = f"{module}.{value.__qualname__}"
    if not _is_own(str(module)):
        return name
    _warn_if_stale(str(module), name)
    described = {"code": name, **_version(value)}
    try:
        described["source"] = blake2b(inspect.getsource(value).encode(), digest_size=12).hexdigest()
    except (OSError, TypeError):
        if "version" not in described:
            raise ValueError(
                f"{place}: the source text of {name} cannot be read; put it into a file, or set {name}.version"
            ) from None
    if isinstance(value, FunctionType):
        closed = [cell.cell_contents for cell in value.__closure__ or () if cell.cell_contents is not value]
        values = [value.__defaults__, value.__kwdefaults__, closed]
        described["values"] = digest_of(describe(values, f"{place}, a value in it"))
    return described


def _version(value: object) -> dict[str, str]:
    version = vars(value).get("version") if hasattr(value, "__dict__") else None
    return {"version": version} if isinstance(version, str) else {}


def _is_own(name: str) -> bool:
    """Whether a module is the user's: neither Python's, nor an installed package's, nor of moerank."""
    top = name.partition(".")[0]
    if top == "moerank":
        return False
    if top == "__main__" or name not in sys.modules:  # a notebook's __main__ has the file of the program that runs it
        return True
    file = getattr(sys.modules[name], "__file__", None)
    if file is None or Path(file).is_relative_to(sysconfig.get_path("stdlib")):
        return False
    return not {"site-packages", "dist-packages"} & set(Path(file).parts)


def _warn_if_stale(module: str, name: str) -> None:
    """Warn if the file of a module is newer than its import: the text is then not that of the running code."""
    with suppress(OSError, AttributeError, TypeError, ValueError):
        file = Path(str(getattr(sys.modules.get(module), "__file__", None)))
        changed = file.stat().st_mtime
        if changed <= STARTED:
            return
        compiled = Path(importlib.util.cache_from_source(str(file)))
        if compiled.exists() and int.from_bytes(compiled.read_bytes()[8:12], "little") == int(changed):
            return  # it was written and imported by this process
        warnings.warn(f"{file} has changed since {name} was imported; import it again", stacklevel=2)


def digest_of(description: object) -> str:
    """Return the digest of plain JSON values, whatever the order of keys."""
    return blake2b(json.dumps(description, sort_keys=True).encode(), digest_size=12).hexdigest()


def data_digest(data: RankingData) -> str:
    """Return a digest of everything that can decide a result: values, labels, queries, weights, names, scaling, costs.

    O(bytes of the data), at about 1 GB/s. Data in shards, which are elsewhere, are refused.
    """
    if not isinstance(data, RankingData):
        raise ValueError(f"{data.name} is in shards: give the problem file that it comes from")
    weights = [array for array in (data.query_weights, data.document_weights) if array is not None]
    arrays = (data.X, data.y, np.asarray(data.qid), data.n_missing, *weights)
    about = [data.given_names, str(data.missing), data.scaling, data.costs]
    return digest_of([*map(_array_digest, arrays), describe(about, f"the features of {data.name}")])


def _array_digest(array: Array) -> str:
    """Return the digest of the values, type and shape of an array, whatever its order in memory."""
    found = blake2b(f"{array.dtype.str} {array.shape}".encode(), digest_size=16)
    if array.dtype.hasobject:
        return digest_of([array.shape, [str(value) for value in array.ravel()]])
    rows, step = np.atleast_1d(array), 1 << 16
    for begin in range(0, len(rows), step):  # a whole copy of the data might not fit into memory
        found.update(rows[begin : begin + step].tobytes())
    return found.hexdigest()


def _number(value: object) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and isfinite(plain):
        return plain
    if isinstance(plain, int) and plain.bit_length() < 64:
        return plain
    return {type(plain).__name__: str(plain)}
