"""Studies: many solvers on many folds with many seeds, in a folder that any number of processes may fill."""

import hashlib
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any, Self, TypeAlias, TypeVar

import pandas as pd
from pydantic import Field, model_validator

from moerank.checks import check_at_least, first_mistake
from moerank.data.folds import MAX_FOLDS, N_FOLDS
from moerank.files import Json, last_change, replace_file
from moerank.identity import digest
from moerank.mofsrank.settings import Section, at_least, pydantic_errors_as_value_errors
from moerank.runs.problem import Problem, load_problem, make_problem, with_settings
from moerank.runs.result import FORMAT, RESULT, Format, Result, Stored, find_result
from moerank.runs.run_fold import run_fold
from moerank.runs.solver import (
    GivenSolver,
    NamedSolver,
    Solver,
    configuration,
    files_of_code,
)
from moerank.runs.sources import DataFolder, InMemory
from moerank.solvers import solvers as solver_table
from moerank.studies.cells import REMEDY, Store, Work, run_cells
from moerank.studies.results import Results, results_frame
from moerank.version import VERSION

STUDY = "study.json"


@dataclass(frozen=True, eq=False)
class Cell(Work):
    """One run of a study. Seeds count from 0; `random_state` seeds the random draws."""

    problem: Problem
    fold: int
    solver: Solver
    seed: int

    outcome = Result

    @property
    def label(self) -> str:
        """The name of the cell in messages."""
        seed = f", seed {self.seed}" if self.solver.seeded else ""
        return f"{self.problem.name}, fold {self.fold}, {self.solver.label}{seed}"

    @property
    def random_state(self) -> int:
        """The seed of all random draws; it depends on problem, fold and seed, but not on the solver."""
        names = f"{self.problem.name}|{self.fold}|{self.seed}"
        return int.from_bytes(hashlib.blake2b(names.encode(), digest_size=4).digest(), "big")

    def identity(self) -> Json:
        """Return all that can be seen of what determines the result, as plain JSON values."""
        settings = configuration(self.problem, self.fold, self.solver, self.seed, baselines=False)
        return {"format": FORMAT, **settings}

    def check_source(self) -> None:
        """Refuse a problem or solver that was given as an object, which a folder does not store."""
        for name, source in (
            (self.solver.label, self.solver),
            (self.problem.name, self.problem.data),
        ):
            if not source.is_held:
                raise ValueError(
                    f"{name} was given as a Python object; pass it to Study again to run it"
                )

    def run(self, data: DataFolder) -> Result:
        """Run the solver on the fold, with the files in the folder `data`."""
        return run_fold(
            self.problem,
            self.fold,
            self.solver,
            self.seed,
            random_state=self.random_state,
            data=data,
            baselines=False,
        )

    def read(self, path: Path) -> Result:
        """Return the result in the cell's file; raise a ValueError for that of another cell, as after a renaming."""
        result = super().read(path)
        if digest({"format": FORMAT, **result.configuration}) != self.key:
            raise ValueError(f"{path}: this is not the result of {self.label}{REMEDY}")
        return result


# Largest number of cells in a study.
MAX_CELLS = 10**6

RequestedProblems: TypeAlias = (
    str
    | Path
    | Problem
    | Sequence[str | Path | Problem]
    | Mapping[str, str | Path | Problem | InMemory]
)

# A name, an estimator, several of these, or a mapping of labels to names, estimators and functions.
RequestedSolvers: TypeAlias = Any


class Grid(Section):
    """A request to a study: solvers × problems × folds × seeds."""

    problems: tuple[Problem, ...]
    solvers: tuple[Solver, ...]
    folds: tuple[Annotated[int, at_least(1, MAX_FOLDS)], ...]
    seeds: Annotated[int, at_least(1, MAX_CELLS)]
    ablation: dict[str, str] = Field(
        default_factory=dict
    )  # names of its solvers by label, the base first

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        n_seeded = sum(solver.seeded for solver in self.solvers)
        n_runs = len(self.solvers) + (self.seeds - 1) * n_seeded
        n_cells = len(self.problems) * len(self.folds) * n_runs
        if not n_cells:
            raise ValueError(
                "a study needs a problem, a solver and a fold; moerank solvers lists the solvers"
            )
        if n_cells > MAX_CELLS:
            raise ValueError(
                f"a study has at most {MAX_CELLS:,} cells, not {n_cells:,}; divide it into several"
            )
        return self

    def cells(self) -> list[Cell]:
        """Return all cells, ordered by seed and fold, so that an unfinished study has results for every solver."""
        seeded = [solver for solver in self.solvers if solver.seeded]
        return [
            Cell(problem, fold, solver, seed)
            for seed in range(self.seeds if seeded else 1)
            for fold in self.folds
            for problem in self.problems
            for solver in (seeded if seed else self.solvers)
        ]


