"""Critical differences: mean ranks of the solvers, with bars that join indistinguishable ones."""

from __future__ import annotations

from textwrap import fill

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.figures.figure import StudyFigure, View
from moerank.figures.notes import named
from moerank.figures.style import GREY, WIDTH, fit_height, in_style, put_note
from moerank.studies.comparison import solver_ranks

__all__ = ["FIGURE"]

NAME_SIZE = 6
LABEL_LENGTH = 36
"""Characters of a line of a label."""

ROW, LINE = 0.13, 0.1
"""Inches of a solver's row, and of each further line of its label."""

BAR = 0.055
"""Inches from one bar to the next."""


def ranks_figure(view: View) -> Figure:
    """Draw the mean ranks of at least three solvers over the folds of one or all problems, the best first.

    Bars beside the names join solvers whose ranks are closer than the critical difference.
    """
    ranks = solver_ranks(view.results, view.metric)
    test = ranks.test
    groups = _groups(test.ranks.tolist(), test.critical_difference)
    where = f"{test.n_blocks} folds of {view.problem.name}" if view.problem else f"{test.n_blocks} folds"
    caption = (
        f"Mean rank by {view.metric} on {where}, 1 is best; Friedman p = {test.p:.2g}. Bars join ranks closer than the "
        f"critical difference {test.critical_difference:.2f} (Nemenyi, 5%)."
    )
    unranked = named("Not ranked", [solver for solver in view.results.solvers if solver not in ranks.solvers])
    caption = " ".join([caption, unranked]).strip()
    with in_style():
        names = [f"{solver} ({rank:.2f})" for solver, rank in zip(ranks.solvers, test.ranks, strict=True)]
        rows = [fill(name, LABEL_LENGTH) for name in names]
        heights = np.array([ROW + LINE * row.count("\n") for row in rows])
        y = np.cumsum(heights) - heights / 2.0
        figure = Figure(figsize=(WIDTH, heights.sum()), layout="constrained")
        axes, bars = figure.subplots(1, 2, sharey=True, width_ratios=(1.0, 0.05 + BAR * len(groups)))
        axes.hlines(y, 0.4, test.ranks, color="0.85", linewidth=0.5, zorder=0)
        axes.plot(test.ranks, y, "o", color="black", markersize=3, label="mean rank", clip_on=False)
        axes.set_yticks(y, rows, fontsize=NAME_SIZE)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(heights.sum(), 0.0)
        axes.set_xlim(0.4, 1.02 * max(test.ranks) + 0.4)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
        axes.set_xlabel("Mean rank")
        for number, (first, last) in enumerate(groups):
            ends = y[first] - heights[first] / 4.0, y[last] + heights[last] / 4.0
            bars.plot([number, number], ends, color=GREY, linewidth=2.0, solid_capstyle="butt")
        bars.set_xlim(-0.7, max(len(groups), 1) - 0.3)
        bars.set_axis_off()
        put_note(figure, caption)
        fit_height(figure, axes, heights.sum())
    return figure


def _groups(ranks: list[float], critical: float) -> list[tuple[int, int]]:
    """Return the first and last of each maximal group of ranks that spans less than the critical difference."""
    groups: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(i for i in range(first, len(ranks)) if ranks[i] - ranks[first] < critical)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


FIGURE = StudyFigure(
    ranks_figure,
    caption="Mean ranks of the solvers over folds, 1 is best; bars join solvers without a detectable difference.",
    section="tests",
    takes=("metric",),
    of_chosen=True,
    of_problem=False,
)
