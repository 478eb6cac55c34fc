"""Hypervolume of each search over its evaluations."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.figures.figure import StudyFigure, View
from moerank.figures.notes import named
from moerank.figures.panels import Look, Panels, by_family
from moerank.figures.style import in_style
from moerank.studies.results import NoResultsError

__all__ = ["FIGURE"]


def hypervolume_figure(view: View) -> Figure:
    """Draw the hypervolume of each stage's front: the mean over folds and seeds, with a band of their quartiles.

    For the band the mean of each fold is moved to that of all folds, because some folds are easier for every solver.
    The lines end with the shortest run. A note names the solvers without a search. More than eight searches are divided
    into rows of panels.
    """
    found = view.results.by_solver()
    runs = {
        solver: [(fold, run.convergence) for fold, seeds in folds.items() for run in seeds if run.convergence]
        for solver, folds in found.items()
    }
    runs = {solver: histories for solver, histories in runs.items() if histories}
    if not runs:
        raise NoResultsError(f"no solver of the study of {view.where} is a search")
    names = dict.fromkeys(stage for histories in runs.values() for _, history in histories for stage in history)
    stages = {stage.replace("_", " ").capitalize(): stage for stage in names}

    def draw(axes: Axes, column: str, look: Look) -> None:
        stage = stages[column]
        drawn = [(fold, history[stage]) for fold, history in runs[look.label] if stage in history]
        if not drawn:
            if not look.faint:
                look.plot(axes, [], [], marker=None)  # its line in the legend
            return
        length = min(len(history.evaluations) for _, history in drawn)
        evaluations = np.mean([history.evaluations[:length] for _, history in drawn], axis=0)
        values = np.array([history.hypervolume[:length] for _, history in drawn])
        mean = values.mean(axis=0)
        if not look.faint:
            folds = np.array([fold for fold, _ in drawn])
            levels = np.array([values[folds == fold].mean(axis=0) for fold in folds])
            low, high = np.quantile(values - levels + mean, (0.25, 0.75), axis=0)
            axes.fill_between(evaluations, low, high, color=look.colour, alpha=0.15, linewidth=0)
        look.plot(axes, evaluations, mean, marker=None)

    with in_style():
        groups = by_family(list(runs))
        panels = Panels(
            groups,
            list(stages),
            height=0.95 if len(groups) == 1 else 1.1,
            xlabel="Evaluations",
            ylabel="Hypervolume of the front",
            same_x=False,
            notes=[named("No search", [solver for solver in found if solver not in runs])],
        )
        panels.draw(draw)
    return panels.figure


FIGURE = StudyFigure(
    hypervolume_figure,
    caption="Hypervolume of the front of each stage during the search: means over folds and seeds; the band is "
    "between the quartiles of the runs, without the differences between folds.",
    section="results",
    place=4,
)
