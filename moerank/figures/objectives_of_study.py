"""Objectives: the fronts of several solvers on one fold, in each pair of the objectives.

The front of each solver on the training data of one fold with its first seed, in each pair of the objectives. A
staircase joins the rankers that are non-dominated in the pair.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.arrays import Matrix
from moerank.figures import View, panels
from moerank.figures.style import RING, put_log_scale
from moerank.runs.result import Result
from moerank.studies.results import NoResultsError, Results, front_points


def objectives_figure(view: View) -> Figure:
    """Draw the training front of each solver on one fold, with its first seed: a panel for each pair of objectives.

    A staircase joins the members of a solver that are non-dominated in the pair, and the chosen one has a ring. A note
    names the solvers without a front. If there are many solvers, the best of each family by validation has a colour.
    """
    view, apart = panels.same_goal(view)
    fold, objectives = view.fold_of(view.results), view.results.objectives
    if len(objectives) < 2:
        raise NoResultsError(
            f"the study of {view.where} has one objective, so there is no pair to draw"
        )
    runs, without_front = panels.fronts_of_fold(view)
    pairs = list(combinations(objectives, 2))
    words = {name: panels.title_of(name, view.metric) for name in objectives}
    xlabel, ylabel = "", f"Objectives in training, fold {fold} "
    titles = {fill(f"{words[y]} against {_within(words[x])}", 44): (x, y) for x, y in pairs}
    if len(pairs) == 1:
        titles = {"": pairs[0]}
        xlabel, ylabel = words[objectives[0]], f"{words[objectives[1]]}, training, fold {fold}"

    def draw(look: panels.Look) -> None:
        points = front_points(runs[look.label])[
            :, [objectives.index(name) for name in titles[look.column]]
        ]
        best, points = (
            upwards(part, titles[look.column])
            for part in (points[panels.non_dominated(points)], points)
        )
        if not look.faint:
            look.plot(*points.T, linestyle="none", markevery=1, markersize=2.6, label="_members")
            ring = "chosen" if look.label == first else "_chosen"
            look.axes.plot(*points[[runs[look.label].chosen]].T, label=ring, **RING)
        look.plot(*best.T, drawstyle="steps-post", markevery=1)

    def prepare(axes: Axes, column: str) -> None:
        if titles[column][0] == "cost":
            put_log_scale(
                axes, [member.objectives["cost"] for run in runs.values() for member in run.front]
            )

    first, points = next(iter(runs)), [front_points(run) for run in runs.values()]
    owners = np.repeat(list(runs), [len(mine) for mine in points])
    counts = Counter(
        owners[panels.non_dominated(np.concatenate(points))].tolist()
    )  # of the joint front
    ((leader, most),) = counts.most_common(1)
    if len(runs) > 1:
        finding = (
            f"{leader} has {most} of the {counts.total()} members of the joint front in training"
        )
    else:
        finding = f"{most} members are non-dominated in all {len(objectives)} objectives together"
    return panels.panels_figure(
        draw,
        list(runs),
        list(dict.fromkeys([*panels.best_of_families(view.results, list(runs)), leader])),
        list(titles),
        finding=finding,
        height=1.2 if len(pairs) > 1 else 2.2,
        labels=(xlabel, ylabel),
        same_x=False,
        of_metric=False,
        notes=[*without_front, apart],
        prepare=prepare,
    )


def _within(title: str) -> str:
    """Return a title as it stands within a sentence: the names of metrics keep their capitals."""
    return title if title[1:2].isupper() else title[0].lower() + title[1:]


def upwards(points: Matrix, objectives: Sequence[str]) -> Matrix:
    """Return points (n, n_objectives) with the metric in place of the error."""
    return np.where(np.array(objectives) == "error", 1.0 - points, points)


def run_objectives_figure(result: Result) -> Figure:
    """Draw a panel for each pair of objectives of one run, as `objectives_figure` does for several solvers.

    A run with a single objective raises a NoResultsError.
    """
    return objectives_figure(View(Results([result]), None, (), result.fold, result.metrics[0]))
