"""Attainment: the front that half of the runs reach, and those that a quarter and three quarters reach."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from moerank.figures.study import NothingToDrawError, column_figure, legend_above, marks_at, of_problem, solver_style
from moerank.figures.style import in_style
from moerank.studies.comparison import Results, front_points
from moerank.studies.problem import Problem
from moerank.studies.statistics import attainment_surfaces

__all__ = ["attainment_figure"]

MANY = 4


def attainment_figure(results: Results, problem: Problem, *, fold: int | None = None) -> Figure:
    """Draw the median attainment surface of the objectives over the seeds, with the band between the quartiles.

    Only solvers with several seeds on the fold, by default the first, are drawn.

    Raises
    ------
    NothingToDrawError
        If there is no such solver.
    """
    found = of_problem(results, problem.name)
    fold = min(min(folds) for folds in found.values()) if fold is None else fold
    runs = {solver: folds[fold] for solver, folds in found.items() if len(folds.get(fold, ())) > 1}
    if not runs:
        raise NothingToDrawError(f"no solver ran with several seeds on fold {fold} of {problem.name}")
    metric = next(iter(runs.values()))[0].metrics[0]
    labels = [f"{solver} ({len(seeds)} seeds)" for solver, seeds in runs.items()]
    with in_style():
        figure = column_figure(2.3, labels)
        axes = figure.subplots()
        largest = max(len(member.features) for seeds in runs.values() for run in seeds for member in run.front)
        k = np.arange(1, largest + 1)
        shade = 0.2 if len(runs) <= MANY else 0.07  # many bands lie over each other
        for number, (solver, seeds) in enumerate(runs.items()):
            style = solver_style(list(found).index(solver))
            surfaces = attainment_surfaces([front_points(run) for run in seeds])
            quarter, median, three_quarters = (_staircase(surface, k) for surface in surfaces)
            axes.fill_between(k, quarter, three_quarters, step="post", color=style["color"], alpha=shade, linewidth=0)
            axes.step(k, median, where="post", label=labels[number], markevery=marks_at(number, largest), **style)
        axes.set_xlabel("Number of features")
        axes.set_ylabel(f"1 − {metric}, training")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        legend_above(figure, axes)
    return figure


def _staircase(surface: NDArray[np.float64], k: NDArray[np.int64]) -> NDArray[np.float64]:
    """Least second objective attained with at most k of the first; NaN where nothing is."""
    steps = np.searchsorted(surface[:, 0], k, side="right")
    return np.where(steps > 0, np.minimum.accumulate(surface[:, 1])[steps - 1], np.nan)
