"""Attainment surfaces: the fronts that a quarter, half and three quarters of the runs reach.

The training metric that half of the seeds reach with at most k features on one fold, with a band between the quartiles
of the seeds.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from moerank.arrays import Array, Matrix, Vector
from moerank.figures import View
from moerank.figures.panels import (
    MAX_LINES,
    Curve,
    Panel,
    Panels,
    axis_title,
    farthest_from_first,
    select_goal,
)
from moerank.figures.style import STEPS
from moerank.mofsrank.objectives import FRONT
from moerank.mofsrank.stage import Stage
from moerank.statistics import attainment_surfaces
from moerank.studies.comparison import name_solvers
from moerank.studies.results import NoResultsError, front_points
from moerank.studies.searches import SearchStudy


def attainment_panels(view: View) -> Panels:
    """Return the median attainment surface of number of features and metric over the seeds, with its quartiles.

    A note names the solvers with a single seed on the fold, and those that offer a single size. If there are many
    solvers, only the first and those whose hypervolumes differ most from its own have colours.
    """
    view, goal_note = select_goal(view)
    results, fold = view.results, view.fold
    if tuple(results.objectives) != FRONT:
        raise NoResultsError(
            "attainment surfaces show number of features and error, but "
            f"{view.problem_name} has {', '.join(results.objectives)}"
        )
    runs = {}
    single_seed, single_size = [], []
    for solver, folds in results.by_solver().items():
        seeds = folds.get(fold, [])
        if len(seeds) < 2:
            single_seed.append(solver)
        elif all(len(run.front) < 2 for run in seeds):
            single_size.append(solver)
        else:
            runs[solver] = seeds
    if not runs:
        raise NoResultsError(
            "no solver ran with several seeds and offers several sizes on "
            f"fold {fold} of {view.problem_name}"
        )
    fronts = {solver: list(map(front_points, seeds)) for solver, seeds in runs.items()}
    largest = max(max(run.sizes) for seeds in runs.values() for run in seeds)
    sizes = np.arange(1, 1 + largest)
    curves = {solver: _surfaces(seeds, sizes, upwards=True) for solver, seeds in fronts.items()}
    counts = sorted({len(seeds) for seeds in runs.values()})
    n_seeds = " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]])))
    return Panels(
        title=f"Attainment surfaces of fold {fold}",
        panels=[Panel(curves)],
        coloured=farthest_from_first(results.among(list(runs))),
        height=2.2,
        labels=("Number of features", f"Training {view.metric}, fold {fold}"),
        notes=[
            f"Median and quartiles of {n_seeds} seeds.",
            name_solvers("Not drawn, because they have a single seed", single_seed),
            name_solvers("Not drawn, because they offer a single size", single_size),
            goal_note,
        ],
    )


def surfaces_panels(study: SearchStudy, problem: str | None, count: str) -> Panels:
    """Return the median attainment surface of each search on a problem, by default the first, over its seeds."""
    name = problem or next(iter(study.targets()))
    stage = study.problems[name]
    if stage.n_obj != 2:
        raise NoResultsError(
            f"attainment surfaces show two objectives, and {name} has {stage.n_obj}"
        )
    fronts = defaultdict(list)
    for cell, run in study.runs().items():
        if cell.problem_name == name:
            fronts[cell.algorithm_name].append(run.front(study.n_evaluations))
    x = np.unique(np.concatenate([front[:, 0] for runs in fronts.values() for front in runs]))
    if not len(x):
        raise NoResultsError(f"no run found a feasible solution of {name}")
    names, metric = ["objective 1", "objective 2"], ""
    if isinstance(stage, Stage):
        names, metric = [objective.name for objective in stage.objectives], stage.metric.name
    upwards = names[1] == "error"
    n_runs = max(map(len, fronts.values()))
    return Panels(
        title=f"{name}: fronts that half of {n_runs} runs reach, with quartiles",
        panels=[
            Panel(
                curves={name: _surfaces(runs, x, upwards=upwards) for name, runs in fronts.items()}
            )
        ],
        coloured=list(fronts)[: MAX_LINES + 1],
        height=2.2,
        labels=(axis_title(names[0], metric), axis_title(names[1], metric)),
        is_metric=False,
    )


def _surfaces(fronts: Sequence[Matrix], x: Array, *, upwards: bool) -> list[Curve]:
    """Return the median surface of some fronts at `x` with a band of the quartiles; `upwards` shows 1 − error."""
    heights = [staircase(surface, x) for surface in attainment_surfaces(fronts)]
    if upwards:
        heights = [1.0 - height for height in heights]
    quarter, median, three_quarters = heights
    return [Curve(x, median, band=(quarter, three_quarters), style=STEPS)]


def staircase(surface: Matrix, k: Array) -> Vector:
    """Return the minimum second objective of the points whose first objective is at most k; NaN if there are none."""
    steps = np.searchsorted(surface[:, 0], k, side="right")
    return np.where(steps > 0, np.minimum.accumulate(surface[:, 1])[steps - 1], np.nan)
