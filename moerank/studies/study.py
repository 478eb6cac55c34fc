"""A study: many solvers on many folds with many seeds, in a folder that any number of processes may fill."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Self

import pandas as pd
from pydantic import Field, ValidationError

from moerank.checks import check_at_least, first_mistake, size
from moerank.data.folds import MOST_FOLDS, N_FOLDS
from moerank.runs.frame import results_frame
from moerank.runs.problem import Problem
from moerank.runs.problem_files import load_problem
from moerank.runs.result import RunResult
from moerank.runs.section import Parameters, Section
from moerank.runs.solver_spec import SolverSpec, read_solver
from moerank.solvers import solvers as solver_table
from moerank.solvers import with_ablations
from moerank.studies.cell import Cell
from moerank.studies.executors import Executor, find_executor
from moerank.studies.running import run_cells
from moerank.studies.store import Failure, Store
from moerank.systems import command_line

__all__ = ["Study"]

MOST_CELLS = 10**6
"""Of a study."""


class _StoredSolver(Section):
    """A solver in study.json."""

    name: str
    parameters: Parameters = Field(default_factory=dict)


class _StoredGrid(Section):
    """What study.json says of a request."""

    problems: tuple[Problem, ...]
    solvers: tuple[_StoredSolver, ...]
    folds: tuple[Annotated[int, Field(strict=True, ge=1, le=MOST_FOLDS)], ...]
    seeds: Annotated[int, Field(strict=True, ge=1, le=MOST_CELLS)]


@dataclass(frozen=True)
class _Grid:
    """What a study was asked for: solvers × problems × folds × seeds."""

    problems: tuple[Problem, ...]
    solvers: tuple[SolverSpec, ...]
    folds: tuple[int, ...]
    seeds: int

    def __post_init__(self) -> None:
        _check_number(self.n_cells)

    @property
    def n_cells(self) -> int:
        """How many cells there are, without making them."""
        n_drawn = sum(solver.name not in solver_table() or solver.seeded for solver in self.solvers)
        return len(self.problems) * len(self.folds) * (len(self.solvers) + (self.seeds - 1) * n_drawn)

    def cells(self) -> list[Cell]:
        """All cells, by seed and fold first, so that an unfinished study has something of everything."""
        drawn = [solver for solver in self.solvers if solver.seeded]
        return [
            Cell(problem, fold, solver, seed)
            for seed in range(self.seeds if drawn else 1)
            for fold in self.folds
            for problem in self.problems
            for solver in (drawn if seed else self.solvers)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "problems": [problem.model_dump(mode="json") for problem in self.problems],
            "solvers": [{"name": solver.name, "parameters": solver.parameters} for solver in self.solvers],
            "folds": list(self.folds),
            "seeds": self.seeds,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> _Grid:
        stored = _StoredGrid.model_validate(values)
        solvers = tuple(SolverSpec(solver.name, solver.parameters) for solver in stored.solvers)
        return cls(stored.problems, solvers, stored.folds, stored.seeds)


def _folds(problem: Problem, asked: tuple[int, ...] | None, data: str | Path | None) -> tuple[int, ...]:
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


def _read_grids(folder: Path, grids: list[dict[str, Any]]) -> list[_Grid]:
    """Return what was asked for in a folder."""
    try:
        read = [_Grid.from_dict(grid) for grid in grids]
        _check_number(sum(grid.n_cells for grid in read))
        return read
    except ValueError as error:
        reason = first_mistake(error) if isinstance(error, ValidationError) else error
        raise ValueError(f"{folder / 'study.json'}: not a study of this version of moerank ({reason})") from None


def _check_number(n_cells: int) -> None:
    if n_cells > MOST_CELLS:
        raise ValueError(f"a study has at most {size(MOST_CELLS)} cells, not {size(n_cells)}; divide it")


class Study:
    """Solvers × problems × folds × seeds, as cells that run in any order and are never run twice.

    Parameters
    ----------
    problems : sequence of str, path or Problem
        Names of shipped problems, or problem files.
    solvers : sequence of str
        Names in the table of solvers, with parameters as ``fsmrank[lambda1=0.1]``; what is not given is chosen by
        validation data. "all" stands for the whole table.
    out : path
        The folder of the study. Cells that it holds already are not run again; what other studies asked for in it
        stays.
    folds : sequence of int, optional
        By default all folds of each problem.
    seeds : int, default 1
        Runs of each solver that draws; the others run once. A study has at most a million cells.
    ablate : bool, default False
        Add MOFSRank, and MOFSRank without each of its three parts.
    data : path, optional
        Where files of data are; see `Problem.load_fold`.

    Examples
    --------
    >>> study = Study(["planted"], ["fsmrank", "mofsrank"], "results/study", folds=[1, 2], seeds=3)
    >>> len(study.cells())  # FSMRank draws nothing: one seed is enough
    8
    """

    def __init__(
        self,
        problems: Sequence[str | Path | Problem],
        solvers: Sequence[str],
        out: str | Path,
        *,
        folds: Iterable[int] | None = None,
        seeds: int = 1,
        ablate: bool = False,
        data: str | Path | None = None,
    ) -> None:
        check_at_least(1, MOST_CELLS, seeds=seeds)
        named = [name for given in solvers for name in (solver_table() if given == "all" else (given,))]
        specs = [read_solver(name) for name in [*named, *(with_ablations() if ablate else ())]]
        loaded = [problem if isinstance(problem, Problem) else load_problem(problem) for problem in problems]
        asked = None if folds is None else tuple(folds)
        named_folds: dict[tuple[int, ...], list[Problem]] = {}
        for problem in {problem.name: problem for problem in loaded}.values():
            named_folds.setdefault(_folds(problem, asked, data), []).append(problem)
        grids = [
            _Grid(tuple(group), tuple({spec.label: spec for spec in specs}.values()), chosen, seeds)
            for chosen, group in named_folds.items()
        ]
        if not grids or not all(grid.problems and grid.solvers and grid.folds for grid in grids):
            raise ValueError("a study needs at least one problem, one solver and one fold")
        self.out = Path(out)
        self.data = data
        self._grids = grids

    @classmethod
    def load(cls, folder: str | Path, data: str | Path | None = None) -> Self:
        """Return everything that was asked for in a folder, to report it or to go on with it.

        Raises
        ------
        ValueError
            If the folder holds no study, or one of another version.
        """
        study = cls.__new__(cls)
        study.out, study.data = Path(folder), data
        grids = Store(folder, write=False).read_grids()
        if not grids:
            raise ValueError(f"{folder} holds no study; moerank study makes one")
        study._grids = _read_grids(study.out, grids)
        missing = [solver.name for solver in study.solvers if solver.name not in solver_table()]
        if missing:
            raise ValueError(f"{study.out / 'study.json'} has the solver {missing[0]}, which is not installed here")
        return study

    @property
    def problems(self) -> list[Problem]:
        """The problems of the study."""
        return list({problem.name: problem for grid in self._grids for problem in grid.problems}.values())

    @property
    def solvers(self) -> list[SolverSpec]:
        """The solvers of the study."""
        return list({solver.label: solver for grid in self._grids for solver in grid.solvers}.values())

    def cells(self) -> list[Cell]:
        """Return all cells of the study."""
        return list({cell.key: cell for grid in self._grids for cell in grid.cells()}.values())

    def run(
        self,
        *,
        workers: int = 1,
        dask: str | None = None,
        retry_failed: bool = False,
        done: Callable[[Cell, bool], object] = lambda cell, succeeded: None,
    ) -> Self:
        """Run what is not finished, and return the study.

        Killed at any moment, it loses at most the cells under way; run again, it does the rest. Several processes may
        run studies in one folder and share the work. A cell that fails stops no other.

        Parameters
        ----------
        workers : int, default 1
            Processes, one thread each. Results are the same for any number.
        dask : str, optional
            Address of a Dask scheduler whose workers run the cells instead; of problems whose data are in shards they
            hold these, for one cell after another.
        retry_failed : bool, default False
            Run the cells that failed again.
        done : callable
            Called as ``done(cell, succeeded)`` for each cell, first for those that are there already.

        Raises
        ------
        OSError
            If the folder cannot be written, or data are missing.
        ValueError
            If the folder holds a problem of the same name with other settings.
        """
        for problem in self.problems:
            if dask is None or problem.data.shards is None:  # else they are read where they are to be held
                problem.load_fold(1, self.data)
        with Store(self.out) as store:
            for grid in self._grids:
                store.add_grid(grid.as_dict(), self._check_problems)
            cells = self.cells()
            if retry_failed:
                for cell in cells:
                    store.forget_failure(cell)
            shards = any(problem.data.shards is not None for problem in self.problems)

            def executor() -> Executor:
                return find_executor(workers, dask, self.data, shards=shards)

            run_cells(store, cells, executor, done)
        return self

    def states(self) -> dict[Cell, str]:
        """Return of each cell whether it is "finished", "failed" or "open"; no result is read."""
        finished, failed = Store(self.out, write=False).done()
        return {
            cell: "finished" if cell.key in finished else "failed" if cell.key in failed else "open"
            for cell in self.cells()
        }

    def results(self) -> list[RunResult]:
        """Return the results that are there, in the order of the cells."""
        store = Store(self.out, write=False)
        finished, _ = store.done()
        return [store.read(cell) for cell in self.cells() if cell.key in finished]

    def failures(self) -> dict[Cell, Failure]:
        """Return what went wrong with the cells that failed: "error" and "traceback"."""
        store = Store(self.out, write=False)
        _, failed = store.done()
        return {cell: store.read_failure(cell) for cell in self.cells() if cell.key in failed}

    def cost(self, cell: Cell) -> float:
        """Return the seconds of the processor that a finished cell took."""
        return float(sum(Store(self.out, write=False).read(cell).times["processor"].values()))

    def days(self) -> list[date]:
        """Return the days, of UTC, on which files of finished cells were last written, ascending."""
        times = (path.stat().st_mtime for path in (self.out / "cells").glob("*.json"))
        return sorted({datetime.fromtimestamp(time, UTC).date() for time in times})

    def commands(self) -> list[str]:
        """Return the commands that ask for this study, one for each request."""
        return [
            command_line(
                [
                    *("moerank", "study", *(problem.name for problem in grid.problems)),
                    *("--solvers", ",".join(solver.label for solver in grid.solvers)),
                    *("--folds", ",".join(map(str, grid.folds))),
                    *("--seeds", str(grid.seeds)),
                ]
            )
            for grid in self._grids
        ]

    def frame(self) -> pd.DataFrame:
        """Return one row a finished cell, see `results_frame`."""
        return results_frame(self.results())

    def _check_problems(self, grids: list[dict[str, Any]]) -> None:
        """Refuse a folder where a problem of the same name has other settings."""
        for grid in _read_grids(self.out, grids):
            for problem in grid.problems:
                mine = next((own for own in self.problems if own.name == problem.name), problem)
                if mine.configuration() != problem.configuration():
                    raise ValueError(
                        f"{self.out} holds a study of {problem.name} with other settings; choose another folder, or "
                        "give the problem another name"
                    )
