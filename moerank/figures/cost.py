"""Cost: what the accuracy of each solver takes in training time."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from moerank.figures.study import column_figure, legend_above, of_problem, solver_style
from moerank.figures.style import in_style
from moerank.studies.comparison import Results
from moerank.studies.problem import Problem

__all__ = ["cost_figure"]


def cost_figure(results: Results, problem: Problem, metric: str | None = None) -> Figure:
    """Draw processor time of tuning and training on one fold against the test metric, means over folds and seeds."""
    solvers = of_problem(results, problem.name)
    metric = metric or next(iter(next(iter(solvers.values())).values()))[0].metrics[0]
    with in_style():
        figure = column_figure(2.1, list(solvers))
        axes = figure.subplots()
        for number, (solver, folds) in enumerate(solvers.items()):
            runs = [run for seeds in folds.values() for run in seeds]
            seconds = np.mean([sum(run.times["processor"][step] for step in ("tuning", "solver")) for run in runs])
            value = np.mean([np.mean([run.best.scores["test"][metric] for run in seeds]) for seeds in folds.values()])
            style = {**solver_style(number), "linestyle": "none"}
            axes.plot([max(seconds, 1e-3)], [value], label=solver, **style)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("Processor seconds of tuning and training")
        axes.set_ylabel(f"Test {metric}")
        legend_above(figure, axes)
    return figure
