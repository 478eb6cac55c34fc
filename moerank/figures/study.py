"""What the figures of a study share: which results, how a solver is drawn, what it offers with at most k features."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from moerank.studies.comparison import Results
from moerank.studies.result import RunResult

__all__ = ["best_by_size", "legend_above", "legend_height", "mean_by_size", "of_problem", "solver_style"]

Array = NDArray[np.float64]

# Okabe and Ito (2008) without yellow, which is lost on white; with markers and dashes every solver differs in grey too.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
TWO_COLUMNS = 22
"""Longest label, in characters, of a legend in two columns."""

DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def of_problem(results: Results, problem: str) -> dict[str, dict[int, list[RunResult]]]:
    """Return the results of a problem by solver and fold, one for each seed.

    Raises
    ------
    ValueError
        If there is none.
    """
    found: dict[str, dict[int, list[RunResult]]] = {}
    for cell, result in results.items():
        if cell.problem.name == problem:
            found.setdefault(cell.solver.label, {}).setdefault(cell.fold, []).append(result)
    if not found:
        raise ValueError(f"there is no finished cell of {problem} to draw")
    return found


def solver_style(number: int) -> dict[str, Any]:
    """Return colour, marker and dashes of the solver with this number among those of the problem; 385 differ."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def best_by_size(result: RunResult, part: str, metric: str) -> Array:
    """Return the metric of the best that a solver offers with at most 1, 2, … features, shape (n_features,).

    The best is the one with the highest validation value, ties to fewer features: that is how it would be chosen.
    NaN where it offers nothing so small.
    """
    sizes = np.array([len(member.features) for member in result.front])
    quality = np.array([member.scores["validation"][result.metrics[0]] for member in result.front])
    values = np.array([member.scores[part][metric] for member in result.front])
    order = np.lexsort((sizes, -quality))  # the best first
    small = sizes[order] <= np.arange(1, len(result.feature_names) + 1)[:, None]
    return np.where(small.any(axis=1), values[order][small.argmax(axis=1)], np.nan)


def mean_by_size(folds: dict[int, list[RunResult]], part: str, metric: str) -> Array:
    """Return `best_by_size` averaged over seeds, then folds; NaN where any run offers nothing so small."""
    return np.asarray(
        np.mean([np.mean([best_by_size(run, part, metric) for run in runs], axis=0) for runs in folds.values()], axis=0)
    )


def legend_above(figure: Figure, axes: Axes) -> None:
    """Put the legend of `axes` above all panels, where it hides nothing, in as many columns as names leave room for."""
    handles, labels = axes.get_legend_handles_labels()
    columns = 2 if len(labels) > 1 and max(map(len, labels)) <= TWO_COLUMNS else 1
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, handlelength=3.0, columnspacing=1.0)


def legend_height(labels: list[str]) -> float:
    """Return the inches that `legend_above` takes for these labels."""
    columns = 2 if len(labels) > 1 and max(map(len, labels)) <= TWO_COLUMNS else 1
    return 0.15 * -(-len(labels) // columns) + 0.1
