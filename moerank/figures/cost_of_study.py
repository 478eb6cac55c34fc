"""Cost: test metric against training time of each solver.

Processor seconds of tuning and training against the test value, as means over folds and seeds.
"""

import numpy as np
from matplotlib.figure import Figure

from moerank.figures import View
from moerank.figures.panels import Look, best_of_families, errors_noted, named, panels_figure
from moerank.figures.style import beyond, limits_of, put_log_scale

# Shortest time on the logarithmic scale, in processor seconds; shorter times are not reliable.
LEAST = 1e-3


def cost_figure(view: View) -> Figure:
    """Draw the processor time of tuning and training against the test metric, as means over folds and seeds.

    If there are many solvers, the best of each family by validation has a colour, and the others are grey. Notes give
    the standard errors over folds, and name the solvers beyond `style.limits_of`.
    """
    by_solver, metric = view.results.by_solver(), view.metric
    means = view.results.means()[0][["seconds", f"test {metric}"]].T
    points = {solver: (max(LEAST, seconds), value) for solver, (seconds, value) in means.items()}
    values = {solver: np.array([value]) for solver, (_, value) in points.items()}
    limits = limits_of(values)

    def draw(look: Look) -> None:
        look.plot(*np.transpose([points[look.label]]), linestyle="none")

    figure = panels_figure(
        draw,
        list(by_solver),
        best_of_families(view.results, list(by_solver)),
        finding=f"Test {metric} and training time of {len(by_solver)} solvers",
        height=2.2,
        labels=("Processor seconds of tuning and training", f"Test {metric}"),
        notes=[
            errors_noted(view.results, metric),
            named("Some values lie beyond the axis", beyond(values, limits)),
        ],
    )
    (axes,) = figure.axes
    axes.set_ylim(*limits)
    put_log_scale(axes, [point[0] for point in points.values()])
    return figure
