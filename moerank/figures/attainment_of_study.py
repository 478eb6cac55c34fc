"""Attainment surfaces: the fronts that a quarter, half and three quarters of the runs reach.

The training error that half of the seeds reach with at most that many features on one fold, with a band between the
quartiles of the seeds.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from moerank.arrays import Integers, Matrix, Vector
from moerank.figures import View
from moerank.figures.panels import Look, apart_from_first, named, panels_figure, same_goal
from moerank.mofsrank.objectives import FRONT
from moerank.statistics import attainment_surfaces
from moerank.studies.results import NoResultsError, front_points


def attainment_figure(view: View) -> Figure:
    """Draw the median attainment surface of number of features and error over the seeds, with a band of the quartiles.

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
    seeded = {solver: folds[fold] for solver, folds in by_solver.items() if len(folds.get(fold, ())) > 1}
    runs = {solver: seeds for solver, seeds in seeded.items() if any(len(run.front) > 1 for run in seeds)}
    if not runs:
        raise NoResultsError(
            f"no solver ran with several seeds and offers several sizes on fold {fold} of {view.where}"
        )
    surfaces = {solver: attainment_surfaces([front_points(run) for run in seeds]) for solver, seeds in runs.items()}
    largest = max(len(member.features) for seeds in runs.values() for run in seeds for member in run.front)
    k = np.arange(1, largest + 1)
    stairs = {solver: [staircase(surface, k) for surface in mine] for solver, mine in surfaces.items()}
    ends = {solver: view.results.by_run(solver, lambda run: front_points(run)[:, 1].min()) for solver in runs}
    shown, finding = apart_from_first(ends, largest=False)

    def draw(look: Look) -> None:
        quarter, median, three_quarters = stairs[look.label]
        look.fill(k, quarter, three_quarters, step="post")
        look.plot(k, median, drawstyle="steps-post")

    single = named("Not drawn, because they have a single seed", [s for s in by_solver if s not in seeded])
    sizeless = named("Not drawn, because they offer a single size", [s for s in seeded if s not in runs])
    numbers = sorted({len(seeds) for seeds in runs.values()})
    seeds = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    return panels_figure(
        draw,
        list(runs),
        shown,
        finding=finding,
        height=2.2,
        labels=("Number of features", f"1 − {view.metric}, training, fold {fold}"),
        notes=[f"Median and quartiles of {seeds} seeds.", single, sizeless, apart],
    )


def staircase(surface: Matrix, k: Integers) -> Vector:
    """Return the least second objective among the points whose first is at most k; NaN if there are none."""
    steps = np.searchsorted(surface[:, 0], k, side="right")
    return np.where(steps > 0, np.minimum.accumulate(surface[:, 1])[steps - 1], np.nan)
