"""A cell of a study: one solver with its parameters and one seed on one fold of a problem."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from moerank.runs.problem import Problem, SolverSection
from moerank.runs.result import FORMAT
from moerank.runs.run_fold import configuration
from moerank.solvers import make_solver, solvers

__all__ = ["Cell", "SolverSpec", "read_solver"]


@dataclass(frozen=True)
class SolverSpec:
    """A solver of a study: its name in the table and the parameters that are given to it.

    Attributes
    ----------
    name : str
    parameters : dict
        What is not chosen by validation data.
    """

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How tables and figures call it: the name, with the given parameters in brackets.

        Examples
        --------
        >>> SolverSpec("fsmrank", {"lambda1": 0.1}).label
        'fsmrank[lambda1=0.1]'
        >>> read_solver("mofsrank[ensemble=false]").label
        'mofsrank[ensemble=false]'
        """
        given = ",".join(
            f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in self.parameters.items()
        )
        return f"{self.name}[{given}]" if given else self.name

    @property
    def seeded(self) -> bool:
        """Whether the solver draws, so that its seeds differ."""
        return "seed" in solvers()[self.name].needs


def read_solver(text: str) -> SolverSpec:
    """Read a solver as the command line has it: NAME or NAME[key=value,…].

    Raises
    ------
    ValueError
        For a name or a parameter that does not exist, or text of another form.

    Examples
    --------
    >>> read_solver("fsmrank[lambda1=0.1]")
    SolverSpec(name='fsmrank', parameters={'lambda1': 0.1})
    """
    match = re.fullmatch(r"([\w.-]+)(?:\[(.*)\])?", text.strip())
    if match is None:
        raise ValueError(f"solver {text!r}: write NAME or NAME[key=value,…], as in fsmrank[lambda1=0.1]")
    parameters = {}
    for part in filter(None, (match[2] or "").split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"solver {text!r}: {part!r} is not of the form key=value")
        try:
            parameters[key.strip()] = json.loads(value)
        except json.JSONDecodeError:
            parameters[key.strip()] = value.strip()
    make_solver(match[1], **parameters)
    return SolverSpec(match[1], parameters)


@dataclass(frozen=True, eq=False)
class Cell:
    """One run of a study.

    Attributes
    ----------
    problem : Problem
    fold : int
    solver : SolverSpec
    seed : int
        From 0. The draws come from `random_state`.
    """

    problem: Problem
    fold: int
    solver: SolverSpec
    seed: int

    @property
    def label(self) -> str:
        """What messages call the cell."""
        seed = f", seed {self.seed}" if self.solver.seeded else ""
        return f"{self.problem.name}, fold {self.fold}, {self.solver.label}{seed}"

    @property
    def setting(self) -> Problem:
        """The problem with the solver's parameters in it."""
        section = SolverSection(parameters=self.problem.solver.parameters | self.solver.parameters)
        return self.problem.model_copy(update={"solver": section.model_copy(update={"tune": self.problem.solver.tune})})

    @property
    def random_state(self) -> int:
        """The seed of all draws: it depends on the names of this cell alone, whatever else the study contains."""
        names = f"{self.problem.name}|{self.fold}|{self.solver.label}|{self.seed}"
        return int.from_bytes(hashlib.blake2b(names.encode(), digest_size=4).digest(), "big")

    def configuration(self) -> dict[str, Any]:
        """Return everything that decides the result, as plain JSON values."""
        return {"format": FORMAT, **configuration(self.setting, self.fold, self.solver.name, self.seed)}

    @cached_property
    def key(self) -> str:
        """The name of the cell's file: a digest of its configuration."""
        text = json.dumps(self.configuration(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)
