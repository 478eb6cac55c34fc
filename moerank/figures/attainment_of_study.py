"""Attainment surfaces: the fronts that a quarter, half and three quarters of the runs reach.

Training error that half of the seeds reach with at most so many features on one fold, with a band between the quartiles
of the seeds.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from moerank.arrays import Integers, Matrix, Vector
from moerank.figures import View
from moerank.figures.panels import Look, apart_from_first, named, panels_figure
from moerank.mofsrank.objectives import FRONT
from moerank.statistics import attainment_surfaces
from moerank.studies.results import NoResultsError, front_points


def attainment_figure(view: View) -> Figure:
    """Draw the median attainment surface of number of features and error over the seeds, with a band of the quartiles.

    A note names the solvers without several seeds on the fold, and those that offer one size. Of many solvers the first
    has a colour, and those whose least errors over all folds and seeds differ by a test.
    """
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

    single = named("No surface, for they ran with one seed", [solver for solver in by_solver if solver not in seeded])
    sizeless = named("No surface, for they offer one size", [solver for solver in seeded if solver not in runs])
    numbers = sorted({len(seeds) for seeds in runs.values()})
    seeds = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    return panels_figure(
        draw,
        list(runs),
        shown,
        finding=finding,
        height=2.2,
        labels=("Number of features", f"1 − {view.metric}, training, fold {fold}"),
        notes=[f"Median and quartiles of {seeds} seeds.", single, sizeless],
    )


def staircase(surface: Matrix, k: Integers) -> Vector:
    """Return the least second objective of the points whose first is at most k; NaN without any."""
    steps = np.searchsorted(surface[:, 0], k, side="right")
    return np.where(steps > 0, np.minimum.accumulate(surface[:, 1])[steps - 1], np.nan)
