"""A solver with the parameters that are given to it, as the command line, studies and problem files name it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from moerank.rankers import Selection
from moerank.solvers import make_solver, solvers

__all__ = ["RUN_ARGUMENTS", "SolverSpec", "check_parameters", "read_solver", "split_solvers", "written"]

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
