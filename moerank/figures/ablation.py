"""Ablations: MOFSRank's front beside those without one of its parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.analysis.by_solver import (
    NothingToDrawError,
    errors_noted,
    first_fold,
    first_metric,
    mean_by_size,
    of_problem,
)
from moerank.analysis.comparison import Results, front_points
from moerank.figures.panels import Look, Panels, by_family
from moerank.figures.style import in_style
from moerank.runs.problem import Problem
from moerank.solvers import ablated

__all__ = ["ablation_figure"]

FRONTS, TRAINING, TEST = (
    "Fronts of fold {}, first seed",
    "Training, mean of all folds and seeds",
    "Test, the same members",
)


def ablation_figure(
    results: Results, problem: Problem, *, fold: int | None = None, solvers: Sequence[str] = ()
) -> Figure:
    """Draw the fronts of one run over each other, and the least error with at most k features over all runs.

    The first panel has all members of the fronts, as Figures 4 to 6 of Cheng et al. (2018). In the others the member
    with at most k features is the one that is best in training, for training and test queries.

    Parameters
    ----------
    results : mapping of Cell to RunResult
    problem : Problem
    fold : int, optional
        Of the first panel, by default the first there is.
    solvers : sequence of str
        Labels; by default MOFSRank and those of its ablations that there are.

    Raises
    ------
    NothingToDrawError
        If MOFSRank or all of its ablations are missing, and no solvers were named.
    """
    known = {"mofsrank": "all three stages"} | {name: f"without {part}" for name, part in ablated().items()}
    found = of_problem(results, problem.name, solvers)
    shown = {solver: folds for solver, folds in found.items() if solvers or solver in known}
    if not solvers and ("mofsrank" not in shown or len(shown) < 2):
        raise NothingToDrawError(
            f"the study of {problem.name} has no ablations; add them with moerank study … --ablate"
        )
    titles = {known.get(solver, solver): folds for solver, folds in shown.items()}
    metric = first_metric(shown)
    fold = first_fold(shown) if fold is None else fold
    columns = {FRONTS.format(fold): "", TRAINING: "train", TEST: "test"}

    def draw(axes: Axes, column: str, look: Look) -> None:
        if part := columns[column]:
            error = 1.0 - mean_by_size(titles[look.label], part, metric, chosen_on="train")
            look.plot(axes, np.arange(1, len(error) + 1), error)
            return
        run = next(iter(titles[look.label].get(fold, [])), None)
        points = front_points(run) if run else np.empty((0, 2))
        look.plot(axes, points[:, 0], points[:, 1], drawstyle="steps-post", markevery=1)

    with in_style():
        panels = Panels(
            {title: [known.get(s, s) for s in group] for title, group in by_family(list(shown)).items()},
            list(columns),
            height=1.25,
            xlabel="Number of features, at most",
            ylabel=f"1 − {metric} (lower is better)",
            same_x=False,  # the members of a front end long before all features
            notes=[errors_noted(shown, metric)],
        )
        panels.draw(draw)
    return panels.figure
