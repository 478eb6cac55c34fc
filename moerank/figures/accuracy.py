"""Accuracy against number of features: all solvers of a study, and published results where they exist."""

from __future__ import annotations

from itertools import cycle

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.figures.study import column_figure, legend_above, marks_at, mean_by_size, of_problem, solver_style
from moerank.figures.style import GREY, in_style
from moerank.studies.comparison import Results
from moerank.studies.problem import Problem

__all__ = ["accuracy_figure"]

PUBLISHED = ("*", "h", "d", "8", "H", (4, 1, 0), (6, 1, 0))
"""Markers of published results, which no solver has."""


def accuracy_figure(results: Results, problem: Problem, metric: str | None = None) -> Figure:
    """Draw the test metric of the best with at most k features, chosen by validation, as a mean over folds and seeds.

    A solver that selects nothing is a point at the number of features it uses. Published results with a number of
    features are grey, each with its own marker.
    """
    solvers = of_problem(results, problem.name)
    metric = metric or next(iter(next(iter(solvers.values())).values()))[0].metrics[0]
    published = [entry for entry in problem.published if entry.features is not None and metric in entry.scores]
    theirs = [f"{entry.method}, published" for entry in published]
    with in_style():
        figure = column_figure(2.3, [*solvers, *theirs])
        axes = figure.subplots()
        for number, (solver, folds) in enumerate(solvers.items()):
            style = solver_style(number)
            if all(len(run.front) == 1 for runs in folds.values() for run in runs):
                sizes = [len(run.best.features) for runs in folds.values() for run in runs]
                value = np.mean([np.mean([run.best.scores["test"][metric] for run in runs]) for runs in folds.values()])
                axes.plot([np.mean(sizes)], [value], label=solver, **{**style, "linestyle": "none"})
                continue
            values = mean_by_size(folds, "test", metric)
            k = np.arange(1, len(values) + 1)
            axes.plot(k, values, label=solver, markevery=marks_at(number, len(k)), **style)
        for entry, label, marker in zip(published, theirs, cycle(PUBLISHED), strict=False):
            place = np.array([[entry.features], [entry.scores[metric]]], float)
            axes.plot(*place, label=label, marker=marker, color=GREY, markersize=6, linestyle="none")
        axes.set_xlabel("Number of features, at most")
        axes.set_ylabel(f"Test {metric}")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        legend_above(figure, axes)
    return figure
