"""Checks of arguments; each error names the argument, its value and the remedy."""

from __future__ import annotations

import json
import os
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from difflib import get_close_matches
from functools import cache, partial
from math import inf
from numbers import Integral, Real
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:  # every command loads this file, and some do without pydantic
    from pydantic import ValidationError


Parameters: TypeAlias = dict[str, Any]  # by name

MAX_GIB = 16.0  # GiB that one table may take, unless the user says otherwise


def check_positive(*, or_none: bool = False, **parameters: object) -> dict[str, float]:
    """Return the parameters as floats; a ValueError unless each is positive and finite, or None with `or_none`.

    >>> check_positive(C=1.0, tol=-1)
    Traceback (most recent call last):
        ...
    ValueError: tol must be positive, not -1
    """
    return _floats(parameters, "be positive", lambda number: 0 < number < inf, or_none)


def check_not_negative(*, or_none: bool = False, **parameters: object) -> dict[str, float]:
    """Return the parameters as floats; a ValueError unless each is finite and at least 0, or None with `or_none`."""
    return _floats(parameters, "not be negative", lambda number: 0 <= number < inf, or_none)


def _floats(
    parameters: Parameters,
    condition: str,
    is_valid: Callable[[float], bool],
    or_none: bool = False,
) -> dict[str, float]:
    """Return the parameters as floats; refuse those that are not valid."""
    numbers = {}
    for name, value, suffix in _parameters_to_check(parameters, or_none):
        if not isinstance(value, Real) or isinstance(value, bool):
            raise ValueError(f"{name} must be a number{suffix}, not {reprlib.repr(value)}")
        try:
            number = numbers[name] = float(value)
        except OverflowError:  # of an integer beyond all floats
            number = inf
        if not is_valid(number):
            reason = "be finite" if number == inf else condition
            raise ValueError(f"{name} must {reason}{suffix}, not {reprlib.repr(value)}")
    return numbers


def check_at_least(
    minimum: int, maximum: int | None = None, *, or_none: bool = False, **parameters: object
) -> None:
    """Raise a ValueError unless each parameter is an integer from `minimum` to `maximum`, or None with `or_none`.

    Without a `maximum`, every integer from `minimum` on is valid.

    >>> check_at_least(1, n_rounds=2.5)
    Traceback (most recent call last):
        ...
    ValueError: n_rounds must be an integer, not 2.5
    """
    for name, value, suffix in _parameters_to_check(parameters, or_none):
        require_integer(name, value, minimum, maximum, suffix)


