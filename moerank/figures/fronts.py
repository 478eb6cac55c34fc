"""Fronts of several solvers on one fold, the same members on training, validation and test queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.analysis.by_solver import NothingToDrawError, first_fold, first_metric, named, of_problem
from moerank.analysis.comparison import Results
from moerank.figures.limits import beyond, limits_of
from moerank.figures.panels import FEW_LINES, Look, Panels, by_family
from moerank.figures.style import in_style
from moerank.runs.problem import Problem
from moerank.runs.result import PARTS

__all__ = ["fronts_figure"]

TITLES = {"train": "Training", "validation": "Validation", "test": "Test"}


def fronts_figure(
    results: Results, problem: Problem, *, fold: int | None = None, solvers: Sequence[str] = ()
) -> Figure:
    """Draw what each solver offers on one fold, with its first seed: a panel for each part of the data.

    The limits of each part are those of `limits.limits_of`; the note below the figure says what is beyond.

    Parameters
    ----------
    results : mapping of Cell to RunResult
    problem : Problem
    fold : int, optional
        By default the first there is.
    solvers : sequence of str
        Labels; by default all. Those that offer a single size there, or have not run, have no front; the note below
        the figure names them. More than five are divided by family into rows of panels.

    Raises
    ------
    NothingToDrawError
        If no solver is left.
    """
    found = of_problem(results, problem.name, solvers)
    fold = first_fold(found) if fold is None else fold
    first = {solver: folds[fold][0] for solver, folds in found.items() if fold in folds}
    runs = {solver: run for solver, run in first.items() if len(run.front) > 1}
    if not runs:
        raise NothingToDrawError(f"no solver offers more than one size on fold {fold} of {problem.name}")
    metric = first_metric(found)
    values = {
        part: {solver: np.array([member.scores[part][metric] for member in run.front]) for solver, run in runs.items()}
        for part in PARTS
    }
    limits = {part: limits_of(of) for part, of in values.items()}
    parts = {TITLES[part]: part for part in PARTS}

    def draw(axes: Axes, column: str, look: Look) -> None:
        sizes = [len(member.features) for member in runs[look.label].front]
        look.plot(axes, sizes, values[parts[column]][look.label])
        axes.set_ylim(*limits[parts[column]])

    lacking = named("Not run", [solver for solver in found if solver not in first])
    sizeless = named("No front, for they offer one size", [solver for solver in first if solver not in runs])
    outside = dict.fromkeys(solver for part in PARTS for solver in beyond(values[part], limits[part]))
    cut = named("Some values lie beyond the axis", outside)
    with in_style():
        groups = by_family(list(runs), FEW_LINES)
        panels = Panels(
            groups,
            list(parts),
            height=1.1 if len(groups) == 1 else 0.76,
            xlabel="Number of features",
            ylabel=f"{metric}, fold {fold} (higher is better)",
            notes=[lacking, sizeless, cut],
        )
        panels.draw(draw)
    return panels.figure
