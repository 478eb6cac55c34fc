"""Cost: test metric against training time of each solver.

Processor seconds of tuning and training against the test value, as means over folds and seeds. A line joins the solvers
with names: no other solver is both faster and better than they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from moocore import is_nondominated

from moerank.figures import View
from moerank.figures.panels import Look, best_of_families, errors_noted, named, panels_figure
from moerank.figures.style import GREY, beyond, limits_of, put_log_scale

LEAST = 1e-3
"""Shortest time on the logarithmic scale, in processor seconds; shorter times are not reliable."""

NAME_SIZE = 6
MARKER = 3.5
GAP = 3.0
"""Points between a marker and its name."""


def cost_figure(view: View) -> Figure:
    """Draw the processor time of tuning and training against the test metric, as means over folds and seeds.

    A staircase joins the non-dominated solvers, which have names. If there are many solvers, the best of each family by
    validation has a colour, and the others are grey. A note names the solvers beyond `style.limits_of`.
    """
    by_solver, metric = view.results.by_solver(), view.metric
    means = view.results.means()
    points = {s: (max(LEAST, mean.mean("seconds")[0]), mean.mean(f"test {metric}")[0]) for s, mean in means.items()}
    unbeaten = is_nondominated(np.array(list(points.values())) * (1.0, -1.0))  # the first of equal points
    best = sorted(compress(points, unbeaten), key=points.__getitem__)
    values = {solver: np.array([value]) for solver, (_, value) in points.items()}
    limits = limits_of(values)

    def draw(look: Look) -> None:
        filled = {} if look.label in best else {"markerfacecolor": "white"}
        look.plot(*np.transpose([points[look.label]]), linestyle="none", markersize=MARKER, **filled)

    figure = panels_figure(
        draw,
        list(by_solver),
        best_of_families(view.results, list(by_solver)),
        finding=f"{len(best)} of {len(by_solver)} solvers reach the best test {metric} for their training time",
        height=2.2,
        labels=("Processor seconds of tuning and training", f"Test {metric}"),
        notes=[
            errors_noted(view.results, metric),
            named("Some values lie beyond the axis", beyond(values, limits)),
        ],
    )
    (axes,) = figure.axes
    axes.set_ylim(*limits)
    put_log_scale(axes, [time for time, _ in points.values()])
    stairs = np.array([points[solver] for solver in best])
    axes.plot(*stairs.T, drawstyle="steps-post", color=GREY, linewidth=0.7, zorder=0.5, label="_best")
    low, high = np.log10(axes.get_xlim())
    axes.set_xlim(left=10.0 ** (low - 0.2 * (high - low)))  # room for the names left of the fastest solvers
    _name(axes, best, points)
    return figure


def _name(axes: Axes, names: Sequence[str], points: Mapping[str, tuple[float, float]]) -> None:
    """Write each name above and to the left of its marker, where no other solver lies, and above the name before it."""
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]  # determines the positions of the axes
    least = -np.inf
    for solver in names:
        marker = float(axes.transData.transform(points[solver])[1]) * 72.0 / axes.figure.dpi
        least = max(marker + GAP, least + NAME_SIZE + 1.0)
        offset = (-1.0, least - marker)
        axes.annotate(solver, points[solver], offset, textcoords="offset points", ha="right", fontsize=NAME_SIZE)