def require_integer(
    name: str, value: Any, minimum: int, maximum: int | None = None, suffix: str = ""
) -> None:
    """Raise a ValueError unless a value is an integer from `minimum` to `maximum`; see `check_at_least`."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"{name} must be an integer{suffix}, not {reprlib.repr(value)}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}{suffix}, not {value}")
    if maximum is not None and int(value) > maximum:
        raise ValueError(f"{name} must be at most {maximum:,}{suffix}, not {int(value):,}")


def check_share(*, zero: bool = False, one: bool = True, **parameters: object) -> dict[str, float]:
    """Return the parameters as floats; a ValueError unless each is between 0 and 1; `zero` and `one` allow the ends.

    >>> check_share(query_share=0.0)
    Traceback (most recent call last):
        ...
    ValueError: query_share must be in (0, 1], not 0.0
    """
    opening, closing = "[" if zero else "(", "]" if one else ")"
    return _floats(
        parameters,
        f"be in {opening}0, 1{closing}",
        lambda number: 0 <= number <= 1 and (zero or number > 0) and (one or number < 1),
    )


def check_room(table: str, n_bytes: int) -> None:
    """Raise a ValueError if a table needs more memory than the limit, before the table is made.

    The limit is `MAX_GIB` GiB, or the number of GiB in the environment variable ``MOERANK_MEMORY``.

    >>> check_room("a population of 1,000,000,000 individuals", 2**40)
    Traceback (most recent call last):
        ...
    ValueError: a population of 1,000,000,000 individuals would take 1,024 GiB, and the limit is 16 GiB; ask for less,
    or raise the limit with the environment variable MOERANK_MEMORY, in GiB
    """
    limit = memory_limit()
    if n_bytes > limit:
        needed = f"{n_bytes >> 30:,}" if n_bytes >= 10 * 2**30 else f"{n_bytes / 2**30:.3g}"
        raise ValueError(
            f"{table} would take {needed} GiB, and the limit is {limit / 2**30:.4g} GiB; "
            "ask for less, or raise the limit with the environment variable MOERANK_MEMORY, in GiB"
        )


def check_square(n_features: int, n_tables: int = 1) -> None:
    """Raise a ValueError if square tables of the features need more memory than the limit.

    >>> check_square(100_000)
    Traceback (most recent call last):
        ...
    ValueError: a table of 100,000 × 100,000 features would take 74 GiB, and the limit is 16 GiB; ask for less, or raise
    the limit with the environment variable MOERANK_MEMORY, in GiB
    """
    tables = "a table" if n_tables == 1 else f"{n_tables:,} tables"
    check_room(
        f"{tables} of {n_features:,} × {n_features:,} features", 8 * n_tables * n_features**2
    )


def cap_workers(workers: int) -> int:
    """Return the number of threads or processes, limited to four per processor, because more save no time."""
    if workers == 1:  # counting the processors takes as long as a small batch
        return 1
    return min(workers, 4 * (os.cpu_count() or 1))


def memory_limit() -> int:
    """Return the limit on the size of one table, in bytes: `MAX_GIB` GiB, or the value of ``MOERANK_MEMORY`` in GiB."""
    text = os.environ.get("MOERANK_MEMORY") or MAX_GIB
    try:
        return int(float(text) * 2**30)
    except (ValueError, OverflowError):
        raise ValueError(
            f"the environment variable MOERANK_MEMORY must be a number of GiB, not {text!r}"
        ) from None


def check_switch(**parameters: object) -> None:
    """Raise a ValueError unless each parameter is True or False, because Python takes a text such as "no" for true."""
    for name, value in parameters.items():
        require_switch(name, value)


def require_switch(name: str, value: object) -> None:
    """Raise a ValueError unless a value is True or False."""
    import numpy as np  # every command loads this file, and most do without numpy

    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, not {reprlib.repr(value)}")


def check_choice(choices: Iterable[str], *, or_none: bool = False, **parameters: object) -> None:
    """Raise a ValueError unless each parameter is one of the choices, or None with `or_none`.

    The message suggests the nearest choice.

    >>> check_choice(("pair", "query"), loss="paris")
    Traceback (most recent call last):
        ...
    ValueError: loss must be one of 'pair', 'query', not 'paris'; did you mean 'pair'?
    """
    choices = list(choices)
    for name, value, _ in _parameters_to_check(parameters, or_none):
        if not isinstance(value, str) or value not in choices:
            nearest = get_close_matches(value, choices, n=1) if isinstance(value, str) else []
            advice = f"; did you mean {nearest[0]!r}?" if nearest else ""
            listing = ", ".join(map(repr, choices))
            raise ValueError(f"{name} must be one of {listing}, not {reprlib.repr(value)}{advice}")


Positive: TypeAlias = Annotated[float, check_positive]
NotNegative: TypeAlias = Annotated[float, check_not_negative]
Share: TypeAlias = Annotated[float, check_share]
Count: TypeAlias = Annotated[int, partial(check_at_least, 1)]
AtLeastTwo: TypeAlias = Annotated[int, partial(check_at_least, 2)]


def is_made_of_fields(kind: type) -> bool:
    """Return whether the constructor of a class is that of `object` or of a dataclass it derives from."""
    owner = next(base for base in kind.__mro__ if "__init__" in vars(base))
    return owner is object or (owner is not kind and "__dataclass_params__" in vars(owner))


def check_fields(values: Any) -> None:
    """Raise a ValueError for a field of a dataclass that breaks the constraint in its annotation.

    A constraint is a check of this module: types such as ``Positive`` have one, and ``Annotated`` adds any other.
    A Literal is checked as a choice, a bool as a switch; ``Count | None`` and ``NotNegative | None`` also allow None.
    A number of another kind than int and float, such as a fraction, becomes a float, as the kernels need it.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Ridge:
    ...     alpha: Positive = 1.0
    >>> check_fields(Ridge(alpha=0.0))
    Traceback (most recent call last):
        ...
    ValueError: alpha must be positive, not 0.0
    """
    for check, names in _constraints(values.__class__).items():
        parameters = {name: getattr(values, name) for name in names}
        for name, number in (check(**parameters) or {}).items():
            if not isinstance(parameters[name], int | float) or parameters[name] > 2**53:
                object.__setattr__(values, name, number)


@cache
def _constraints(kind: Any) -> dict[Callable[..., Any], list[str]]:
    """Return the names of the fields that each check applies to."""
    hints = get_type_hints(kind, include_extras=True)
    names: dict[Callable[..., Any], list[str]] = {}
    for field in fields(kind):
        check = _constraint(hints[field.name])
        if check is not None:
            names.setdefault(check, []).append(field.name)
    return names


def _constraint(hint: object) -> Callable[..., Any] | None:
    parts = get_args(hint)
    if hint is bool:
        return check_switch
    if get_origin(hint) is Literal:
        return partial(check_choice, parts)
    if hasattr(hint, "__metadata__"):
        return hint.__metadata__[0]
    if len(parts) == 2 and parts[1] is type(None):
        inner = _constraint(parts[0])
        return None if inner is None else partial(inner, or_none=True)
    return None


PLAIN_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"  # the feature names that search engines accept


def plain_name(name: str) -> str:
    """Replace all but ASCII letters and digits by _, and put f before a name that is empty or begins with a digit."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return name if re.match(PLAIN_NAME, name) else f"f{name}"