def read_solvers(requested: RequestedSolvers, **rules: bool) -> list[Solver]:
    """Return the requested solvers, see `Study` and for `rules` `GivenSolver.of`; two must not share a name."""
    solvers = []
    for name, source in _sources(requested):
        sources = solver_table() if source == "all" else [source]
        solvers += [_solver(entry, name, rules) for entry in sources]
    return _distinct(solvers, TWO_SOLVERS)


def _sources(requested: Any) -> list[tuple[str | None, Any]]:
    """Return each requested problem or solver with its name in the study, if the request gives names."""
    if isinstance(requested, Mapping):
        return list(requested.items())
    if isinstance(requested, str) or not isinstance(requested, Sequence):
        requested = [requested]
    return [(None, source) for source in requested]


TWO_PROBLEMS = "two problems are called {}; give one of them another name"
TWO_SOLVERS = "two solvers are called {}; name one of them with solvers={{'a name': …}}"

ProblemOrSolver = TypeVar("ProblemOrSolver", Problem, Solver)


def _distinct(entries: Iterable[ProblemOrSolver], refusal: str) -> list[ProblemOrSolver]:
    """Return the first problem or solver of each name; refuse a different one of the same name."""
    names: dict[str, tuple[ProblemOrSolver, object]] = {}
    for entry in entries:
        if isinstance(entry, Problem):
            name, identity = entry.name, entry.configuration()
        else:
            name, identity = entry.label, entry.model_dump()
        if names.setdefault(name, (entry, identity))[1] != identity:
            raise ValueError(refusal.format(name))
    return [entry for entry, _ in names.values()]


def folds_of(
    problem: Problem, requested: tuple[int, ...] | None, data: DataFolder
) -> tuple[int, ...]:
    """Return the requested folds of a problem, by default all; refuse folds that do not exist."""
    try:
        n_folds = problem.n_folds(data)
    except FileNotFoundError:
        n_folds = N_FOLDS  # a study can be planned without its data, but it cannot run
    folds = range(1, n_folds + 1) if requested is None else requested
    for fold in folds:
        check_at_least(1, n_folds, fold=fold)
    return tuple(sorted(set(folds)))


def with_edited_code(folder: Path, grids: list[Grid], solvers: Iterable[Solver]) -> list[Grid]:
    """Return the grids of a folder with the solvers whose code the user has edited since, and warn of them.

    Cells are named by what identifies a solver, so all cells of an edited one are open again.
    """
    edited = {}
    for solver in solvers:
        earlier = [entry for grid in grids for entry in grid.solvers if entry.label == solver.label]
        if isinstance(solver, GivenSolver) and any(map(solver.is_edit_of, earlier)):
            edited[solver.label] = solver
            warnings.warn(
                f"{folder}: the code of {solver.label} has changed; its cells run again",
                stacklevel=3,
            )
    changed = []
    for grid in grids:
        entries = tuple(edited.get(solver.label, solver) for solver in grid.solvers)
        changed.append(grid.model_copy(update={"solvers": entries}))
    return changed


def check_names(folder: Path, grids: Iterable[Grid]) -> None:
    """Refuse requests to a folder in which two different problems or solvers have the same name."""
    refusal = (
        f"{folder} holds another {{}} {{{{}}}}, with other code or settings; "
        "choose another folder or another name"
    )
    problems = chain.from_iterable(grid.problems for grid in grids)
    solvers = chain.from_iterable(grid.solvers for grid in grids)
    _distinct(problems, refusal.format("problem"))
    _distinct(solvers, refusal.format("solver"))


class Requests(Stored):
    """The content of study.json: the requests that were made in the folder, in order."""

    format: Format
    moerank: str
    grids: list[Grid]


