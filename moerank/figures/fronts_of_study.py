"""Fronts of several solvers on one fold: the same members on training, validation and test queries.

The front of each solver on one fold with its first seed. All three panels show the same rankers.
"""

import numpy as np
from matplotlib.figure import Figure

from moerank.figures import View
from moerank.figures.panels import (
    Look,
    best_of_families,
    fronts_of_fold,
    named,
    panels_figure,
    same_goal,
    two_of,
)
from moerank.figures.style import LINES, RING, beyond, limits_of


def fronts_figure(view: View) -> Figure:
    """Draw the front of each solver on one fold, with its first seed: a panel for each part of the data.

    A note names the solvers without a front, and those with values beyond `style.limits_of`. If there are many solvers,
    the best of each family by validation has a colour. With more than two objectives, the members are points.
    """
    view, apart = same_goal(view)
    metric, fold = view.metric, view.fold_of(view.results)
    runs, without_front = fronts_of_fold(view)
    values = {
        part: {
            solver: np.array([member.scores[part][metric] for member in run.front])
            for solver, run in runs.items()
        }
        for part in LINES
    }
    limits = {part: limits_of(by_solver) for part, by_solver in values.items()}
    parts = {look["label"]: part for part, look in LINES.items()}
    style = {"linestyle": "none", "markevery": 1} if view.results.further_objectives else {}

    def draw(look: Look) -> None:
        if look.faint and style:
            return  # points without a line
        run, shown = runs[look.label], values[parts[look.column]][look.label]
        sizes = [len(member.features) for member in run.front]
        look.plot(sizes, shown, **style)
        if not look.faint:
            ring = "chosen" if look.label == leader else "_chosen"
            look.axes.plot(sizes[run.chosen], shown[run.chosen], label=ring, **RING)
        look.axes.set_ylim(*limits[parts[look.column]])

    outside = dict.fromkeys(
        solver for part in LINES for solver in beyond(values[part], limits[part])
    )
    cut = named("Some values lie beyond the axis", outside)
    leader = max(runs, key=lambda solver: float(np.max(values["train"][solver])))
    test = {solver: run.best.scores["test"][metric] for solver, run in runs.items()}
    rank = 1 + sum(value > test[leader] for value in test.values())
    chosen = f"its chosen member is number {rank} of {len(runs)} on test queries"
    return panels_figure(
        draw,
        list(runs),
        list(dict.fromkeys([*best_of_families(view.results, list(runs)), leader])),
        list(parts),
        finding=f"{leader} fits the training data best; {chosen}",
        height=1.1,
        labels=("Number of features", f"{metric}, fold {fold} (higher is better)"),
        notes=[*without_front, cut, two_of(view.results), apart],
    )
