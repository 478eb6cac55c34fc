"""Hypervolume of each search over its evaluations.

The hypervolume of the front of each stage during the search, as a mean over folds and seeds, with a band between the
quartiles of the runs after the differences between folds are removed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from moerank.arrays import Matrix
from moerank.checks import check_choice
from moerank.figures import View
from moerank.figures.panels import Look, apart_from_first, boxed, named, panels_figure
from moerank.studies.result import Convergence
from moerank.studies.results import NoResultsError, Results

COUNTS = {"evaluations": "Evaluations", "trained": "Distinct individuals (rankers trained)"}
"""Labels of the x axis."""


def hypervolume_figure(view: View, *, count: str = "evaluations") -> Figure:
    """Draw the hypervolume of each stage's front: the mean over folds and seeds, with a band of their quartiles.

    For the band, the mean of each fold is moved to that of all folds, because some folds are easier for every solver.
    A line ends where the shortest run ends. The x axis counts the individuals that a search asked for ("evaluations")
    or those that it trained ("trained"). Searches with other objectives or another metric have panels of their own, and
    the first panels have the finding. A note names the solvers without a search. If there are many searches, only the
    first and those whose final front differs significantly from its own have colours.
    """
    check_choice(COUNTS, count=count)
    runs = Results([run for run in view.results if run.convergence])
    if not runs:
        raise NoResultsError(f"no solver of the study of {view.where} is a search")
    goals = runs.alike()
    curves: dict[str, dict[str, Matrix]] = {solver: {} for solver in runs.solvers}
    stages: dict[str, str] = {}
    for goal, alike in goals.items():
        for solver, folds in alike.by_solver().items():
            histories = [(fold, run.convergence) for fold, seeds in folds.items() for run in seeds]
            for stage in histories[0][1]:
                title = stage.replace("_", " ").capitalize() + f": {goal}" * (len(goals) > 1)
                stages[title] = stage
                curves[solver][title] = _curve([(fold, history[stage]) for fold, history in histories], count)
    first, *_ = goals.values()
    ends = {s: first.by_run(s, lambda run: [*run.convergence.values()][-1].hypervolume[-1]) for s in first.solvers}
    shown, finding = apart_from_first(ends, largest=True)

    def draw(look: Look) -> None:
        evaluations, low, mean, high = curves[look.label].get(look.column, np.empty((4, 0)))
        look.fill(evaluations, low, high)
        if len(mean) or not look.faint:  # a solver with a colour needs a line for the legend
            look.plot(evaluations, mean, marker=None)

    without = named("No search", [solver for solver in view.results.solvers if solver not in curves])
    return panels_figure(
        draw,
        list(curves),
        [*shown, *(solver for solver in curves if solver not in ends)],
        list(stages),
        finding=finding,
        height=1.1,
        labels=(COUNTS[count], "Hypervolume of the front"),
        same_x=False,
        notes=[*(boxed(alike[0], stages.values()) for alike in goals.values()), without],
    )


def _curve(histories: Sequence[tuple[int, Convergence]], count: str) -> Matrix:
    """Return the counts `count`, lower quartile, mean and upper quartile; `histories` are runs with their folds."""
    length = min(len(history.evaluations) for _, history in histories)
    steps = np.mean([getattr(history, count)[:length] for _, history in histories], axis=0)
    values = np.array([history.hypervolume[:length] for _, history in histories])
    folds = np.array([fold for fold, _ in histories])
    mean = values.mean(axis=0)
    levels = np.array([values[folds == fold].mean(axis=0) for fold in folds])
    low, high = np.quantile(values - levels + mean, (0.25, 0.75), axis=0)
    return np.array([steps, low, mean, high])
