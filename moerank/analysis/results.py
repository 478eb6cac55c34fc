"""The results of a study, read back: by problem, by solver, by fold, and their means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from moerank.checks import unknown
from moerank.runs.frame import results_frame
from moerank.runs.result import RunResult
from moerank.statistics import mean_and_error

__all__ = ["NoResultsError", "Results", "Runs", "SolverMeans"]

Runs: TypeAlias = dict[int, list[RunResult]]
"""The results of a solver on a problem by fold, one for each seed."""


class NoResultsError(ValueError):
    """A study has no result of the kind that is asked for."""


@dataclass(frozen=True)
class SolverMeans:
    """What is said of a solver on a problem: means over folds, after seeds, for runs of one fold share their queries.

    Attributes
    ----------
    n_runs : int
        Runs of all folds and seeds.
    folds : DataFrame
        The numbers of `results_frame` by fold, averaged over the seeds, and their ``seconds``: tuning and training.
    """

    n_runs: int
    folds: pd.DataFrame

    def mean(self, column: str) -> tuple[float, float]:
        """Return the mean of a column over the folds and its standard error, NaN for a single fold."""
        return mean_and_error(self.folds[column])


class Results(Sequence[RunResult]):
    """Results in the order of a study; the views of them that tables, tests and figures share.

    Examples
    --------
    >>> results = Results([])
    >>> len(results), results.problems
    (0, [])
    """

    def __init__(self, results: Iterable[RunResult]) -> None:
        self._results = tuple(results)

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[RunResult]:
        return iter(self._results)

    def __getitem__(self, index: int) -> RunResult:  # type: ignore[override]  # no slices: `of` and `among` choose
        return self._results[index]

    @property
    def problems(self) -> list[str]:
        """The names of the problems."""
        return list(dict.fromkeys(result.problem for result in self))

    @property
    def solvers(self) -> list[str]:
        """The labels of the solvers."""
        return list(dict.fromkeys(result.solver for result in self))

    @property
    def searches(self) -> list[str]:
        """The labels of the solvers whose fronts come from a search."""
        return list(dict.fromkeys(result.solver for result in self if result.convergence))

    @property
    def folds(self) -> list[int]:
        """The folds, ascending."""
        return sorted({result.fold for result in self})

    @property
    def metrics(self) -> list[str]:
        """The metrics of the tables, that of the error first."""
        return list(dict.fromkeys(metric for result in self for metric in result.metrics))

    @property
    def metric(self) -> str:
        """The metric of the error.

        Raises
        ------
        NoResultsError
            If there is no result.
        """
        if not self:
            raise NoResultsError("there is no finished run")
        return self[0].metrics[0]

    @property
    def objectives(self) -> list[str]:
        """The names of the objectives that all results have."""
        every = [result.objectives for result in self]
        return [name for name in every[0] if all(name in names for names in every)] if every else []

    @property
    def further_objectives(self) -> list[str]:
        """Those beyond the number of features and the error, which every table has."""
        return [name for name in self.objectives if name in self[0].further_objectives]

    def of(self, problem: str) -> Results:
        """Return the results of a problem.

        Raises
        ------
        NoResultsError
            If there is none.
        """
        found = Results(result for result in self if result.problem == problem)
        if not found:
            raise NoResultsError(f"there is no finished run of {problem}")
        return found

    def among(self, solvers: Sequence[str]) -> Results:
        """Return the results of these solvers, in their order; all for none.

        Raises
        ------
        ValueError
            If one of them has no result.
        """
        if not solvers:
            return self
        known = self.solvers
        for solver in solvers:
            if solver not in known:
                raise ValueError(unknown("solver", solver, known))
        return Results(result for solver in solvers for result in self if result.solver == solver)

    def by_solver(self) -> dict[str, Runs]:
        """Return the results by label of the solver and fold, one for each seed."""
        found: dict[str, Runs] = {}
        for result in self:
            found.setdefault(result.solver, {}).setdefault(result.fold, []).append(result)
        return found

    def first_runs(self, fold: int) -> dict[str, RunResult]:
        """Return the run of each solver on a fold with its first seed, where there is one."""
        return {solver: folds[fold][0] for solver, folds in self.by_solver().items() if fold in folds}

    def with_baselines(self) -> Results:
        """Return the results, and each baseline as a result of its own under its own name."""
        return Results(
            replace(result, solver=ranker.name, front=[ranker], chosen=0) if ranker is not result.best else result
            for result in self
            for ranker in (result.best, *result.baselines)
        )

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The numbers of all runs, see `results_frame`."""
        return results_frame(self)

    def means(self) -> dict[str, SolverMeans]:
        """Return what is said of each solver; of the results of one problem."""
        if not self:
            return {}
        found = {}
        for solver, rows in self.frame.drop(columns="seed").groupby("solver", sort=False):
            folds = rows.groupby("fold").mean(numeric_only=True)
            seconds = folds["tuning seconds"] + folds["training seconds"]
            found[str(solver)] = SolverMeans(len(rows), folds.assign(seconds=seconds))
        return found

    def query_values(self, metric: str, part: str = "test") -> dict[str, dict[int, NDArray[np.float64]]]:
        """Return the metric of each query by solver and fold, averaged over the seeds; of one problem."""
        return {
            solver: {
                fold: np.asarray(np.mean([np.asarray(run.best.per_query[part][metric]) for run in runs], axis=0))
                for fold, runs in folds.items()
            }
            for solver, folds in self.by_solver().items()
        }
