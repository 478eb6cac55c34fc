"""Ablations: MOFSRank's front beside those without one of its parts."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.figures.study import NothingToDrawError, column_figure, legend_above, marks_at, of_problem, solver_style
from moerank.figures.style import in_style
from moerank.studies.comparison import Results
from moerank.studies.problem import Problem
from moerank.studies.result import RunResult
from moerank.studies.study import ABLATIONS

__all__ = ["ablation_figure"]

PARTS = ("train", "test")


def ablation_figure(results: Results, problem: Problem) -> Figure:
    """Draw the least error with at most k features that the front holds, as a mean over folds and seeds.

    The members are the same on training and test queries: those that are best in training.

    Raises
    ------
    NothingToDrawError
        If MOFSRank or all of its ablations are missing.
    """
    found = of_problem(results, problem.name)
    names = {"mofsrank": "all three stages"} | {
        name: name.removeprefix("mofsrank-").replace("no-", "without ").replace("-", " ") for name in ABLATIONS
    }
    shown = {title: found[name] for name, title in names.items() if name in found}
    if "mofsrank" not in found or len(shown) < 2:
        raise NothingToDrawError(
            f"the study of {problem.name} has no ablations; add them with moerank study … --ablate"
        )
    metric = next(iter(shown["all three stages"].values()))[0].metrics[0]
    with in_style():
        figure = column_figure(3.3, list(shown))
        panels = figure.subplots(len(PARTS), sharex=True)
        for axes, part in zip(panels, PARTS, strict=True):
            for number, (title, folds) in enumerate(shown.items()):
                runs = [_error_by_size(run, part, metric) for runs in folds.values() for run in runs]
                values = np.mean(runs, axis=0)
                k = np.arange(1, len(values) + 1)
                axes.plot(k, values, label=title, markevery=marks_at(number, len(k)), **solver_style(number))
            axes.set_title({"train": "Training", "test": "Test"}[part], loc="left")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
            axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
        panels[-1].set_xlabel("Number of features, at most")
        figure.supylabel(f"1 − {metric} (lower is better)", fontsize=8)
        legend_above(figure, panels[0])
    return figure


def _error_by_size(run: RunResult, part: str, metric: str) -> np.ndarray:
    """1 − metric of the member with at most k features that has the least training error, shape (n_features,)."""
    sizes = np.array([len(member.features) for member in run.front])
    train, values = (np.array([1.0 - m.scores[p][metric] for m in run.front]) for p in ("train", part))
    k = np.arange(1, len(run.feature_names) + 1)[:, None]
    best = np.where(sizes <= k, train, np.inf).argmin(axis=1)
    return np.where((sizes <= k).any(axis=1), values[best], np.nan)
