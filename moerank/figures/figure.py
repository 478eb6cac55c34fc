"""Descriptions of figures: of a run, of a study, and of a folder of either, whose files load on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from moerank.checks import unknown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from moerank.studies.problem import Problem
    from moerank.studies.result import Result
    from moerank.studies.results import Results


__all__ = [
    "FigureFolder",
    "RunFigure",
    "Section",
    "StudyFigure",
    "View",
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

    draw: Callable[[Result], Figure]
    shows: Callable[[Result], bool] = lambda result: True


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
