"""Hypervolume of each search over its evaluations.

The hypervolume of the front of each stage during the search, as a mean over folds and seeds, with a band between the
quartiles of the runs after the differences between folds are removed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from moerank.arrays import Matrix
from moerank.figures import View
from moerank.figures.panels import Look, apart_from_first, named, panels_figure
from moerank.studies.result import Convergence, Result
from moerank.studies.results import NoResultsError


def hypervolume_figure(view: View) -> Figure:
    """Draw the hypervolume of each stage's front: the mean over folds and seeds, with a band of their quartiles.

    For the band, the mean of each fold is moved to that of all folds, because some folds are easier for every solver.
    A line ends where the shortest run ends. A note names the solvers without a search. If there are many searches, only
    the first and those whose final front differs significantly from its own have colours.
    """
    by_solver = view.results.by_solver()
    runs = {
        solver: [(fold, run.convergence) for fold, seeds in folds.items() for run in seeds if run.convergence]
        for solver, folds in by_solver.items()
    }
    runs = {solver: histories for solver, histories in runs.items() if histories}
    if not runs:
        raise NoResultsError(f"no solver of the study of {view.where} is a search")
    names = dict.fromkeys(stage for histories in runs.values() for _, history in histories for stage in history)
    stages = {stage.replace("_", " ").capitalize(): stage for stage in names}

    curves = {
        solver: {stage: _curve([(fold, history[stage]) for fold, history in histories]) for stage in histories[0][1]}
        for solver, histories in runs.items()
    }
    ends = {solver: view.results.by_run(solver, _last_hypervolume) for solver in runs}
    shown, finding = apart_from_first(ends, largest=True)

    def draw(look: Look) -> None:
        evaluations, low, mean, high = curves[look.label].get(stages[look.column], np.empty((4, 0)))
        look.fill(evaluations, low, high)
        if len(mean) or not look.faint:  # a solver with a colour needs a line for the legend
            look.plot(evaluations, mean, marker=None)

    return panels_figure(
        draw,
        list(runs),
        shown,
        list(stages),
        finding=finding,
        height=1.1,
        labels=("Evaluations", "Hypervolume of the front"),
        same_x=False,
        notes=[named("No search", [solver for solver in by_solver if solver not in runs])],
    )


def _last_hypervolume(run: Result) -> float:
    """Return the final hypervolume of the last stage; NaN if there was no search."""
    return list(run.convergence.values())[-1].hypervolume[-1] if run.convergence else np.nan


def _curve(histories: Sequence[tuple[int, Convergence]]) -> Matrix:
    """Return evaluations, lower quartile, mean and upper quartile; `histories` are runs with their folds."""
    length = min(len(history.evaluations) for _, history in histories)
    evaluations = np.mean([history.evaluations[:length] for _, history in histories], axis=0)
    values = np.array([history.hypervolume[:length] for _, history in histories])
    folds = np.array([fold for fold, _ in histories])
    mean = values.mean(axis=0)
    levels = np.array([values[folds == fold].mean(axis=0) for fold in folds])
    low, high = np.quantile(values - levels + mean, (0.25, 0.75), axis=0)
    return np.array([evaluations, low, mean, high])
