"""Classes for figures of a run, figures of a study, and folders of figures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from moerank.studies.problem import Problem
    from moerank.studies.result import Result
    from moerank.studies.results import Results


FigureKind = TypeVar("FigureKind")


class FigureFolder(Mapping[str, FigureKind]):
    """Figures of a package, which has the ``__path__`` `path`, by their names.

    The figure ``front`` of the package ``of_run`` is ``FIGURE`` in its file ``front_of_run.py``. Files are loaded on
    access, so that ``moerank plot --help`` is fast.
    """

    def __init__(self, package: str, path: Sequence[str]) -> None:
        self._package, self._path, self._ending = package, path, f"_{package.rpartition('.')[2]}"

    def __getitem__(self, name: str) -> FigureKind:
        if name not in list(self):
            raise KeyError(name)
        figure: FigureKind = import_module(f"{self._package}.{name}{self._ending}").FIGURE
        return figure

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(module.name.removesuffix(self._ending) for module in iter_modules(self._path)))

    def __len__(self) -> int:
        return len(list(iter(self)))


@dataclass(frozen=True)
class RunFigure:
    """A figure of one run."""

    make: Callable[[Result], Figure]
    shows: Callable[[Result], bool] = lambda result: True  # whether the result has data for the figure

    def draw(self, result: Result) -> Figure:
        """Draw the figure in the style of all figures."""
        with _in_style():
            return self.make(result)


@dataclass(frozen=True)
class View:
    """Selection of results for a figure: of one problem or all (None), of some solvers or all (empty).

    Without a selected fold it is the first one with results, see `fold_of`.
    """

    results: Results
    problem: Problem | None
    solvers: Sequence[str]
    fold: int | None
    metric: str

    def fold_of(self, results: Results) -> int:
        """Return the selected fold, or the first fold of some results."""
        return min(results.folds) if self.fold is None else self.fold

    @property
    def where(self) -> str:
        """The name of the problem, for messages."""
        return "all problems" if self.problem is None else self.problem.name


@dataclass(frozen=True)
class StudyFigure:
    """A figure of a study."""

    make: Callable[..., Figure]  # of a view, and options of its own; its file says what it shows
    section: str  # of reports with the figure: results, tests, features or ablations
    order: int = 0  # among the figures of the section
    takes: tuple[Literal["fold", "metric"], ...] = ()  # options that apply
    of_problem: bool = True  # it needs one problem; others show all problems, or a selected one
    of_chosen: bool = False  # it shows chosen members alone, of which studies keep all metrics
    reported: Callable[[Results], bool] = bool  # whether reports show the figure for these results of a problem

    @property
    def caption(self) -> str:
        """What the figure shows, in reports: the second paragraph of its file's docstring."""
        return " ".join((sys.modules[self.make.__module__].__doc__ or "").partition("\n\n")[2].split())

    def draw(
        self,
        results: Results,
        problem: Problem | None = None,
        *,
        solvers: Sequence[str] = (),
        fold: int | None = None,
        metric: str | None = None,
        **options: object,
    ) -> Figure:
        """Draw the figure of some results of any problems; its file describes further options.

        By default it shows all solvers in the order of the study, the first fold with results, and the metric of the
        error. Only figures of several problems need no problem.

        Raises
        ------
        NoResultsError
            If the results have no data for the figure.
        ValueError
            For a solver, fold or metric without results, or a fold or metric that does not apply.
        """
        if problem is None and self.of_problem:
            raise ValueError("this figure is of one problem; name it")
        mine = results if problem is None else results.of(problem.name)
        for name, value in (("fold", fold), ("metric", metric)):
            if value is not None and name not in self.takes:
                raise ValueError(f"this figure takes no {name}; omit it")
        if metric is not None:
            metric = mine.named_metric(metric, mine.all_metrics if self.of_chosen else mine.metrics)
        if fold is not None and fold not in mine.folds:
            raise ValueError(f"fold {fold} has no finished cell; choose one of {', '.join(map(str, mine.folds))}")
        shown = mine.among(solvers)
        view = View(shown, problem, solvers, fold, shown.metric if metric is None else metric)
        with _in_style():
            return self.make(view, **options)


def _in_style() -> AbstractContextManager[None]:
    from moerank.figures.style import in_style  # loads matplotlib, which moerank plot --help does not need

    return in_style()
