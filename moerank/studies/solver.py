"""A solver with the parameters that are given to it, as the command line, studies and problem files name it."""

from __future__ import annotations

import dis
import inspect
import json
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from math import isfinite
from pathlib import Path, PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from moerank.data import RankingData
from moerank.rankers import AnyRanker, RankingEstimator, Selection, train_on
from moerank.solvers import make_solver, solvers

__all__ = [
    "RUN_ARGUMENTS",
    "SolverSpec",
    "check_parameters",
    "read_solver",
    "split_solvers",
    "written",
    "data_digest",
    "describe",
    "digest_of",
    "AnySolver",
    "ForeignRanker",
    "GivenSolver",
    "read_given",
]

RUN_ARGUMENTS = {
    "checkpoint": "moerank run keeps its own in the folder of its results, and --resume goes on from it",
    "journal": "moerank run keeps its own in the folder of its results, and --resume goes on from it",
    "progress": "moerank run shows it",
    "random_state": "set it with --seed",
    "resume": "set it with --resume",
    "verbose": "moerank run shows its progress",
    "workers": "set it with --workers",
}
"""Arguments of solvers that belong to a run and not to a method, and what takes their place; no file may set them."""

DEEPEST = 20
"""Tables and lists inside each other that a parameter may have."""


@dataclass(frozen=True)
class SolverSpec:
    """A solver and what is not chosen by validation data.

    Attributes
    ----------
    name : str
        In the table of solvers.
    parameters : dict
        What the user asked for; tables and figures tell solvers of one name apart by it.
    defaults : dict
        What the problem file gives to whatever solver is run on it; `parameters` come before it.
    tune : bool
        Whether validation MAP chooses the rest among the published grid.
    """

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    tune: bool = True

    def __post_init__(self) -> None:
        for parameters in (self.parameters, self.defaults):
            _refuse_run_arguments(parameters)

    @property
    def label(self) -> str:
        """How tables and figures call it: the name, with the parameters that were asked for in brackets.

        Examples
        --------
        >>> SolverSpec("fsmrank", {"lambda1": 0.1}).label
        'fsmrank[lambda1=0.1]'
        >>> read_solver("mofsrank[ensemble=false]").label
        'mofsrank[ensemble=false]'
        """
        given = ",".join(f"{key}={written(value)}" for key, value in self.parameters.items())
        return f"{self.name}[{given}]" if given else self.name

    @property
    def given(self) -> dict[str, Any]:
        """All parameters that are given, by the user or the problem file."""
        return {**self.defaults, **self.parameters}

    @property
    def seeded(self) -> bool:
        """Whether the solver draws, so that its seeds differ."""
        return "seed" in solvers()[self.name].needs

    @property
    def is_held(self) -> bool:
        """Whether it can be run: what a table has by name always can."""
        return True

    @property
    def selects(self) -> bool:
        """Whether a verdict on it depends on the problem's margin."""
        return isinstance(self.plain(), Selection)

    def plain(self) -> Any:
        """Return the solver with its defaults."""
        return make_solver(self.name)

    def make(self, problem: object, offered: Mapping[str, Any]) -> Any:
        """Return the estimator of a run: with what is given, and of what is offered all that it takes."""
        known = self.takes()
        taken = {name: value for name, value in offered.items() if name in known}
        return make_solver(self.name, **taken | self.given)

    def takes(self) -> dict[str, Any]:
        """Return the parameters that the solver knows, with their defaults."""
        known: dict[str, Any] = self.plain().get_params(deep=False)
        return known

    def beneath(self, defaults: Mapping[str, Any], *, tune: bool) -> SolverSpec:
        """Return the solver with what a problem file gives to it."""
        return replace(self, defaults=dict(defaults), tune=tune)


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuse parameters of a file that do not describe a method, or that no result could keep.

    Raises
    ------
    ValueError
        For one of the `RUN_ARGUMENTS`, and for a value that is no plain one: text, switch, finite number, or a table or
        list of such.

    Examples
    --------
    >>> check_parameters({"alpha": 0.1, "workers": 2})
    Traceback (most recent call last):
        ...
    ValueError: workers belongs to a run, not to a method: set it with --workers
    """
    _refuse_run_arguments(parameters)
    for name, value in parameters.items():
        _check_plain(name, value, DEEPEST)


def _refuse_run_arguments(parameters: Iterable[str]) -> None:
    for name in parameters:
        if name in RUN_ARGUMENTS:
            raise ValueError(f"{name} belongs to a run, not to a method: {RUN_ARGUMENTS[name]}")


def _check_plain(name: str, value: Any, depth: int) -> None:
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


def read_solver(text: str) -> SolverSpec:
    """Read a solver as the command line has it: NAME or NAME[key=value,…].

    A value is what JSON reads, else text; commas inside its brackets and quotes are its own.

    Raises
    ------
    ValueError
        For a name or a parameter that does not exist, or text of another form.

    Examples
    --------
    >>> read_solver("fsmrank[lambda1=0.1]").parameters
    {'lambda1': 0.1}
    >>> read_solver('mofsrank[ensemble={"generations":5,"population":8},final=train]').parameters
    {'ensemble': {'generations': 5, 'population': 8}, 'final': 'train'}
    """
    match = re.fullmatch(r"([\w.-]+)(?:\[(.*)\])?", text.strip(), re.DOTALL)
    if match is None:
        raise ValueError(f"solver {text!r}: write NAME or NAME[key=value,…], as in fsmrank[lambda1=0.1]")
    parameters: dict[str, Any] = {}
    for part in _split(match[2] or ""):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"solver {text!r}: {part!r} is not of the form key=value")
        if key.strip() in parameters:
            raise ValueError(f"solver {text!r}: {key.strip()} is given twice")
        parameters[key.strip()] = _read(value.strip())
    try:
        check_parameters(parameters)
    except ValueError as error:
        raise ValueError(f"solver {text!r}: {error}") from None
    make_solver(match[1], **parameters)
    return SolverSpec(match[1], parameters)


def split_solvers(text: str) -> list[str]:
    """Split a list of solvers at the commas outside of brackets.

    Examples
    --------
    >>> split_solvers('fsmrank[lambda1=0,lambda2=1], mofsrank[ensemble={"generations":5}],gas')
    ['fsmrank[lambda1=0,lambda2=1]', 'mofsrank[ensemble={"generations":5}]', 'gas']
    """
    return _split(text)


def _split(text: str) -> list[str]:
    """Split at commas that are neither inside brackets nor inside quotes; empty parts are none."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, sign in enumerate(text):
        if sign == '"' and text[i - 1 : i] != "\\":
            quoted = not quoted
        elif not quoted:
            depth += (sign in "[{(") - (sign in "]})")
            if sign == "," and depth == 0:
                parts.append(text[start:i])
                start = i + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _read(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):  # of other text, of thousands of digits, of brackets without end
        return value


