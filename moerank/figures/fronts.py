"""Fronts of several solvers on one fold, the same members on training, validation and test queries."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.figures.study import NothingToDrawError, column_figure, legend_above, marks_at, of_problem, solver_style
from moerank.figures.style import in_style
from moerank.studies.comparison import Results
from moerank.studies.problem import Problem
from moerank.studies.result import PARTS

__all__ = ["fronts_figure"]


def fronts_figure(
    results: Results, problem: Problem, *, fold: int | None = None, solvers: Sequence[str] = ()
) -> Figure:
    """Draw what each solver offers on one fold, with its first seed: a panel for each part of the data.

    Parameters
    ----------
    results : mapping of Cell to RunResult
    problem : Problem
    fold : int, optional
        By default the first there is.
    solvers : sequence of str
        Labels; by default all that offer more than one size.
    """
    found = of_problem(results, problem.name)
    fold = min(min(folds) for folds in found.values()) if fold is None else fold
    runs = {solver: folds[fold][0] for solver, folds in found.items() if fold in folds}
    runs = {solver: run for solver, run in runs.items() if (solver in solvers if solvers else len(run.front) > 1)}
    if not runs:
        raise NothingToDrawError(f"no solver offers more than one size on fold {fold} of {problem.name}")
    metric = next(iter(runs.values())).metrics[0]
    with in_style():
        figure = column_figure(4.2, list(runs))
        panels = figure.subplots(len(PARTS), sharex=True)
        for axes, part in zip(panels, PARTS, strict=True):
            for label, run in runs.items():
                sizes = [len(member.features) for member in run.front]
                values = [member.scores[part][metric] for member in run.front]
                number = list(found).index(label)
                axes.plot(sizes, values, label=label, markevery=marks_at(number, len(sizes)), **solver_style(number))
            axes.set_title({"train": "Training"}.get(part, part.capitalize()), loc="left")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
            axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
        panels[-1].set_xlabel("Number of features")
        figure.supylabel(f"{metric}, fold {fold} (higher is better)", fontsize=8)
        legend_above(figure, panels[0])
    return figure
