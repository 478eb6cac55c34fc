"""Cost: test metric against training time of each solver.

CPU seconds of tuning and training against the test metric, as means over folds and seeds.
"""

import numpy as np

from moerank.figures import View
from moerank.figures.panels import (
    Curve,
    Panel,
    Panels,
    best_of_families,
    error_note,
)
from moerank.figures.style import POINTS, axis_limits, solvers_outside
from moerank.studies.comparison import name_solvers

# Shortest time on the logarithmic scale, in CPU seconds; shorter times are not reliable.
MIN_SECONDS = 1e-3


def cost_panels(view: View) -> Panels:
    """Return the CPU time of tuning and training against the test metric, as means over folds and seeds.

    If there are many solvers, the best of each family by validation has a colour, and the others are grey. Notes give
    the standard errors over folds, and name the solvers beyond `style.axis_limits`.
    """
    results, metric = view.results, view.metric
    means = results.means()[0]
    times = means["seconds"].clip(lower=MIN_SECONDS)
    values = {solver: np.array([value]) for solver, value in means[f"test {metric}"].items()}
    limits = axis_limits(values)
    curves = {
        solver: [Curve([times[solver]], value, style=POINTS)] for solver, value in values.items()
    }
    outside = name_solvers("Some values lie beyond the axis", solvers_outside(values, limits))
    return Panels(
        title=f"Test {metric} and training time of {len(values)} solvers",
        panels=[Panel(curves, limits=limits, log_axes="x")],
        coloured=best_of_families(results, results.solvers),
        height=2.2,
        labels=("CPU seconds of tuning and training", f"Test {metric}"),
        notes=[error_note(results, metric), outside],
        is_metric=False,
    )
