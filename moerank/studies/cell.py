"""A cell of a study: one solver with its parameters and one seed on one fold of a problem."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from moerank.runs.given_solver import AnySolver
from moerank.runs.problem import Problem
from moerank.runs.result import FORMAT
from moerank.runs.run_fold import configuration

__all__ = ["Cell", "digest"]


@dataclass(frozen=True, eq=False)
class Cell:
    """One run of a study.

    Attributes
    ----------
    problem : Problem
    fold : int
    solver : SolverSpec or GivenSolver
    seed : int
        From 0. The draws come from `random_state`.
    """

    problem: Problem
    fold: int
    solver: AnySolver
    seed: int

    @property
    def label(self) -> str:
        """What messages call the cell."""
        seed = f", seed {self.seed}" if self.solver.seeded else ""
        return f"{self.problem.name}, fold {self.fold}, {self.solver.label}{seed}"

    @property
    def random_state(self) -> int:
        """The seed of all draws: it depends on the names of this cell alone, whatever else the study contains."""
        names = f"{self.problem.name}|{self.fold}|{self.solver.label}|{self.seed}"
        return int.from_bytes(hashlib.blake2b(names.encode(), digest_size=4).digest(), "big")

    def configuration(self) -> dict[str, Any]:
        """Return everything that decides the result, as plain JSON values."""
        return {"format": FORMAT, **configuration(self.problem, self.fold, self.solver, self.seed, baselines=False)}

    @cached_property
    def key(self) -> str:
        """The name of the cell's file: a digest of its configuration."""
        return digest(self.configuration())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


def digest(configuration: dict[str, Any]) -> str:
    """Return the digest of a configuration, whatever the order of its keys."""
    text = json.dumps(configuration, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
