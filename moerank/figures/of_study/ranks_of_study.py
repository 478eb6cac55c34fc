"""Critical differences: mean ranks of the solvers, with bars that join indistinguishable ones.

Mean ranks of the solvers over folds; bars join solvers that do not differ significantly.
"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from moerank.arrays import Vector
from moerank.figures.figure import StudyFigure, View
from moerank.figures.panels import named, rows_figure
from moerank.figures.style import GREY, WIDTH, Style, finished
from moerank.studies.comparison import solver_ranks

BAR = 0.055
"""Width of a bar as a share of the axes."""

FEW_ROWS = 12
"""Largest number of solvers with a row each although one bar joins all of them."""


def ranks_figure(view: View) -> Figure:
    """Draw the mean ranks of at least three solvers over the folds of one or all problems, the best first.

    Bars beside the names join solvers whose ranks are closer than the critical difference. If one bar joins many
    solvers, all of them are on one line, with the names of the first and the last one.
    """
    solvers, test = solver_ranks(view.results, view.metric)
    n = len(solvers)
    groups = _groups(test.ranks.tolist(), test.critical_difference)
    alike = groups == [(0, n - 1)]
    where = f"{test.n_blocks} folds of {view.problem.name}" if view.problem else f"{test.n_blocks} folds"
    spread = float(test.ranks[-1] - test.ranks[0])
    less = "" if alike else f"smaller than {test.critical_difference:.2f} mean ranks "
    unranked = named("Not ranked", [solver for solver in view.results.solvers if solver not in solvers])
    note = (
        f"Ranks by {view.metric}; they span {spread:.2f}, the critical difference is {test.critical_difference:.2f} "
        f"(Nemenyi, 5 %); Friedman p = {test.p:.2g}. {unranked}"
    )
    figure, axes, height = _line(solvers, test.ranks) if alike and n > FEW_ROWS else _rows(solvers, test.ranks, groups)
    axes.set(xlim=(0.4, 1.02 * max(test.ranks) + 0.4), xlabel="Mean rank (1 is best)")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
    finding = f"No difference {less}between {n} solvers is detected on {where}"
    return finished(figure, axes, height, finding, note.strip())


def _rows(solvers: list[str], values: Vector, groups: list[tuple[int, int]]) -> tuple[Figure, Axes, float]:
    """Draw a row for each solver, and a bar for each group; return the height of the axes in inches, too."""
    names = [f"{solver} ({rank:.2f})" for solver, rank in zip(solvers, values, strict=True)]
    figure, axes, bars, y = rows_figure(names, 0.05 + BAR * len(groups))
    axes.hlines(y, 0.4, values, color="0.85", linewidth=0.5, zorder=0)
    axes.plot(values, y, "o", color="black", markersize=3, label="mean rank", clip_on=False)
    for number, (first, last) in enumerate(groups):
        ends = y[first] - 0.03, y[last] + 0.03
        bars.plot([number, number], ends, color=GREY, linewidth=2.0, solid_capstyle="butt")
    bars.set_xlim(-0.7, max(len(groups), 1) - 0.3)
    return figure, axes, axes.get_ylim()[0]


def _line(solvers: list[str], values: Vector) -> tuple[Figure, Axes, float]:
    """Draw all mean ranks on one line above the bar that joins them."""
    figure = Figure(figsize=(WIDTH, 1.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(values, [0.0] * len(values), "o", color="black", markersize=3, alpha=0.5, label="mean rank")
    axes.plot([values[0], values[-1]], [-0.6, -0.6], color=GREY, linewidth=2.0, solid_capstyle="butt")
    for end, side, height in ((0, "left", 0.5), (-1, "right", 1.25)):
        name: Style = {"fontsize": 6, "ha": side, "va": "bottom"}
        axes.text(values[end], height, f"{solvers[end]} ({values[end]:.2f})", **name)
    axes.set(ylim=(-1.2, 2.0), yticks=[])
    axes.spines["left"].set_visible(False)
    return figure, axes, 0.6


def _groups(ranks: list[float], critical: float) -> list[tuple[int, int]]:
    """Return the first and last of each maximal group of ranks that spans less than the critical difference."""
    groups: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(i for i in range(first, len(ranks)) if ranks[i] - ranks[first] < critical)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


FIGURE = StudyFigure(ranks_figure, "tests", takes=("metric",), of_chosen=True, of_problem=False)
