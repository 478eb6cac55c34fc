"""Fronts of several solvers on one fold: the same members on training, validation and test queries.

The front of each solver on one fold with its first seed. All three panels show the same rankers.
"""

import numpy as np

from moerank.figures import View
from moerank.figures.panels import (
    Curve,
    Panel,
    Panels,
    best_of_families,
    fronts_of_fold,
    objectives_note,
    select_goal,
)
from moerank.figures.style import LINES, POINTS, axis_limits, solvers_outside
from moerank.studies.comparison import name_solvers


def fronts_panels(view: View) -> Panels:
    """Return the front of each solver on one fold, with its first seed: a panel for each part of the data.

    A note names the solvers without a front, and those with values beyond `style.axis_limits`. If there are many
    solvers, the best of each family by validation has a colour. With more than two objectives, the members are points.
    """
    view, goal_note = select_goal(view)
    metric, fold = view.metric, view.fold
    runs, absent = fronts_of_fold(view)
    many_objectives = len(view.results.further_objectives) > 0
    style = {**POINTS, "markevery": 1} if many_objectives else {}
    panels, outside = [], []
    for part, look in LINES.items():
        curves = {}
        values = {}
        for solver, run in runs.items():
            sizes = run.sizes
            values[solver] = np.array([member.scores[part][metric] for member in run.front])
            curve = Curve(
                sizes,
                values[solver],
                style=style,
                ring=(sizes[run.chosen], values[solver][run.chosen]),
                has_grey=not many_objectives,
            )
            curves[solver] = [curve]
        limits = axis_limits(values)
        panels.append(Panel(curves, look["label"], limits=limits))
        outside += solvers_outside(values, limits)
    outside_note = name_solvers("Some values lie beyond the axis", dict.fromkeys(outside))
    return Panels(
        title=f"Fronts of fold {fold}",
        panels=panels,
        coloured=best_of_families(view.results, list(runs)),
        height=1.1,
        labels=("Number of features", f"{metric}, fold {fold} (higher is better)"),
        notes=[*absent, outside_note, objectives_note(view.results), goal_note],
    )