def read_grids(path: Path) -> list[Grid]:
    """Return the requests of a folder in order; an empty list for a new folder."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return Requests.read_file(path).grids
    return []


def _problem(source: Any, settings: Mapping[str, object], name: str | None = None) -> Problem:
    if isinstance(source, str | Path):
        problem = load_problem(source, settings)
    elif isinstance(source, Problem):
        problem = with_settings(source, settings)
    elif name is not None:
        return make_problem(name, source, settings)
    else:
        raise ValueError("data in memory need a name: problems={'name': (train, validation, test)}")
    return problem if name is None else with_settings(problem, {"name": name})


def _solver(source: object, name: str | None, rules: Mapping[str, bool]) -> Solver:
    if isinstance(source, NamedSolver | GivenSolver):
        return source
    if not isinstance(source, str):
        return GivenSolver.of(source, name, **rules)
    solver = NamedSolver.parse(source)
    if name not in (None, solver.label):
        raise ValueError(
            f"{source} keeps its name: solvers={{{solver.label!r}: {source!r}}}; "
            "an estimator can have any"
        )
    return solver


def _read_ablation(ablate: Mapping[str, Any], rules: Mapping[str, bool]) -> dict[str, Solver]:
    """Return the solvers of an ablation by name, the base first; see `Study`."""
    solvers = {}
    for name, source in ablate.items():
        label = None if isinstance(source, str) else name
        solvers[name] = _solver(source, label, rules)
    labels = {solver.label for solver in solvers.values()}
    if ablate and len(labels) < max(2, len(solvers)):
        raise ValueError(
            "ablate needs a base and other solvers: {'base': 'mofsrank', 'without ensemble': …}"
        )
    return solvers


class Study:
    """Solvers × problems × folds × seeds, as cells that run in any order and never twice.

    Parameters
    ----------
    problems : str, path, Problem, a sequence of these, or a mapping
        Names of shipped problems, or problem files. A mapping gives names to problems, which may also be data in
        memory: (train, validation, test), a list of such folds, or one RankingData, which is split by query; see
        `moerank.runs.problem.make_problem`.
    solvers : str, estimator, a sequence of these, or a mapping
        Names in the table of solvers, with parameters such as ``fsmrank[lambda1=0.1]``; validation data choose the
        other parameters. "all" stands for the whole table. An estimator, such as
        ``MOFSRank(algorithm=make_my_algorithm)`` or a ranker of another library, is treated alike: what it leaves at
        the default of its class (metric, objectives, backend, limits, budgets) comes from the problem, and a method
        ``tune`` chooses from its grid. A mapping gives names to estimators and to functions ``make(problem, seed)``
        that return one.
    out : path
        The folder of the study. Finished cells in it do not run again, and earlier requests in it stay.
    folds : int or sequence of int, optional
        By default all folds of each problem.
    seeds : int, default 1
        Runs of each randomised solver; the others run once. An estimator is randomised if its ``random_state`` is None,
        a function always. A study has at most a million cells.
    data : path, optional
        The folder with the data files; see `Problem.load_fold`.
    settings : mapping, optional
        Values that replace those of the problems, such as ``{"feature_selection.generations": 20}``.
    ablate : mapping, optional
        An ablation: names of solvers, the base first, then the base without a part, such as
        ``{"base": MOFSRank(), "without ensemble": MOFSRank(ensemble=False)}``. All draw from the same seeds; a report
        tests their differences from the base. `moerank.runs.solver.ablations` makes the mapping for names.
    own_goal : bool, default False
        Whether estimators may search by another metric or other objectives than the problem, which is refused
        otherwise. They are judged by the metric of the problem, and share no figure of fronts with other solvers.
    tune : bool, default True
        False does not tune estimators and functions; ``{"solver.tune": False}`` in `settings` tunes no solver.

    Notes
    -----
    The name of a cell's file is a digest of what the study can see of its problem and solver. Estimators count by class
    and parameters, data in memory by their bytes, functions by their source texts and the values in them
    (`moerank.identity.identify`). Where only the source texts have changed, the cells of a solver run again. Other data
    or another function need another name or another folder. The digest does not cover what code reads from files or the
    environment: a study warns if a module that it names is newer than a result.

    If several processes run the cells, each cell gets its own copy of data in memory, so use files for large data.

    Examples
    --------
    >>> study = Study(["planted"], ["fsmrank", "mofsrank"], "results/study", folds=[1, 2], seeds=3)
    >>> len(study.cells())  # FSMRank draws nothing: one seed is enough
    8
    >>> from moerank.data import load_planted_fold
    >>> from moerank.rankers import RankSVM
    >>> Study({"mine": load_planted_fold(1)}, RankSVM(C=0.5), "results/mine").cells()[0].label
    'mine, fold 1, RankSVM'
    """

    def __init__(
        self,
        problems: RequestedProblems,
        solvers: RequestedSolvers = (),
        out: str | Path = "results/study",
        *,
        folds: int | Iterable[int] | None = None,
        seeds: int = 1,
        data: DataFolder = None,
        settings: Mapping[str, Any] | None = None,
        ablate: Mapping[str, Any] | None = None,
        own_goal: bool = False,
        tune: bool = True,
    ) -> None:
        check_at_least(1, MAX_CELLS, seeds=seeds)
        requested = None
        if folds is not None:
            requested = tuple(folds) if isinstance(folds, Iterable) else (folds,)
        groups = defaultdict(list)
        requested_problems = [
            _problem(source, settings or {}, name) for name, source in _sources(problems)
        ]
        for problem in _distinct(requested_problems, TWO_PROBLEMS):
            groups[folds_of(problem, requested, data)].append(problem)
        rules = {"own_goal": own_goal, "tune": tune}
        variants = _read_ablation(ablate or {}, rules)
        distinct = _distinct([*read_solvers(solvers, **rules), *variants.values()], TWO_SOLVERS)
        ablation = {solver.label: name for name, solver in variants.items()}
        self.out, self.data = Path(out), data
        with pydantic_errors_as_value_errors(first_mistake):
            self._grids = [
                Grid(
                    problems=tuple(group),
                    solvers=tuple(distinct),
                    folds=numbers,
                    seeds=seeds,
                    ablation=ablation,
                )
                for numbers, group in (groups or {(): []}).items()
            ]

    @classmethod
    def load(cls, folder: str | Path, data: DataFolder = None) -> Self:
        """Return the study in a folder with all its requests, to report or continue it.

        Raises
        ------
        ValueError
            If the folder has no study, or one of another version.
        """
        study = cls.__new__(cls)
        study.out, study.data = Path(folder), data
        study._grids = read_grids(study.out / STUDY)
        if not study._grids:
            raise ValueError(f"{folder} holds no study; moerank study makes one")
        return study

    @property
    def problems(self) -> list[Problem]:
        """The problems of the study."""
        return list(
            {problem.name: problem for grid in self._grids for problem in grid.problems}.values()
        )

    @property
    def solvers(self) -> list[Solver]:
        """The solvers of the study."""
        return list(
            {solver.label: solver for grid in self._grids for solver in grid.solvers}.values()
        )

    @property
    def ablations(self) -> list[dict[str, str]]:
        """The ablations of the study: the names of their solvers by label, the base first."""
        merged: dict[str, dict[str, str]] = {}
        for ablation in (grid.ablation for grid in self._grids if grid.ablation):
            merged.setdefault(next(iter(ablation)), {}).update(ablation)
        return list(merged.values())

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
        """Run the cells that are not finished, and return the study.

        If it is killed, only the running cells are lost; run it again to do the rest. Several processes may run studies
        in one folder and share the work. A failed cell does not stop the others.

        Parameters
        ----------
        workers : int, default 1
            Processes with one thread each. Their number does not change results.
        dask : str, optional
            Address of a Dask scheduler whose workers run the cells instead.
        retry_failed : bool, default False
            Whether to run failed cells again.
        done : callable
            Called as ``done(cell, succeeded)`` for each cell, first for those that are already done.

        Warns
        -----
        UserWarning
            If cells failed, with their number and the error of the first one, and if the module of a solver or a file
            of the data is newer than finished results.

        Raises
        ------
        OSError
            If a file of the study cannot be written, or the Dask scheduler is gone.
        ValueError
            If the folder holds a different problem or solver of the same name, or a Python object must be given again.
        """
        with Store(self.out) as store:
            with store.alone(STUDY) as path:
                stored_grids = read_grids(path)
                earlier = with_edited_code(self.out, stored_grids, self.solvers)
                grids = {grid.model_dump_json(): grid for grid in (*earlier, *self._grids)}
                check_names(self.out, grids.values())
                if list(grids) != [grid.model_dump_json() for grid in stored_grids]:
                    requests = Requests(format=FORMAT, moerank=VERSION, grids=list(grids.values()))
                    requests.write(path)
            for remark in self.newer_files():
                warnings.warn(remark, stacklevel=2)
            states = self.states()
            for cell, state in states.items():
                if state == "open" or (retry_failed and state == "failed"):
                    cell.check_source()
            run_cells(
                store,
                list(states),
                workers=workers,
                dask=dask,
                data=self.data,
                retry_failed=retry_failed,
                done=done,
            )
        remedy = (
            "Study.failures() returns all of them with tracebacks, and run(retry_failed=True) runs "
            "them again; so does code that you have changed"
        )
        warn_of_failures(self.failures(), len(states), remedy)
        return self

    def states(self) -> dict[Cell, str]:
        """Return the state of each cell, "finished", "failed" or "open", without reading results."""
        finished, failed = Store(self.out).done()
        ended = dict.fromkeys(failed, "failed") | dict.fromkeys(finished, "finished")
        return {cell: ended.get(cell.key, "open") for cell in self.cells()}

    def newer_files(self) -> list[str]:
        """Return sentences on data, and modules of solvers or settings, that changed after results from them."""
        sources = defaultdict(list)
        for cell, state in self.states().items():
            if state == "finished":
                sources["code", cell.solver.label, 0].append(cell)
                sources["data", cell.problem.name, cell.fold].append(cell)
        times = defaultdict(list)
        for (kind, name, _), cells in sources.items():
            dates = [(self.out / "cells" / f"{cell.key}.json").stat().st_mtime for cell in cells]
            files: Iterable[str | Path] = ()
            with suppress(FileNotFoundError):  # results need no data
                if kind == "data":
                    files = cells[0].problem.files(cells[0].fold, self.data)
                else:
                    files = files_of_code(cells[0].identity())
            for file in files:
                times[str(file), kind, name].extend(dates)
        remarks = []
        for (file, kind, name), results in times.items():
            changed = last_change(Path(file))
            n_older = sum(changed > time for time in results)
            if n_older:
                remarks.append(
                    f"{file} is newer than {n_older:,} of {len(results):,} results of {name}, "
                    f"which may come from older {kind}. Give {name} another name, or choose "
                    "another folder, to run it again"
                )
        return remarks

    def results(self) -> Results:
        """Return the results of the finished cells, in the order of the cells."""
        return Results(Store(self.out).results(self.cells()).values(), self.ablations)

    def failures(self) -> dict[Cell, Json]:
        """Return the "error" and "traceback" of each failed cell."""
        return Store(self.out).failures(self.cells())

    def frame(self, *, members: bool = False) -> pd.DataFrame:
        """Return one row per finished cell, or per member of its front, with every metric; see `results_frame`."""
        return results_frame(self.results(), members=members)

    def plot(self, name: str, problem: str | None = None, **options: Any) -> Any:
        """Return a matplotlib figure of the finished cells.

        Parameters
        ----------
        name : str
            A figure of ``moerank plot``, such as "hypervolume".
        problem : str, optional
            By default the first problem.
        **options
            ``solvers``, ``fold``, ``metric`` and ``paper``; see `moerank.figures.StudyFigure.draw`.
        """
        return resolve_name("moerank.figures:draw_study")(self, name, problem, **options)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the report of ``moerank report`` as one web page, by default ``report.html`` in the folder."""
        path = Path(path or self.out / "report.html")
        report = resolve_name("moerank.reports.study_report:Report")(self)
        html = resolve_name("moerank.reports.rendering:html_report")(report)
        replace_file(path, html.encode())
        return path


