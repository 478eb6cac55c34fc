"""Cost: test metric against training time of each solver.

Processor seconds of tuning and training against the test value, means over folds and seeds; solvers that no other one
beats in both are filled and joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from moocore import is_nondominated

from moerank.figures.figure import StudyFigure, View
from moerank.figures.panels import MOST_LINES, Look, by_family, errors_noted, panels_figure
from moerank.figures.style import GREY, far_below, put_log_scale

LEAST = 1e-3
"""Least processor seconds on the logarithmic scale; shorter times are not reliable."""

NAME_SIZE = 6
MARKER = 3.5
GAP = 3.0
"""Points between a marker and its name."""


def cost_figure(view: View) -> Figure:
    """Draw the processor time of tuning and training against the test metric, means over folds and seeds.

    A staircase joins the non-dominated solvers, whose markers are filled. Up to six solvers have a marker each. More
    have that of their family, and only those on the staircase have a name. Solvers `style.far_below` the others are at
    the lower edge, with their names and an arrow; a note has their values.
    """
    by_solver, metric = view.results.by_solver(), view.metric
    means = view.results.means()
    points = {s: (max(LEAST, mean.mean("seconds")[0]), mean.mean(f"test {metric}")[0]) for s, mean in means.items()}
    unbeaten = is_nondominated(np.array(list(points.values())) * (1.0, -1.0))  # of equal ones the first
    best = sorted(compress(points, unbeaten), key=points.__getitem__)
    poor = far_below({solver: value for solver, (_, value) in points.items()})
    values = [value for solver, (_, value) in points.items() if solver not in poor]
    edge = min(values) - 0.1 * (max(values) - min(values))
    points |= {solver: (points[solver][0], edge) for solver in poor}
    below = [f"{solver} {value:.3f}" for solver, value in poor.items()]
    many = len(by_solver) > MOST_LINES
    members = by_family(list(by_solver))
    marked = list(members) if many else list(by_solver)

    def draw(look: Look) -> None:
        mine = members[look.label] if many else [look.label]
        for filled in (True, False):
            x, y = np.array([points[solver] for solver in mine if (solver in best) == filled]).reshape(-1, 2).T
            changes = {} if filled else {"markerfacecolor": "white", "label": "_open"}
            look.plot(x, y, linestyle="none", markersize=MARKER, markevery=1, **changes)

    figure = panels_figure(
        draw,
        marked,
        marked,
        finding=f"{len(best)} of {len(by_solver)} solvers are unbeaten in both test {metric} and training time",
        height=2.4 if many else 2.0,
        labels=("Processor seconds of tuning and training", f"Test {metric}"),
        notes=[errors_noted(view.results, metric), f"↓ lies below the axis: {', '.join(below)}." if below else ""],
    )
    (axes,) = figure.axes
    put_log_scale(axes, [time for time, _ in points.values()])
    stairs = np.array([points[solver] for solver in best])
    axes.plot(*stairs.T, drawstyle="steps-post", color=GREY, linewidth=0.7, zorder=0.5, label="_best")
    low, high = np.log10(axes.get_xlim())
    axes.set_xlim(left=10.0 ** (low - 0.2 * (high - low)))  # for the names on the left of the fastest
    if many:
        _name(axes, best, points)
        for solver in poor:
            text = f"{solver} ↓"
            axes.annotate(text, points[solver], (-GAP, 0), textcoords="offset points", ha="right", fontsize=NAME_SIZE)
    return figure


def _name(axes: Axes, names: Sequence[str], points: Mapping[str, tuple[float, float]]) -> None:
    """Write names above and left of their markers, where nothing beats them, each above the one before it."""
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]  # determines the positions of the axes
    least = -np.inf
    for solver in names:
        marker = float(axes.transData.transform(points[solver])[1]) * 72.0 / axes.figure.dpi
        least = max(marker + GAP, least + NAME_SIZE + 1.0)
        offset = (-1.0, least - marker)
        axes.annotate(solver, points[solver], offset, textcoords="offset points", ha="right", fontsize=NAME_SIZE)


FIGURE = StudyFigure(cost_figure, "results", order=5, takes=("metric",), of_chosen=True)
