"""Objectives: the fronts of several solvers on one fold, in each pair of the objectives.

The front of each solver on the training data of one fold with its first seed, in each pair of the objectives. A
staircase joins the rankers that are non-dominated in the pair.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, compress
from textwrap import fill

import numpy as np

from moerank.figures import View
from moerank.figures.panels import (
    Curve,
    Panel,
    Panels,
    axis_title,
    best_of_families,
    fronts_of_fold,
    has_log_axis,
    non_dominated,
    select_goal,
    view_of_run,
)
from moerank.figures.style import POINTS, STEPS
from moerank.runs.result import Result
from moerank.studies.results import NoResultsError, front_points


def run_objectives_panels(result: Result) -> Panels:
    """Return a panel for each pair of objectives of one run, as `objectives_panels` does for several solvers.

    A run with a single objective raises a NoResultsError.
    """
    return objectives_panels(view_of_run(result))


def objectives_panels(view: View) -> Panels:
    """Return the training front of each solver on one fold, with its first seed: a panel for each pair of objectives.

    A staircase joins the members of a solver that are non-dominated in the pair, and the chosen one has a ring. A note
    names the solvers without a front. If there are many solvers, the best of each family by validation has a colour.
    """
    view, goal_note = select_goal(view)
    fold, objectives = view.fold, view.results.objectives
    if len(objectives) < 2:
        raise NoResultsError(
            f"the study of {view.problem_name} has one objective, so there is no pair to draw"
        )
    runs, absent = fronts_of_fold(view)
    titles = {name: axis_title(name, view.metric) for name in objectives}
    pairs = list(combinations(objectives, 2))
    panels = []
    for pair in pairs:
        x, y = pair
        title = (
            fill(f"{titles[y]} against {_lower_initial(titles[x])}", 44) if len(pairs) > 1 else ""
        )
        logs = "".join(compress("xy", map(has_log_axis, pair)))
        panels.append(Panel(_curves(runs, objectives, pair), title, log_axes=logs))
    labels = ("", f"Objectives in training, fold {fold} ")
    if len(pairs) == 1:
        xlabel, ylabel = titles.values()
        labels = (xlabel, f"{ylabel}, training, fold {fold}")
    return Panels(
        title=f"Fronts of fold {fold} in each pair of objectives",
        panels=panels,
        coloured=best_of_families(view.results, list(runs)),
        height=1.2 if len(pairs) > 1 else 2.2,
        labels=labels,
        same_x=False,
        is_metric=False,
        notes=[*absent, goal_note],
    )


def _curves(
    runs: Mapping[str, Result], objectives: Sequence[str], pair: tuple[str, str]
) -> dict[str, list[Curve]]:
    """Return for each solver its members, and the staircase of those that are non-dominated in the pair."""
    columns = [objectives.index(name) for name in pair]
    curves = {}
    for solver, run in runs.items():
        minimised = front_points(run)[:, columns]
        points = np.where(np.array(pair) == "error", 1.0 - minimised, minimised)
        best = points[non_dominated(minimised)]
        dots = {**POINTS, "markevery": 1, "markersize": 2.6, "label": "_members"}
        curves[solver] = [
            Curve(
                points[:, 0],
                points[:, 1],
                style=dots,
                ring=tuple(points[run.chosen]),
                has_grey=False,
            ),
            Curve(best[:, 0], best[:, 1], style={**STEPS, "markevery": 1}),
        ]
    return curves


def _lower_initial(title: str) -> str:
    """Return a title with a lower-case initial, unless it is the name of a metric."""
    return title if title[1:2].isupper() else title[0].lower() + title[1:]
