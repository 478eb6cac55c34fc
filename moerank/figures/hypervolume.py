"""Hypervolume over evaluations: how fast each search gets how far."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.figures.study import NothingToDrawError, column_figure, legend_above, of_problem, solver_style
from moerank.figures.style import in_style
from moerank.studies.comparison import Results
from moerank.studies.problem import Problem

__all__ = ["hypervolume_figure"]


def hypervolume_figure(results: Results, problem: Problem) -> Figure:
    """Draw the hypervolume of each stage's front: mean over folds and seeds, and the quartiles as a band.

    Raises
    ------
    NothingToDrawError
        If no solver of the study is a search.
    """
    found = of_problem(results, problem.name)
    runs = {
        solver: [run.convergence for seeds in folds.values() for run in seeds if run.convergence]
        for solver, folds in found.items()
    }
    runs = {solver: histories for solver, histories in runs.items() if histories}
    if not runs:
        raise NothingToDrawError(f"no solver of the study of {problem.name} is a search")
    stages = list(dict.fromkeys(stage for histories in runs.values() for stage in histories[0]))
    with in_style():
        figure = column_figure(1.2 * len(stages) + 0.3, list(runs))
        panels = figure.subplots(len(stages), squeeze=False)[:, 0]
        for axes, stage in zip(panels, stages, strict=True):
            for solver, histories in runs.items():
                drawn = [history[stage] for history in histories if stage in history]
                style = {**solver_style(list(found).index(solver)), "marker": None}
                if not drawn:
                    axes.plot([], [], label=solver, **style)  # its line in the legend
                    continue
                length = min(len(history["evaluations"]) for history in drawn)
                evaluations = np.mean([history["evaluations"][:length] for history in drawn], axis=0)
                values = np.array([history["hypervolume"][:length] for history in drawn])
                low, high = np.quantile(values, (0.25, 0.75), axis=0)
                axes.fill_between(evaluations, low, high, color=style["color"], alpha=0.2, linewidth=0)
                axes.plot(evaluations, values.mean(axis=0), label=solver, **style)
            axes.set_title(stage.replace("_", " ").capitalize(), loc="left")
            axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
            axes.yaxis.set_major_locator(MaxNLocator(nbins=3))
        panels[-1].set_xlabel("Evaluations")
        figure.supylabel("Hypervolume of the front", fontsize=8)
        legend_above(figure, panels[0])
    return figure