def written(value: Any) -> str:
    """Write a value so that `_read` gives it back: text as it is, unless it would be taken for something else.

    Raises
    ------
    TypeError
        If the value is not of those that JSON has.
    """
    if isinstance(value, str) and _read(value) == value and _split(f"x={value}") == [f"x={value}"]:
        return value
    return json.dumps(value, separators=(",", ":"))


ROWS = 1 << 16
"""Rows of a table that are digested at once."""

OF_THE_CLASS_ITSELF = {
    *("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__", "__annotate__"),
    *("__firstlineno__", "__static_attributes__", "__abstractmethods__", "_abc_impl", "__annotate_func__"),
}
"""What Python adds to each class, which says nothing of what it does."""


def describe(value: Any, place: str, *, without: tuple[str, ...] = ()) -> Any:
    """Return a plain JSON value that says what `value` is.

    Parameters
    ----------
    value : object
    place : str
        How a message calls it.
    without : tuple of str
        Parameters of an estimator that do not count.

    Raises
    ------
    ValueError
        If there is something in it that has no description which stays the same: a generator of random numbers, an
        open file, an object of a compiled library.

    Notes
    -----
    A function of one's own is its code, its defaults, and what it closes over or names: values, functions, classes and
    modules, as far as these are one's own, too. What belongs to Python, to an installed package or to moerank is its
    name. What a function reads at run time (files, the environment) is not seen. Another minor version of Python
    compiles otherwise, and makes another description.

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
    return _Describer().of(value, place, without)


def digest_of(description: Any) -> str:
    """Return the digest of plain JSON values, whatever the order of keys."""
    return blake2b(json.dumps(description, sort_keys=True).encode(), digest_size=12).hexdigest()


def data_digest(data: RankingData) -> str:
    """Return a digest of all that can decide a result: values, labels, queries, names, scaling, costs.

    O(bytes of the data), at about 1 GB/s.

    Raises
    ------
    ValueError
        For data in shards, which are elsewhere.

    Examples
    --------
    >>> one, same, other = (RankingData([[0.1], [value]], y=[0, 1]) for value in (0.9, 0.9, 0.8))
    >>> data_digest(one) == data_digest(same), data_digest(one) == data_digest(other)
    (True, False)
    """
    if data.in_shards:
        raise ValueError(f"{data.name} is in shards: give the problem file that it comes from")
    found = blake2b(digest_size=16)
    for array in (data.X, data.y, np.asarray(data.qid), data.n_missing):
        _add_array(found, array)
    about = describe(
        [data.given_names, str(data.missing), data.scaling, data.costs], f"what {data.name} says of features"
    )
    found.update(json.dumps(about, sort_keys=True).encode())
    return found.hexdigest()


class _Describer:
    """One description: what it is inside of, so that something that names itself has an end."""

    def __init__(self) -> None:
        self._inside: list[int] = []

    def of(self, value: Any, place: str, without: tuple[str, ...] = ()) -> Any:
        """Return what a value is."""
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | float | np.generic):
            return _number(value)
        if isinstance(value, np.ndarray):
            return {"array": self._array(value, place)}
        if isinstance(value, bytes | PurePath | complex) or value is Ellipsis:
            return {type(value).__name__: str(value)}
        if id(value) in self._inside:
            return {"again": len(self._inside) - self._inside.index(id(value))}
        self._inside.append(id(value))
        try:
            return self._whole(value, place, without)
        finally:
            self._inside.pop()

    def _whole(self, value: Any, place: str, without: tuple[str, ...]) -> Any:
        if isinstance(value, RankingData):
            return {"data": data_digest(value)}
        if isinstance(value, Mapping):
            entries = [[self.of(key, place), self.of(entry, f"{place}, {key}")] for key, entry in value.items()]
            texts = all(isinstance(key, str) for key, _ in entries)
            return dict(entries) if texts else {"entries": sorted(entries, key=json.dumps)}
        if isinstance(value, list | tuple):
            return [self.of(entry, place) for entry in value]
        if isinstance(value, set | frozenset):
            return {"set": sorted((self.of(entry, place) for entry in value), key=json.dumps)}
        if isinstance(value, type):
            return self._named("class", value, value.__module__, self._class, place)
        if isinstance(value, FunctionType):  # a decorator may have given it the module of another
            return self._named("function", value, value.__globals__.get("__name__"), self._function, place)
        if isinstance(getattr(value, "py_func", None), FunctionType):  # numba's, whose own state grows by being called
            return {"compiled": self.of(value.py_func, place)}
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, BuiltinFunctionType | np.ufunc):
            return {"function": f"{getattr(value, '__module__', '')}.{value.__name__}"}
        if isinstance(value, partial):
            return {"partial": [self.of(part, place) for part in (value.func, value.args, value.keywords)]}
        if isinstance(value, MethodType):
            return {"method": self.of(value.__func__, place), "of": self.of(value.__self__, place)}
        if callable(getattr(value, "get_params", None)):
            parameters = value.get_params(deep=False)
            return {
                "class": self.of(type(value), place),
                "parameters": {
                    name: self.of(parameter, f"{place}, parameter {name},")
                    for name, parameter in parameters.items()
                    if name not in without
                },
            }
        return {"object": self.of(type(value), place), "state": digest_of(self.of(_state(value, place), place))}

    def _array(self, array: NDArray[Any], place: str) -> str:
        if array.dtype.hasobject:
            return digest_of(self.of(array.tolist(), place))
        found = blake2b(digest_size=12)
        _add_array(found, array)
        return found.hexdigest()

    def _named(self, kind: str, value: Any, module: object, code: Callable[[Any, str], Any], place: str) -> Any:
        """Return the name of a function or class, and the digest of its code where it is one's own."""
        name = f"{module}.{value.__qualname__}"
        return {kind: name, "code": digest_of(code(value, place))} if _is_own(str(module)) else name

    def _function(self, function: FunctionType, place: str) -> Any:
        named = {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}
        closed = [cell.cell_contents for cell in function.__closure__ or ()]
        return [
            self._code(function.__code__, place),
            self.of([function.__defaults__, function.__kwdefaults__, closed], f"{place}, a value in it"),
            {name: self.of(value, f"{place}, {name}") for name, value in sorted(named.items())},
        ]

    def _code(self, code: CodeType, place: str) -> Any:
        constants = [self._code(c, place) if isinstance(c, CodeType) else self.of(c, place) for c in code.co_consts]
        return [code.co_code.hex(), constants, code.co_names, code.co_varnames, code.co_freevars, code.co_flags]

    def _class(self, cls: type, place: str) -> Any:
        members = {}
        for name, member in sorted(vars(cls).items()):
            if name not in OF_THE_CLASS_ITSELF:
                inner = [getattr(member, part, None) for part in ("__func__", "fget", "fset", "func")]
                members[name] = self.of([part for part in inner if part is not None] or member, f"{place}, {name}")
        return [self.of(list(cls.__bases__), place), members]

    def _module(self, module: ModuleType) -> Any:
        name = module.__name__
        if not _is_own(name) or not getattr(module, "__file__", None):
            return {"module": name}
        content = Path(str(module.__file__)).read_bytes()
        return {"module": name, "code": blake2b(content, digest_size=12).hexdigest()}