def toml_value(value: object) -> str:
    """Return a JSON value as one line of TOML, without the entries of objects that are null.

    >>> toml_value({"match": {"title": "{{q}}", "boost": None}})
    '{match = {title = "{{q}}"}}'
    """
    if isinstance(value, dict):
        entries = []
        for key, inner in value.items():
            if inner is not None:
                key = key if re.fullmatch(r"[\w-]+", key, re.ASCII) else toml_value(key)
                entries.append(f"{key} = {toml_value(inner)}")
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def unknown(kind: str, name: str, names: Iterable[str]) -> str:
    """Return the message for an unknown `name` of a `kind`; it suggests the nearest of `names`, or lists them all.

    >>> unknown("algorithm", "nsga", ["nsga2", "spea2"])
    "unknown algorithm 'nsga'; did you mean 'nsga2'?"
    """
    names = list(names)
    nearest = get_close_matches(name, names, n=1) or [
        other for other in names if name and name in other
    ]
    advice = f"did you mean {nearest[0]!r}?" if nearest else f"choose one of {', '.join(names)}"
    return f"unknown {kind} {name!r}; {advice}"


def first_mistake(error: ValidationError) -> str:
    """Return the key and the reason of the first mistake in values that a pydantic model refused.

    >>> from pydantic import TypeAdapter, ValidationError
    >>> try:
    ...     TypeAdapter(dict[str, list[int]]).validate_python({"folds": [1, "x"]})
    ... except ValidationError as error:
    ...     print(first_mistake(error))
    folds.1: Input should be a valid integer, unable to parse string as an integer
    """
    mistake = error.errors(include_url=False, include_input=False)[0]
    key = ".".join(map(str, mistake["loc"]))
    reason = str(mistake["ctx"]["error"]) if mistake["type"] == "value_error" else mistake["msg"]
    return f"{key}: {reason}" if key else reason


def _parameters_to_check(parameters: Parameters, or_none: bool) -> Iterator[tuple[str, Any, str]]:
    """Yield each parameter with a suffix of its message; with `or_none`, leave out those that are None."""
    suffix = ", or None" if or_none else ""
    for name, value in parameters.items():
        if not (or_none and value is None):
            yield name, value, suffix
