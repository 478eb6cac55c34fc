"""Objectives: members of a front in each pair of more than two objectives."""

from __future__ import annotations

from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.arrays import Matrix
from moerank.figures.figure import RunFigure
from moerank.figures.notes import non_dominated, title_of
from moerank.figures.style import CHOSEN, GREY, WIDTH, Style, in_style, put_note
from moerank.studies.result import Result
from moerank.studies.results import front_points

__all__ = ["FIGURE"]

ROW = 1.25
"""Inches of a row of panels."""

NOTE = "Training queries; every objective is minimised."


def objectives_figure(result: Result) -> Figure:
    """Draw a panel for each pair of objectives, with members as points.

    Members that are non-dominated in the pair are filled and joined by a staircase, the others are open. The chosen
    member is a diamond. A single objective is a ValueError.
    """
    names = result.objectives
    if len(names) < 2:
        raise ValueError(f"{', '.join(names)} is a single objective, which makes no pair to draw")
    points = front_points(result)
    titles = [title_of(name, result.metrics[0]) for name in names]
    n = len(names) - 1
    with in_style():
        corner = n > 1  # panels are below the diagonal, and the legend is above it
        height = ROW * n + 0.25 + (0.0 if corner else 0.3) + 0.15
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        grid = figure.subplots(n, n, squeeze=False, sharex="col", sharey="row")
        for row in range(n):
            for column in range(n):
                axes = grid[row, column]
                if column > row:
                    axes.set_axis_off()
                    continue
                _members(axes, points[:, [column, row + 1]], result.chosen)
                _ticks(axes, whole=[names[column] == "features", names[row + 1] == "features"])
                if row == n - 1:
                    axes.set_xlabel(fill(titles[column], 50 // n), fontsize=7)
                if column == 0:
                    axes.set_ylabel(fill(titles[row + 1], 20), fontsize=7)
        handles, labels = grid[0, 0].get_legend_handles_labels()
        if corner:
            grid[0, -1].legend(handles, labels, loc="upper right", borderaxespad=0.0).set_in_layout(False)
        else:
            figure.legend(handles, [label.replace("\n", " ") for label in labels], loc="outside upper center", ncols=3)
        put_note(figure, NOTE)
    return figure


def _members(axes: Axes, points: Matrix, chosen: int) -> None:
    """Draw the members in a pair of objectives."""
    axes.margins(0.1)
    best = non_dominated(points)
    rest = np.setdiff1d(np.arange(len(points)), best)
    open_: Style = {"linestyle": "none", "markerfacecolor": "white", "markeredgecolor": GREY}
    filled: Style = {"drawstyle": "steps-post", "color": "black", "linewidth": 0.8}
    diamond: Style = {"linestyle": "none", "markersize": 6, "color": CHOSEN, "markeredgecolor": "black"}
    axes.plot(*points[rest].T, marker="o", label="member", **open_)
    axes.plot(*points[best].T, marker="o", label="non-dominated\nin this pair", **filled)
    axes.plot(*points[[chosen]].T, marker="D", label="chosen", clip_on=False, **diamond)


def _ticks(axes: Axes, *, whole: list[bool]) -> None:
    for axis, integer in zip((axes.xaxis, axes.yaxis), whole, strict=True):
        axis.set_major_locator(MaxNLocator(nbins=4, integer=integer, steps=[1, 2, 5, 10]))


FIGURE = RunFigure(
    objectives_figure, shows=lambda result: len(result.objectives) > 1 and bool(result.further_objectives)
)