def _number(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and isfinite(plain):
        return plain
    if isinstance(plain, int) and plain.bit_length() < 64:
        return plain
    return {type(plain).__name__: str(plain)}


def _state(value: Any, place: str) -> dict[str, Any]:
    """Return what an object consists of, without what it has computed from that and kept."""
    if is_dataclass(value):
        return {entry.name: getattr(value, entry.name) for entry in fields(value)}
    if not hasattr(value, "__dict__"):
        raise ValueError(f"{place} is a {type(value).__name__}, which has no description that stays the same")
    members = {name: entry for cls in reversed(type(value).__mro__) for name, entry in vars(cls).items()}
    return {name: v for name, v in vars(value).items() if not isinstance(members.get(name), cached_property)}


def _names(code: CodeType) -> list[str]:
    """Return the names that a code looks up among the globals of its module."""
    own = [i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    return own + [name for inner in code.co_consts if isinstance(inner, CodeType) for name in _names(inner)]


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


def _add_array(found: Any, array: NDArray[Any]) -> None:
    """Add the values of an array, whatever its order in memory."""
    found.update(f"{array.dtype.str} {array.shape}".encode())
    if array.dtype.hasobject:
        found.update(json.dumps([str(value) for value in array.ravel()]).encode())
        return
    for begin in range(0, len(array) if array.ndim else 1, ROWS):
        found.update(np.ascontiguousarray(array[begin : begin + ROWS] if array.ndim else array).tobytes())


OF_THE_RUN = ("journal", "progress", "resume", "workers")
"""Parameters of an estimator that a run sets, whatever was given; results do not depend on them."""

SILENT = (*OF_THE_RUN, "verbose")
"""Parameters that do not count where two estimators are compared."""

LONGEST_LABEL = 80
"""Characters of a label that is made from parameters; tables have no room for longer ones."""


@dataclass(frozen=True)
class GivenSolver:
    """An estimator, or a function that makes one, as a solver of a study.

    It is run as it is given: a problem's budgets, backend and parameters of solvers are not for it, and nothing is
    chosen among a published grid unless the estimator does so itself.

    Attributes
    ----------
    label : str
        How tables and figures call it.
    description : dict
        What it is, in plain values; see `describe`. Part of what names a cell.
    seeded : bool
        Whether its seeds differ: a function is given the seed, and an estimator whose ``random_state`` is None, too.
    source : object, optional
        The estimator or the function; None where a study was read from its folder.
    """

    label: str
    description: dict[str, Any]
    seeded: bool
    source: Any = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """What stands in place of a name in the table of solvers."""
        return self.label

    @property
    def parameters(self) -> dict[str, Any]:
        """What is known of it, in plain values."""
        return self.description

    @property
    def given(self) -> dict[str, Any]:
        """The same: a problem adds nothing to it."""
        return self.description

    @property
    def is_held(self) -> bool:
        """Whether the object is here; the folder of a study keeps its description alone."""
        return self.source is not None

    @property
    def tune(self) -> bool:
        """Whether validation MAP chooses parameters before it is fitted: never."""
        return False

    @property
    def selects(self) -> bool:
        """Whether a verdict on it depends on the problem's margin, as far as anybody can know."""
        return True

    def takes(self) -> dict[str, Any]:
        """Return the parameters that a problem may set: none."""
        return {}

    def beneath(self, defaults: Mapping[str, Any], *, tune: bool) -> Self:
        """Return the solver itself: it is run as it is given."""
        return self

    def plain(self) -> Any:
        """Return the estimator or the function as it is."""
        return self.source

    def make(self, problem: object, offered: Mapping[str, Any]) -> Any:
        """Return the estimator of a run, not fitted.

        Parameters
        ----------
        problem : Problem
            What a function is called with.
        offered : mapping
            What a run has for solvers, by the names of parameters.

        Raises
        ------
        ValueError
            If the solver is known from the folder of a study alone, or a function returns nothing that can be fitted.
        """
        if not self.is_held:
            raise ValueError(f"{self.label} was given as a Python object; give it to Study again to run it")
        of_run = {name: offered[name] for name in OF_THE_RUN if name in offered}
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
        return made if isinstance(made, RankingEstimator) or hasattr(made, "get_support") else ForeignRanker(made)


class ForeignRanker(RankingEstimator):
    """A ranker of another library, on all features: what a run measures of it is what it predicts.

    Parameters
    ----------
    ranker : estimator
        As for `RankerAdapter`.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> data = RankingData([[0.1], [0.9], [0.5]], y=[0, 2, 1])
    >>> ForeignRanker(Ridge()).fit(data).predict([[0.0], [1.0]]).argmax()
    np.int64(1)
    """

    _additive = False

    def __init__(self, ranker: AnyRanker) -> None:
        self.ranker = ranker

    def _check_parameters(self) -> None:
        pass

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        self.support_ = np.ones(train.n_features, np.bool_)
        self.ranker_: Any = train_on(self.ranker, train, self.support_)

    def _scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.ranker_.predict(X), np.float64).reshape(-1)


AnySolver: TypeAlias = SolverSpec | GivenSolver


def read_given(source: Any, name: str | None = None) -> GivenSolver:
    """Return an estimator, or a function ``make(problem, seed)`` that returns one, as a solver.

    Parameters
    ----------
    source : estimator or callable
    name : str, optional
        How tables call it; by default the class of an estimator with the parameters that are not its defaults. A
        function needs one.

    Raises
    ------
    ValueError
        For a name that the table of solvers has, something that is neither of both, or that cannot be described.

    Examples
    --------
    >>> from moerank.rankers import RankSVM
    >>> read_given(RankSVM(C=0.5)).label
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
    described = describe(source, f"the solver {label}", without=SILENT)
    description = described if isinstance(described, dict) else {"function": described}
    seeded = not _is_estimator(source) or source.get_params(deep=False).get("random_state", 0) is None
    # A copy, without what the user may change in it later, or has fitted.
    return GivenSolver(label, _shallow(description), seeded, clone(source) if _is_estimator(source) else source)


def _is_estimator(source: Any) -> bool:
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
        if name not in SILENT and (name not in defaults or repr(value) != repr(defaults[name].default))
    }
    given = ",".join(f"{name}={_shown(value)}" for name, value in changed.items())
    label = f"{kind}[{given}]" if given else kind
    if len(label) > LONGEST_LABEL or "\n" in label:
        raise ValueError(f"{label[:60]}… is too long for tables; give it a name: solvers={{'name': {kind}(…)}}")
    return label


def _shown(value: Any) -> str:
    try:
        return written(value)
    except TypeError:  # no JSON
        return getattr(value, "__name__", None) or " ".join(repr(value).split())


def _shallow(description: dict[str, Any]) -> dict[str, Any]:
    """Return a description as files keep it: without deep tables, whose digest says as much."""
    plain: dict[str, Any] = json.loads(json.dumps(description))
    parameters = plain.get("parameters")
    if isinstance(parameters, dict):
        plain["parameters"] = {
            name: value if len(json.dumps(value)) <= 4 * LONGEST_LABEL else {"digest": digest_of(value)}
            for name, value in parameters.items()
        }
    return plain