def warn_of_failures(failed: Mapping[Any, Json], n_cells: int, remedy: str) -> None:
    """Warn if cells failed, with their number and the error of the first one."""
    if failed:
        cell, failure = next(iter(failed.items()))
        example = f"{cell.label}: {failure['error']}"
        warnings.warn(
            f"{len(failed):,} of {n_cells:,} cells failed, first {example}. {remedy}", stacklevel=3
        )


def read_results(folder: str | Path, *, members: bool = False) -> pd.DataFrame:
    """Return the results in a folder: one row for each run, with every metric.

    Parameters
    ----------
    folder : path
        The folder of a study, of a run, or of runs on several folds.
    members : bool, default False
        Whether there is a row for each member of a front instead of the chosen one only. Members that were not chosen
        have only the metrics of the tables.

    Returns
    -------
    DataFrame
        See `results_frame` for its columns.

    Raises
    ------
    ValueError
        If this version cannot read a file as a result.
    OSError
        If there is no finished run.

    Examples
    --------
    >>> read_results("results/nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: results/nowhere holds no finished run or study
    """
    path = Path(folder)
    if not path.exists():
        raise FileNotFoundError(f"{path} holds no finished run or study")
    if (path / STUDY).exists():
        return Study.load(path).frame(members=members)
    folds = sorted(path.glob(f"fold*/{RESULT}"), key=lambda file: (len(file.parent.name), file))
    runs = [file.parent for file in folds] if folds and not (path / RESULT).exists() else [path]
    return results_frame([find_result(run) for run in runs], members=members)
