"""A study: many solvers on many folds with many seeds, in a folder that any number of processes may fill."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from functools import partial
from itertools import islice, product
from pathlib import Path
from typing import Any, Self

import pandas as pd

from moerank.checks import check_at_least, check_choice
from moerank.files import Json
from moerank.solvers import BASES, ablations, names_of_code, solver_entry, written
from moerank.studies.executors import check_can_be_sent, find_executor, run_cells
from moerank.studies.grid import (
    MOST_CELLS,
    AskedProblems,
    AskedSolvers,
    Cell,
    Grid,
    check_names,
    folds_of,
    read_grids,
    read_problems,
    read_solvers,
)
from moerank.studies.problem import Problem
from moerank.studies.result import Result
from moerank.studies.result_files import RESULT, find_result, results_frame
from moerank.studies.solver import Solver, check_parameters
from moerank.studies.sources import MemoryData
from moerank.studies.store import Store

WARNED_FAILURES = 3


class Study:
    """Solvers × problems × folds × seeds, as cells that run in any order and are never run twice.

    Parameters
    ----------
    problems : str, path, Problem, a sequence of these, or a mapping
        Names of shipped problems, or problem files. A mapping gives names to what it holds, which may be data in
        memory, too: (train, validation, test), a list of such folds, or one RankingData, which is cut by query; see
        `moerank.studies.problem.make_problem`.
    solvers : str, estimator, a sequence of these, or a mapping
        Names in the table of solvers, with parameters as ``fsmrank[lambda1=0.1]``; what is not given is chosen by
        validation data. "all" stands for the whole table. An estimator, as ``MOFSRank(algorithm=make_my_algorithm)``
        or a ranker of another library, is run as it is. A mapping gives names to estimators and to functions
        ``make(problem, seed)`` that return one.
    out : path
        The folder of the study. Cells that it holds already are not run again; what other studies asked for in it
        stays.
    folds : sequence of int, optional
        By default all folds of each problem.
    seeds : int, default 1
        Runs of each solver that draws; the others run once. An estimator draws if its ``random_state`` is None, a
        function always. A study has at most a million cells.
    ablate : {"mofsrank", "mofsrank-paper"}, optional
        Add this solver, and the same without each of its three parts.
    data : path, optional
        Where files of data are; see `Problem.load_fold`.
    settings : mapping, optional
        Values in place of those of the problems, as ``{"feature_selection.generations": 20}``.

    Notes
    -----
    What names a cell is a digest of all that decides its result. Estimators count by class and parameters, data in
    memory by their bytes, functions by their code and what it names (`moerank.studies.solver.describe`). So a study
    that is run again with other data or another function runs anew: under the same name in the same folder it is
    refused. What a function reads at run time, from files or the environment, is not seen.

    Several processes get data in memory with each of their cells: large data had better be files.

    Examples
    --------
    >>> study = Study(["planted"], ["fsmrank", "mofsrank"], "results/study", folds=[1, 2], seeds=3)
    >>> len(study.cells())  # FSMRank draws nothing: one seed is enough
    8
    >>> from moerank.data import load_planted_fold
    >>> from moerank.rankers import RankSVM
    >>> Study({"mine": load_planted_fold(1)}, RankSVM(C=0.5), "results/mine").cells()[0].label
    'mine, fold 1, RankSVM[C=0.5]'
    """

    def __init__(
        self,
        problems: AskedProblems,
        solvers: AskedSolvers = (),
        out: str | Path = "results/study",
        *,
        folds: Iterable[int] | None = None,
        seeds: int = 1,
        ablate: str | None = None,
        data: str | Path | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        check_at_least(1, MOST_CELLS, seeds=seeds)
        changed = dict(settings or {})
        check_parameters(changed)
        specs = {spec.label: spec for spec in read_solvers(solvers)}
        if ablate is not None:
            check_choice(BASES, ablate=ablate)
            specs |= {name: Solver.parse(name) for name in (ablate, *ablations(ablate))}
        asked = None if folds is None else tuple(folds)
        named_folds: dict[tuple[int, ...], list[Problem]] = {}
        for problem in read_problems(problems, changed):
            named_folds.setdefault(folds_of(problem, asked, data), []).append(problem)
        grids = [
            Grid(problems=tuple(group), solvers=tuple(specs.values()), folds=chosen, seeds=seeds, settings=changed)
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
        study._grids = read_grids(study.out, grids)
        path = study.out / "study.json"
        for solver, problem in product(study.solvers, study.problems):
            if solver.given is None and solver_entry(solver.name) is None:
                raise ValueError(f"{path} has the solver {solver.name}, which is not installed here")
            try:
                problem.spec(solver)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
        return study

    @property
    def problems(self) -> list[Problem]:
        """The problems of the study."""
        return list({problem.name: problem for grid in self._grids for problem in grid.problems}.values())

    @property
    def solvers(self) -> list[Solver]:
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
        started: Callable[[Cell], object] = lambda cell: None,
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
        started : callable
            Called as ``started(cell)`` when this process begins a cell.

        Warns
        -----
        UserWarning
            If cells failed, with their number and the first three with their errors.

        Raises
        ------
        OSError
            If the folder cannot be written, or data are missing.
        ValueError
            If the folder holds a problem or a solver of the same name that is another one, or something cannot be sent
            to the processes that are to run it.
        """
        if workers > 1 or dask is not None:
            check_can_be_sent({f"the solver {solver.label}": solver for solver in self.solvers})
        for problem in self.problems:
            # Else they are needed only if a cell is open, or read where they are to be held.
            if problem.data.is_held:
                problem.load_fold(1, self.data)
        with Store(self.out) as store:
            for grid in self._grids:
                store.add_grid(grid.model_dump(mode="json"), self._check_names)
            cells = self.cells()
            if retry_failed:
                for cell in cells:
                    store.forget_failure(cell)
            executor = partial(find_executor, workers, dask, self.data)
            done_before = set().union(*store.done())
            for cell in cells:  # what was given as an object may be known from the folder alone
                for name, given in ((cell.solver.label, cell.solver), (cell.problem.name, cell.problem.data)):
                    if cell.key not in done_before and not given.is_held:
                        raise ValueError(f"{name} was given as a Python object; give it to Study again to run it")
            run_cells(store, cells, executor, done, started)
        remedy = "Study.failures() returns them all with their tracebacks, and run(retry_failed=True) runs them again"
        warn_of_failures(self.failures(), len(cells), remedy)
        return self

    def states(self) -> dict[Cell, str]:
        """Return of each cell whether it is "finished", "failed" or "open"; no result is read."""
        finished, failed = Store(self.out, write=False).done()
        return {
            cell: "finished" if cell.key in finished else "failed" if cell.key in failed else "open"
            for cell in self.cells()
        }

    def results(self) -> list[Result]:
        """Return the results that are there, in the order of the cells."""
        store = Store(self.out, write=False)
        finished, _ = store.done()
        return [store.read(cell) for cell in self.cells() if cell.key in finished]

    def failures(self) -> dict[Cell, Json]:
        """Return what went wrong with the cells that failed: "error" and "traceback"."""
        store = Store(self.out, write=False)
        _, failed = store.done()
        return {cell: store.read_failure(cell) for cell in self.cells() if cell.key in failed}

    def cost(self, cell: Cell) -> float:
        """Return the seconds of the processor that a finished cell took."""
        return sum(Store(self.out, write=False).read(cell).times.processor.model_dump().values())

    def days(self) -> list[date]:
        """Return the days, of UTC, on which files of finished cells were last written, ascending."""
        times = (path.stat().st_mtime for path in (self.out / "cells").glob("*.json"))
        return sorted({datetime.fromtimestamp(time, UTC).date() for time in times})

    def commands(self) -> list[str]:
        """Return the commands that ask for this study, one for each request, as far as a command can."""
        return [
            shlex.join(
                [
                    *("moerank", "study", *(problem.name for problem in grid.problems)),
                    *("--solvers", ",".join(solver.label for solver in grid.solvers)),
                    *("--folds", ",".join(map(str, grid.folds))),
                    *("--seeds", str(grid.seeds)),
                    *(["--allow-code"] if names_of_code(grid.model_dump(mode="json")) else []),
                    *(word for key, value in grid.settings.items() for word in ("--set", f"{key}={written(value)}")),
                ]
            )
            for grid in self._grids
            if not any(solver.given is not None for solver in grid.solvers)
            and not any(isinstance(problem.data, MemoryData) for problem in grid.problems)
        ]

    def frame(self, *, members: bool = False) -> pd.DataFrame:
        """Return one row a finished cell, or one a member of its front, with every metric; see `results_frame`."""
        return results_frame(self.results(), members=members)

    def _check_names(self, grids: list[Json]) -> None:
        """Refuse the folder where a problem or a solver of the same name is another one."""
        check_names(self.out, read_grids(self.out, grids), self.problems, self.solvers)


