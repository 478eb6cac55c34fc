"""Identities of values, which are equal in every process; memos, cells of studies and caches compare them."""

import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from hashlib import blake2b
from importlib.util import resolve_name
from math import isfinite
from types import FunctionType, MethodType, ModuleType
from typing import Any

import joblib
import numpy as np


def digest(value: object, where: str = "the value") -> str:
    """Return a digest of the description of a value; it does not depend on the order of keys."""
    description = json.dumps(identify(value, where), sort_keys=True)
    return blake2b(description.encode(), digest_size=12).hexdigest()


def identify(value: Any, where: str = "the value", *, without: tuple[str, ...] = ()) -> Any:
    """Return a plain JSON value that identifies `value` in every process, without some parameters of an estimator.

    `where` is the name of the value in messages.

    Raises
    ------
    ValueError
        If an object has no stable description, such as a lock, or if a function has no readable source text and no
        ``version``.

    Notes
    -----
    An estimator is described by its class and parameters, an array by a digest of its values, another object by its
    class and its state, as ``__getstate__`` returns it, or by the value of its method ``__identity__``. A function or
    class is described by its name, its source text, its defaults, the values that it closes over, its attribute
    ``version``, and the source texts of your own code that it uses: functions and classes of its module, and the other
    modules, followed through the names in these texts. Code of Python, of moerank and of installed packages is not
    followed. Functions and classes of moerank or of another language are described by their names only. The description
    does not cover the values of other variables of the module, or files that the code reads: set ``version``, a text of
    your choice, and change it when they change. The source text comes from the file, so import a module again after an
    edit.

    Examples
    --------
    >>> from moerank.rankers import RankSVM
    >>> identify(RankSVM(C=0.5))["parameters"]["C"]
    0.5
    >>> import threading
    >>> identify(threading.Lock(), "the parameter lock")
    Traceback (most recent call last):
        ...
    ValueError: the parameter lock is a lock, which has no stable description
    """
    if isinstance(value, np.generic):
        value = value.item()
    if (
        value is None
        or isinstance(value, str | int)
        or (isinstance(value, float) and isfinite(value))
    ):
        return value
    if isinstance(value, Mapping):
        return {str(key): identify(entry, f"{where}, {key}") for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [identify(entry, where) for entry in value]
    if isinstance(value, np.ndarray):
        return joblib.hash(np.asarray(value, order="C"))
    if isinstance(value, partial):
        return identify([value.func, value.args, value.keywords], where)
    if isinstance(value, MethodType):
        return identify([value.__self__, value.__name__], where)
    code = getattr(value, "py_func", value)  # numba's compiled functions have it
    if isinstance(code, type | FunctionType):
        return _identify_code(code, where)
    return _identify_object(value, where, without)


def _identify_object(value: Any, where: str, without: tuple[str, ...]) -> Any:
    """Return the class of an object with its parameters, its attributes or joblib's hash."""
    description = {"class": identify(type(value), where)}
    if hasattr(value, "__identity__"):
        return description | value.__identity__()
    if callable(getattr(value, "get_params", None)):
        state = value.get_params(deep=False)
    elif hasattr(value, "__dict__"):
        pickled = value.__getstate__()  # without caches, if the object leaves them out there
        state = pickled if isinstance(pickled, dict) else vars(value)
        state = state.get("__dict__", state)  # pydantic's models keep their fields there
    else:
        try:
            return description | {"hash": joblib.hash(value)}
        except Exception:  # pickling may raise anything
            name = type(value).__name__
            raise ValueError(f"{where} is a {name}, which has no stable description") from None
    parameters = {}
    for name, entry in state.items():
        is_cache = isinstance(getattr(type(value), name, None), cached_property)
        if name not in without and not is_cache:
            parameters[name] = identify(entry, f"{where}, {name},")
    return description | {"parameters": parameters}


def _identify_code(value: Any, where: str) -> Any:
    """Return the name of a function or class with digests of its sources and values; in moerank only the name."""
    name = f"{value.__module__}.{value.__qualname__}"
    if value.__module__.partition(".")[0] == "moerank":
        return name
    description = {"code": name, "module": value.__module__, "sources": _source_digests(value)}
    version = vars(value).get("version")
    if isinstance(version, str):
        description["version"] = version
    elif not description["sources"] and (
        isinstance(value, FunctionType) or value.__module__ == "__main__"
    ):
        raise ValueError(
            f"{where}: the source text of {name} cannot be read; "
            f"move it to a file, or set {name}.version"
        )
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        enclosed = [content for content in cells if content is not value]
        values = [value.__defaults__, value.__kwdefaults__, enclosed]
        description["values"] = digest(values, f"{where}, a value in it")
    return description


def _source_digests(value: Any) -> dict[str, str]:
    """Return digests of the user's source texts that a function or class reaches through the names in them."""
    home = inspect.getmodule(value)
    digests = {}
    waiting = {value.__qualname__: value}
    while waiting:
        name, code = waiting.popitem()
        try:
            text = inspect.getsource(code)
        except (OSError, TypeError):  # in another language, or no code
            continue
        digests[name] = digest(text)
        module = code if inspect.ismodule(code) else home
        for name, reference in _references(text, module):
            origin = inspect.getmodule(reference)
            if origin is None or not _is_own(origin):
                continue
            if origin is not home:  # the whole text of another module counts
                name, reference = origin.__name__, origin
            if name not in digests:
                waiting[name] = reference
    return digests


def _references(text: str, module: ModuleType | None) -> Iterator[tuple[str, object]]:
    """Yield the variables of a module that a text in it names, and the modules that the text imports from."""
    if module is None:
        return
    for name in vars(module).keys() & re.findall(r"\w+", text):
        yield name, vars(module)[name]
    for name in re.findall(r"^from (\S+) import", text, re.MULTILINE):
        yield name, sys.modules.get(resolve_name(name, module.__package__))


def _is_own(module: ModuleType) -> bool:
    """Return whether a module is the user's, and not part of Python, of moerank or of an installed package."""
    package = module.__name__.partition(".")[0]
    file = getattr(module, "__file__", None) or ""
    return package not in {"moerank", *sys.stdlib_module_names} and "-packages" not in file
