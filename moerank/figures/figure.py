"""A folder of figures as a table: a file that is put there is in it, and loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from moerank.checks import unknown
from moerank.mofsrank.objectives import known_objectives
from moerank.studies.result import RunResult
from moerank.studies.results import NoResultsError, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from moerank.studies.problem import Problem
    from moerank.studies.result import RunResult
    from moerank.studies.results import Results


__all__ = [
    "FigureFolder",
    "RunFigure",
    "Section",
    "StudyFigure",
    "View",
    "errors_noted",
    "fronts_of_fold",
    "named",
    "two_of",
    "non_dominated",
    "pairs_of",
    "title_of",
]

Kind = TypeVar("Kind")


class FigureFolder(Mapping[str, Kind]):
    """The figures of a package by the names of its files.

    Names are known without loading anything, so that ``moerank plot --help`` answers at once. Each file has its figure
    as ``FIGURE``.

    Parameters
    ----------
    package : str
    path : sequence of str
        The ``__path__`` of the package.
    kind : type
        What its figures are.
    """

    def __init__(self, package: str, path: Sequence[str], kind: type[Kind]) -> None:
        self._package, self._path, self._kind = package, path, kind

    def __getitem__(self, name: str) -> Kind:
        if name not in list(self):
            raise KeyError(name)
        figure = import_module(f"{self._package}.{name}").FIGURE
        if not isinstance(figure, self._kind):
            raise TypeError(f"{self._package}.{name}: FIGURE is a {type(figure).__name__}, not a {self._kind.__name__}")
        return figure

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(module.name for module in iter_modules(self._path)))

    def __len__(self) -> int:
        return len(list(iter(self)))


@dataclass(frozen=True)
class RunFigure:
    """A figure of one run.

    Attributes
    ----------
    draw : callable
        ``draw(result)`` returns the matplotlib figure.
    shows : callable
        ``shows(result)`` tells whether the result has something of the kind.
    """

    draw: Callable[[RunResult], Figure]
    shows: Callable[[RunResult], bool] = lambda result: True


Section = Literal["results", "tests", "features", "ablations"]
"""The sections of a report that have figures."""


@dataclass(frozen=True)
class View:
    """What a figure of a study is asked to show.

    Attributes
    ----------
    results : Results
        Of the problem and the solvers that are asked for.
    problem : Problem or None
        None for a figure of all problems.
    solvers : sequence of str
        The labels that are asked for; none for all.
    fold : int or None
        None for the first there is, see `fold_of`.
    metric : str
        By default that of the error.
    """

    results: Results
    problem: Problem | None
    solvers: Sequence[str]
    fold: int | None
    metric: str

    def fold_of(self, results: Results) -> int:
        """Return the fold to show: the one that is asked for, or the first of these results."""
        return min(results.folds) if self.fold is None else self.fold

    @property
    def where(self) -> str:
        """The name of the problem, for messages."""
        return "all problems" if self.problem is None else self.problem.name


@dataclass(frozen=True)
class StudyFigure:
    """A figure of a study.

    Attributes
    ----------
    make : callable
        ``make(view, **options)`` returns the matplotlib figure; the options are those of recipes.
    caption : str
        What it shows, for a report.
    takes : tuple of str
        Whether it is of one "fold", of any "metric", or neither.
    of_problem : bool
        Whether it is of one problem; else of several, or one if it is named.
    section : str
        The section of a report that shows it.
    place : int
        Figures of a section are in this order.
    reported : callable
        ``reported(results)`` tells whether reports of these results of a problem show it.
    """

    make: Callable[..., Figure]
    caption: str
    section: Section
    place: int = 0
    takes: tuple[Literal["fold", "metric"], ...] = ()
    of_problem: bool = True
    reported: Callable[[Results], bool] = bool

    def draw(
        self,
        results: Results,
        problem: Problem | None = None,
        *,
        solvers: Sequence[str] = (),
        fold: int | None = None,
        metric: str | None = None,
        **options: Any,
    ) -> Figure:
        """Draw it.

        Parameters
        ----------
        results : Results
            Of any problems.
        problem : Problem, optional
            What it is of; only a figure of several problems does without.
        solvers : sequence of str
            Labels, in the order in which they are shown; by default all, in the order of the study.
        fold : int, optional
            For figures that take it; by default the first there is.
        metric : str, optional
            For figures that take it; by default that of the error.
        **options
            Further ones of the figure; see its file.

        Raises
        ------
        NoResultsError
            If there is nothing of the kind that it shows.
        ValueError
            For a solver, fold or metric without results, or a fold or metric that it does not take.
        """
        if problem is None and self.of_problem:
            raise ValueError("this figure is of one problem; say which")
        mine = results if problem is None else results.of(problem.name)
        for name, value in (("fold", fold), ("metric", metric)):
            if value is not None and name not in self.takes:
                raise ValueError(f"this figure takes no {name}")
        if metric is not None and metric not in mine.metrics:
            raise ValueError(unknown("metric", metric, mine.metrics))
        if fold is not None and fold not in mine.folds:
            raise ValueError(f"fold {fold} has no finished cell; there are {', '.join(map(str, mine.folds))}")
        shown = mine.among(solvers)
        view = View(shown, problem, solvers, fold, shown.metric if metric is None else metric)
        return self.make(view, **options)


def named(why: str, solvers: Collection[str]) -> str:
    """Return the sentence that names solvers and says why they are not drawn; "" for none of them."""
    return f"{why}: {', '.join(solvers)}." if solvers else ""


def errors_noted(results: Results, metric: str) -> str:
    """Return the sentence that says how far means over folds may be off; "" where there is one fold."""
    means = [solver for solver in results.means().values() if len(solver.folds) > 1]
    errors = [f"{solver.mean(f'test {metric}')[1]:.3f}" for solver in means]
    if not errors:
        return ""
    span = " to ".join(sorted({min(errors), max(errors)}))
    return f"Standard error over folds of the test {metric} of chosen rankers: {span}."


def fronts_of_fold(view: View) -> tuple[dict[str, RunResult], list[str]]:
    """Return the first run on the fold to show by each solver that offers several sizes, and two sentences on others.

    The first names the solvers that have not run there, the second those that offer one size; "" for none of them.

    Raises
    ------
    NoResultsError
        If no solver is left.
    """
    fold = view.fold_of(view.results)
    first = view.results.first_runs(fold)
    runs = {solver: run for solver, run in first.items() if len(run.front) > 1}
    if not runs:
        raise NoResultsError(f"no solver offers more than one size on fold {fold} of {view.where}")
    lacking = named("Not run", [solver for solver in view.results.solvers if solver not in first])
    sizeless = named("No front, for they offer one size", [solver for solver in first if solver not in runs])
    return runs, [lacking, sizeless]


def two_of(results: Results) -> str:
    """Return the sentence that says which objectives a figure of two shows, where there are others; else ""."""
    if not results.further_objectives:
        return ""
    return f"Searched: {', '.join(results.objectives)}. Shown: number of features and {results.metrics[0]}."


def title_of(objective: str, metric: str) -> str:
    """Return how an axis calls an objective.

    Parameters
    ----------
    objective : str
        Its name; one that is not known here is called by it.
    metric : str
        The metric of the error.

    Examples
    --------
    >>> title_of("error", "MAP"), title_of("lead_time", "MAP")
    ('1 − MAP', 'Lead time')
    """
    if objective == "error":
        return f"1 − {metric}"
    if objective in (known := known_objectives()):
        return known[objective].title
    return objective.replace("_", " ").capitalize()


def pairs_of(objectives: Sequence[str]) -> list[tuple[str, str]]:
    """Return every pair of objectives, the one that comes first first.

    Examples
    --------
    >>> pairs_of(["features", "error", "cost"])
    [('features', 'error'), ('features', 'cost'), ('error', 'cost')]
    """
    return list(combinations(objectives, 2))


def non_dominated(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rows that no other one beats in two objectives, by the first of them, ascending.

    Equal ones are all there. O(n log n).

    Parameters
    ----------
    points : ndarray, shape (n_members, 2)
    """
    order = np.lexsort((points[:, 1], points[:, 0]))
    x, y = points[order].T
    before = np.searchsorted(x, x, side="left")  # how many are smaller in the first objective
    least_before = np.concatenate([[np.inf], np.minimum.accumulate(y)])[before]
    least_here = y[before]  # the first of those with the same first objective has the least second
    return np.asarray(order[(y < least_before) & (y == least_here)])
