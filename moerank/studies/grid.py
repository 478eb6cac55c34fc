"""A cell of a study: one solver with its parameters and one seed on one fold of a problem."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Protocol, Self, TypeAlias

from pydantic import Field, ValidationError, model_validator

from moerank.checks import check_at_least, first_mistake, size
from moerank.data import RankingData
from moerank.data.folds import MOST_FOLDS, N_FOLDS
from moerank.files import Json
from moerank.mofsrank.settings import Section
from moerank.solvers import solvers as solver_table
from moerank.studies.problem import Problem, load_problem, make_problem, with_settings
from moerank.studies.result import FORMAT, Result, Stored
from moerank.studies.run_fold import configuration, run_fold
from moerank.studies.solver import PlainParameters, Solver, digest_of
from moerank.studies.sources import InMemory


class Work(Protocol):
    """What an executor runs and a store keeps: a cell of a study, or of a study of searches."""

    @property
    def label(self) -> str:
        """What messages call the cell."""

    @property
    def key(self) -> str:
        """The name of the cell's file: a digest of all that decides the outcome."""

    def run(self, data: str | Path | None) -> Stored:
        """Run the cell."""

    def read(self, text: str) -> Any:
        """Return the outcome from the text of its file; a ValueError for that of another cell."""


@dataclass(frozen=True, eq=False)
class Cell:
    """One run of a study; seeds count from 0, and the draws come from `random_state`."""

    problem: Problem
    fold: int
    solver: Solver
    seed: int

    @property
    def label(self) -> str:
        """What messages call the cell."""
        seed = f", seed {self.seed}" if self.solver.seeded else ""
        return f"{self.problem.name}, fold {self.fold}, {self.solver.label}{seed}"

    @property
    def random_state(self) -> int:
        """The seed of all draws, the same for all solvers: their comparisons share problem, fold and seed."""
        names = f"{self.problem.name}|{self.fold}|{self.seed}"
        return int.from_bytes(hashlib.blake2b(names.encode(), digest_size=4).digest(), "big")

    def configuration(self) -> Json:
        """Return everything that decides the result, as plain JSON values."""
        return {"format": FORMAT, **configuration(self.problem, self.fold, self.solver, self.seed, baselines=False)}

    @cached_property
    def key(self) -> str:
        """The name of the cell's file: a digest of its configuration."""
        return digest_of(self.configuration())

    def run(self, data: str | Path | None) -> Result:
        """Run the solver on the fold, with files of `data`."""
        return run_fold(
            self.problem,
            self.fold,
            self.solver,
            self.seed,
            random_state=self.random_state,
            data=data,
            baselines=False,
        )

    def read(self, text: str) -> Result:
        """Return the result from its text; a ValueError for that of another cell, as files may have been exchanged."""
        result = Result.from_json(text)
        here = {
            "problem": self.problem.name,
            "fold": self.fold,
            "solver": self.solver.label,
            "seed": self.seed,
            "random_state": self.random_state,
        }
        for name, value in here.items():
            if (there := getattr(result, name)) != value:
                raise ValueError(f"the result of another cell: {name} is {there} there, and {value} in {self.label}")
        if digest_of({"format": FORMAT, **result.configuration}) != self.key:
            raise ValueError(f"the result of another configuration than that of {self.label}")
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


MOST_CELLS = 10**6
"""Of a study."""

AskedProblems: TypeAlias = (
    str | Path | Problem | Sequence[str | Path | Problem] | Mapping[str, str | Path | Problem | InMemory]
)

AskedSolvers: TypeAlias = Any
"""A name, an estimator, several of these, or a mapping of labels to names, estimators and functions."""


class Grid(Section):
    """A request to a study: solvers × problems × folds × seeds, and values in place of those of the problem files."""

    problems: tuple[Problem, ...]
    solvers: tuple[Solver, ...]
    folds: tuple[Annotated[int, Field(strict=True, ge=1, le=MOST_FOLDS)], ...]
    seeds: Annotated[int, Field(strict=True, ge=1, le=MOST_CELLS)]
    settings: PlainParameters = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_number(self.n_cells)
        return self

    @property
    def n_cells(self) -> int:
        """The number of cells, without making them."""
        n_drawn = sum(solver.seeded for solver in self.solvers)
        return len(self.problems) * len(self.folds) * (len(self.solvers) + (self.seeds - 1) * n_drawn)

    def cells(self) -> list[Cell]:
        """Return all cells, by seed and fold first, so that an unfinished study has something of everything."""
        drawn = [solver for solver in self.solvers if solver.seeded]
        return [
            Cell(problem, fold, solver, seed)
            for seed in range(self.seeds if drawn else 1)
            for fold in self.folds
            for problem in self.problems
            for solver in (drawn if seed else self.solvers)
        ]