def warn_of_failures(failed: Mapping[Any, Json], n_cells: int, remedy: str) -> None:
    """Warn if cells failed, with their number and the first three with their errors."""
    if failed:
        shown = "; ".join(f"{cell.label}: {failed[cell]['error']}" for cell in islice(failed, WARNED_FAILURES))
        more = "; …" * (len(failed) > WARNED_FAILURES)
        warnings.warn(f"{len(failed):,} of {n_cells:,} cells failed: {shown}{more}. {remedy}", stacklevel=3)


def read_results(folder: str | Path, *, members: bool = False) -> pd.DataFrame:
    """Return the results in a folder: one row for each run, with every metric.

    Parameters
    ----------
    folder : path
        Of a study, of a run, or of the runs on several folds.
    members : bool, default False
        A row for each member of a front instead of the chosen one alone. Those that were not chosen have the metrics of
        the tables only.

    Returns
    -------
    DataFrame
        See `results_frame` for its columns.

    Raises
    ------
    ValueError
        For files that are no results of this version.
    OSError
        If there is no finished run; the message says where one is.

    Examples
    --------
    >>> read_results("results/nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: results/nowhere holds no finished run or study
    """
    place = Path(folder)
    if not place.exists():
        raise FileNotFoundError(f"{place} holds no finished run or study")
    if (place / "study.json").exists():
        return Study.load(place).frame(members=members)
    folds = sorted(place.glob(f"fold*/{RESULT}"), key=lambda file: (len(file.parent.name), file))
    runs = [file.parent for file in folds] if folds and not (place / RESULT).exists() else [place]
    return results_frame([find_result(run) for run in runs], members=members)


