"""Accuracy against number of features: all solvers of a study, and published results where they exist."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.figures.study import legend_above, mean_by_size, of_problem, solver_style
from moerank.figures.style import GREY, WIDTH, in_style
from moerank.studies.comparison import Results
from moerank.studies.problem import Problem

__all__ = ["accuracy_figure"]


def accuracy_figure(results: Results, problem: Problem, metric: str | None = None) -> Figure:
    """Draw the test metric of the best with at most k features, chosen by validation, as a mean over folds and seeds.

    A solver that selects nothing is a point at the number of features it uses. Published results with a number of
    features are stars.
    """
    solvers = of_problem(results, problem.name)
    metric = metric or next(iter(results.values())).metrics[0]
    with in_style():
        figure = Figure(figsize=(WIDTH, 2.4 + 0.13 * ((len(solvers) + 1) // 2)), layout="constrained")
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
            axes.plot(k, values, label=solver, markevery=max(1, len(k) // 8), **style)
        for entry in problem.published:
            if entry.features is not None and metric in entry.scores:
                place = (entry.features, entry.scores[metric])
                axes.plot(*place, marker="*", color=GREY, markersize=7, linestyle="none")
                axes.annotate(f"{entry.method}, published", place, (0, 4), textcoords="offset points", fontsize=6)
        axes.set_xlabel("Number of features, at most")
        axes.set_ylabel(f"Test {metric}")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        legend_above(figure, axes)
    return figure