def read_problems(asked: AskedProblems, settings: Mapping[str, object]) -> list[Problem]:
    """Return the problems that are asked for, with `settings` in place of their own values; see `load_problem`.

    A mapping gives names, also to data in memory; see `make_problem`. Two different problems of one name are refused.
    """
    if isinstance(asked, str | Path | Problem):
        asked = [asked]
    if isinstance(asked, Mapping):
        found = [_problem(given, settings, name) for name, given in asked.items()]
    elif isinstance(asked, RankingData) or not all(isinstance(given, str | Path | Problem) for given in asked):
        raise ValueError("data in memory need a name: problems={'name': (train, validation, test)}")
    else:
        found = [_problem(given, settings) for given in asked]
    named = {problem.name: problem for problem in found}
    for problem in found:
        if problem.configuration() != named[problem.name].configuration():
            raise ValueError(f"two problems are called {problem.name}; give one of them another name")
    return list(named.values())


def read_solvers(asked: AskedSolvers) -> list[Solver]:
    """Return the solvers that are asked for, see `Study`; two different solvers of one name are refused."""
    if isinstance(asked, Mapping):
        found = [_solver(given, name) for name, given in asked.items()]
    else:
        several = asked if isinstance(asked, Sequence) and not isinstance(asked, str) else [asked]
        every = [solver_table() if isinstance(given, str) and given == "all" else (given,) for given in several]
        found = [given if isinstance(given, Solver) else _solver(given) for given in chain.from_iterable(every)]
    by_label = {solver.label: solver for solver in found}
    for solver in found:
        if solver != by_label[solver.label]:
            raise ValueError(f"two solvers are called {solver.label}: solvers={{'a name': …}} tells them apart")
    return list(by_label.values())


def folds_of(problem: Problem, asked: tuple[int, ...] | None, data: str | Path | None) -> tuple[int, ...]:
    """Return the folds of a problem that are asked for, by default all; refuse those that do not exist."""
    try:
        n_folds = problem.n_folds(data)
    except FileNotFoundError:
        n_folds = N_FOLDS  # to plan a study no data are needed, and without them none runs
    if asked is None:
        return tuple(range(1, n_folds + 1))
    for fold in asked:
        check_at_least(0, fold=fold)
    if not set(asked) <= set(range(1, n_folds + 1)):
        there = f"there are folds 1 to {n_folds}" if n_folds > 1 else "there is only fold 1"
        raise ValueError(f"{problem.name}: {there}, not {sorted(set(asked))}")
    return tuple(sorted(set(asked)))


def check_names(place: Path, grids: Iterable[Grid], problems: Iterable[Problem], solvers: Iterable[Solver]) -> None:
    """Refuse the study in a folder if a problem or a solver of it has the name of one of these, and is another."""
    named = {problem.name: problem for problem in problems}
    labelled = {solver.label: solver for solver in solvers}
    for grid in grids:
        for problem in grid.problems:
            if named.get(problem.name, problem).configuration() != problem.configuration():
                raise ValueError(
                    f"{place} holds a study of {problem.name} with other settings; choose another folder, or give the "
                    "problem another name"
                )
        for solver in grid.solvers:
            if labelled.get(solver.label, solver) != solver:
                raise ValueError(
                    f"{place} holds results of another {solver.label}: its code or its parameters have changed; choose "
                    "another folder, or give the solver another name"
                )


def check_number(n_cells: int) -> None:
    """Refuse a study of more than a million cells."""
    if n_cells > MOST_CELLS:
        raise ValueError(f"a study has at most {size(MOST_CELLS)} cells, not {size(n_cells)}; divide it")


def read_grids(folder: Path, grids: list[Json]) -> list[Grid]:
    """Return what was asked for in a folder; refuse what this version of moerank does not write."""
    try:
        read = [Grid.model_validate(grid) for grid in grids]
        check_number(sum(grid.n_cells for grid in read))
        return read
    except ValueError as error:
        reason = first_mistake(error) if isinstance(error, ValidationError) else error
        raise ValueError(f"{folder / 'study.json'}: not a study of this version of moerank ({reason})") from None


def _problem(given: Any, settings: Mapping[str, object], name: str | None = None) -> Problem:
    if name is not None and not isinstance(given, str | Path | Problem):
        return make_problem(name, given, settings)
    read = with_settings(given, settings) if isinstance(given, Problem) else load_problem(given, settings)
    return read if name is None else with_settings(read, {"name": name})


def _solver(given: object, name: str | None = None) -> Solver:
    if not isinstance(given, str):
        return Solver.of(given, name)
    spec = Solver.parse(given)
    if name not in (None, spec.label):
        raise ValueError(f"{given} keeps its name: solvers={{{spec.label!r}: {given!r}}}")
    return spec
