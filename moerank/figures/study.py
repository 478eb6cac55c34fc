"""What the figures of a study share: which results, how a solver is drawn, what it offers with at most k features."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath
from numpy.typing import NDArray

from moerank.figures.style import WIDTH
from moerank.studies.comparison import Results
from moerank.studies.result import RunResult

__all__ = [
    "NothingToDrawError",
    "best_by_size",
    "column_figure",
    "folded",
    "height_of_rows",
    "legend_above",
    "marks_at",
    "mean_by_size",
    "of_problem",
    "solver_style",
    "width_of",
]

Array = NDArray[np.float64]

# Okabe and Ito (2008) without yellow, which is lost on white; with markers and dashes every solver differs in grey too.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))

LEGEND_SIZE = 6
LEGEND_LINE = 0.12
"""Inches from one line of a legend to the next."""

HANDLE = 0.28
"""Inches of line beside each name."""


class NothingToDrawError(ValueError):
    """A study has nothing of the kind that a figure shows."""


def of_problem(results: Results, problem: str) -> dict[str, dict[int, list[RunResult]]]:
    """Return the results of a problem by solver and fold, one for each seed.

    Raises
    ------
    NothingToDrawError
        If there is none.
    """
    found: dict[str, dict[int, list[RunResult]]] = {}
    for cell, result in results.items():
        if cell.problem.name == problem:
            found.setdefault(cell.solver.label, {}).setdefault(cell.fold, []).append(result)
    if not found:
        raise NothingToDrawError(f"there is no finished cell of {problem} to draw")
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


def marks_at(number: int, n_points: int) -> tuple[int, int]:
    """Return which points of a line have a marker: about eight, not those of the next solver's line."""
    step = max(1, n_points // 8)
    return number % step, step


def width_of(text: str, size: float) -> float:
    """Return the inches that a line of text takes in a font of this size."""
    return float(TextPath((0, 0), text, size=size).get_extents().width) / 72.0


def folded(label: str, size: float, width: float) -> str:
    """Break a label into lines that take at most `width` inches."""
    full = width_of(label, size)
    if full <= width:
        return label
    n_characters = int(len(label) * width / full) + 3
    while width_of(max(wrap(label, n_characters), key=len), size) > width:
        n_characters -= 1
    return "\n".join(wrap(label, n_characters))


def height_of_rows(labels: Sequence[str]) -> float:
    """Return the inches of rows with these labels, in lines, so that they do not touch."""
    return len(labels) * (0.15 + 0.1 * max(label.count("\n") for label in labels))


def column_figure(height: float, legend: Sequence[str] = ()) -> Figure:
    """Return an empty figure a column wide, `height` inches high and as much more as `legend_above` takes."""
    columns, labels = _legend(legend)
    lines = sum(1 + label.count("\n") for label in labels)
    return Figure(figsize=(WIDTH, height + LEGEND_LINE * -(-lines // columns)), layout="constrained")


def legend_above(figure: Figure, axes: Axes) -> None:
    """Put the legend of `axes` above all panels, where it hides nothing, in as many columns as names leave room for."""
    handles, labels = axes.get_legend_handles_labels()
    columns, labels = _legend(labels)
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=columns,
        fontsize=LEGEND_SIZE,
        handlelength=HANDLE * 72.0 / LEGEND_SIZE,
        handletextpad=0.6,
        labelspacing=0.3,
        columnspacing=0.8,
        borderaxespad=0.2,
    )


def _legend(labels: Sequence[str]) -> tuple[int, list[str]]:
    """Return the number of columns of a legend, and its labels, in lines where they are longer than a column."""
    widest = max((width_of(label, LEGEND_SIZE) for label in labels), default=0.0)
    columns = int((WIDTH - 0.1) / (widest + HANDLE + 0.14))
    return max(1, min(columns, len(labels), 3)), [folded(label, LEGEND_SIZE, WIDTH - HANDLE - 0.3) for label in labels]
