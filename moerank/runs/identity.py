"""What a value from Python is, in plain JSON: the same text for the same value in every process, another for any other.

A cell of a study is named by its configuration. Solvers and data that were given as objects have none that could be
read, so they are described: estimators by class and parameters, arrays by a digest of their bytes, functions and
classes of one's own by a digest of their code and of all that it names. What has no such description is refused.
"""

from __future__ import annotations

import dis
import json
import sys
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from hashlib import blake2b
from math import isfinite
from pathlib import Path, PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moerank.data import RankingData
from moerank.data.sharded_data import ShardedData

__all__ = ["data_digest", "describe", "digest_of"]

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
    if isinstance(data, ShardedData):
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