def merge_studies(folders: Iterable[str | Path], out: str | Path) -> Study:
    """Write the union of studies to a folder, and return it.

    Cells are named by all that decides their results, so a cell that several studies have is the same run: it is taken
    once, and refused if its results differ in more than times and versions. Nothing that is in `out` is replaced, and
    nothing is written before everything was checked.

    Parameters
    ----------
    folders : sequence of path
        Of two or more studies, run on different machines or asked for different solvers, say.
    out : path
        The folder of the union: a new one, or that of a study, which is extended.

    Raises
    ------
    ValueError
        If a folder holds no study, if problems or solvers of one name differ, or results of one cell.
    OSError
        If `out` cannot be written.

    Notes
    -----
    Reads all results once: O(bytes of the studies).

    Examples
    --------
    >>> merge_studies(["results/office"], "results/both")
    Traceback (most recent call last):
        ...
    ValueError: name at least two studies to merge
    """
    given = [Path(folder) for folder in folders]
    if len(given) < 2:
        raise ValueError("name at least two studies to merge")
    target = Path(out)
    there = [target] if Store(target, write=False).read_grids() else []
    distinct = {folder.resolve(): folder for folder in [*there, *given]}
    studies = [Study.load(folder) for folder in distinct.values()]
    for number, study in enumerate(studies):
        for other in studies[:number]:
            check_names(study.out, study._grids, other.problems, other.solvers)
    _refuse_contradictions(studies)
    with Store(target) as store:
        for study in studies:
            for grid in Store(study.out, write=False).read_grids():
                store.add_grid(grid, lambda grids: None)
        for study in studies:
            other_store = Store(study.out, write=False)
            finished, failed = other_store.done()
            for cell in study.cells():
                if cell.key in finished | failed:
                    store.adopt(cell, other_store)
    return Study.load(target)


def _refuse_contradictions(studies: list[Study]) -> None:
    """Read all results, and compare those of cells that several studies have finished."""
    found: dict[str, Store] = {}
    for study in studies:
        store = Store(study.out, write=False)
        finished, _ = store.done()
        for cell in study.cells():
            if cell.key not in finished:
                continue
            result = store.read(cell)
            known = found.setdefault(cell.key, store)
            if known is not store and _decided(result) != _decided(known.read(cell)):
                raise ValueError(
                    f"{study.out} and {known.folder} have different results of {cell.label}, of which one is wrong; "
                    f"remove cells/{cell.key}.json in one of them"
                )


def _decided(result: Result) -> Json:
    """Return the part of a result that its configuration decides: all but the times and the versions."""
    return result.model_dump(exclude={"times", "versions"})
