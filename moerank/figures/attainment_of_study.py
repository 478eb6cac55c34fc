"""Attainment surfaces: the fronts that a quarter, half and three quarters of the runs reach.

The training metric that half of the seeds reach with at most that many features on one fold, with a band between the
quartiles of the seeds.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from moerank.arrays import Array, Matrix, Vector
from moerank.figures import View
from moerank.figures.panels import (
    MOST_LINES,
    Look,
    apart_from_first,
    named,
    panels_figure,
    same_goal,
    title_of,
)
from moerank.mofsrank.objectives import FRONT
from moerank.mofsrank.stage import Stage
from moerank.statistics import attainment_surfaces
from moerank.studies.results import NoResultsError, front_points
from moerank.studies.searches import SearchStudy


def attainment_figure(view: View) -> Figure:
    """Draw the median attainment surface of number of features and metric over the seeds, with a band of the quartiles.

    A note names the solvers with a single seed on the fold, and those that offer a single size. If there are many
    solvers, only the first and those whose least errors differ significantly from its own have colours.
    """
    view, apart = same_goal(view)
    objectives = view.results.objectives
    if tuple(objectives) != FRONT:
        raise NoResultsError(
            f"attainment surfaces show number of features and error, but {view.where} has {', '.join(objectives)}"
        )
    by_solver, fold = view.results.by_solver(), view.fold_of(view.results)
    seeded = {
        solver: folds[fold] for solver, folds in by_solver.items() if len(folds.get(fold, ())) > 1
    }
    runs = {
        solver: seeds
        for solver, seeds in seeded.items()
        if any(len(run.front) > 1 for run in seeds)
    }
    if not runs:
        raise NoResultsError(
            f"no solver ran with several seeds and offers several sizes on fold {fold} of {view.where}"
        )
    fronts = {solver: [front_points(run) for run in seeds] for solver, seeds in runs.items()}
    largest = max(
        len(member.features) for seeds in runs.values() for run in seeds for member in run.front
    )
    ends = {
        solver: view.results.by_run(solver, lambda run: front_points(run)[:, 1].min())
        for solver in runs
    }
    shown, finding = apart_from_first(ends, largest=False)

    single = named(
        "Not drawn, because they have a single seed", [s for s in by_solver if s not in seeded]
    )
    sizeless = named(
        "Not drawn, because they offer a single size", [s for s in seeded if s not in runs]
    )
    numbers = sorted({len(seeds) for seeds in runs.values()})
    seeds = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    return panels_figure(
        surface_drawer(fronts, np.arange(1, largest + 1), upwards=True),
        list(runs),
        shown,
        finding=finding,
        height=2.2,
        labels=("Number of features", f"Training {view.metric}, fold {fold}"),
        notes=[f"Median and quartiles of {seeds} seeds.", single, sizeless, apart],
    )


def surface_drawer(
    fronts: Mapping[str, Sequence[Matrix]], x: Array, *, upwards: bool
) -> Callable[[Look], None]:
    """Return a function that draws the median surface of some fronts at `x` with a band; `upwards` turns 1 − metric."""
    surfaces = {name: attainment_surfaces(mine) for name, mine in fronts.items()}

    def draw(look: Look) -> None:
        stairs = [staircase(surface, x) for surface in surfaces[look.label]]
        quarter, median, three_quarters = (1.0 - y if upwards else y for y in stairs)
        look.fill(x, quarter, three_quarters, step="post")
        look.plot(x, median, drawstyle="steps-post")

    return draw


def surfaces_figure(study: SearchStudy, problem: str | None, count: str) -> Figure:
    """Draw the median attainment surface of each search on a problem, by default the first, over its seeds."""
    name = problem or next(iter(study.targets()))
    stage = study.problems[name]
    if stage.n_obj != 2:
        raise NoResultsError(
            f"attainment surfaces show two objectives, and {name} has {stage.n_obj}"
        )
    fronts: dict[str, list[Matrix]] = {}
    for cell, run in study.runs().items():
        if cell.problem_name == name:
            fronts.setdefault(cell.algorithm_name, []).append(run.front(study.n_evaluations))
    x = np.unique(np.concatenate([front[:, 0] for runs in fronts.values() for front in runs]))
    if not len(x):
        raise NoResultsError(f"no run found a feasible solution of {name}")
    names, metric = ["objective 1", "objective 2"], ""
    if isinstance(stage, Stage):
        names, metric = [objective.name for objective in stage.objectives], stage.metric.name

    return panels_figure(
        surface_drawer(fronts, x, upwards=names[1] == "error"),
        list(fronts),
        list(fronts)[: MOST_LINES + 1],
        finding=f"{name}: fronts that half of {max(map(len, fronts.values()))} runs reach, with quartiles",
        height=2.2,
        labels=(title_of(names[0], metric), title_of(names[1], metric)),
        of_metric=False,
    )


def staircase(surface: Matrix, k: Array) -> Vector:
    """Return the least second objective among the points whose first is at most k; NaN if there are none."""
    steps = np.searchsorted(surface[:, 0], k, side="right")
    return np.where(steps > 0, np.minimum.accumulate(surface[:, 1])[steps - 1], np.nan)
