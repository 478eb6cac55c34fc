"""Ablations: fronts of a solver with all of its parts and without one of them.

The fronts of one run with and without each part of the solver. Below them is the mean metric, over folds and seeds, of
the ranker with at most k features that fits the training data best.
"""

from collections.abc import Mapping
from dataclasses import replace

from moerank.figures import View
from moerank.figures.panels import (
    Curve,
    Panel,
    Panels,
    error_note,
    objectives_note,
    select_goal,
)
from moerank.figures.style import POINTS, STEPS
from moerank.studies.comparison import compare_solvers
from moerank.studies.results import NoResultsError, Results, mean_by_size


def ablation_panels(view: View) -> Panels:
    """Return the fronts of one run in one panel, and the metric with at most k features over all runs.

    The first panel shows all members of the fronts on the selected fold, like Figures 4 to 6 of Cheng et al. (2018).
    The others show the training and test metric of the member with at most k features that fits the training data best.
    The solvers are those of the first ablation of the study; others can be selected, the base first.
    """
    names = _ablated_solvers(view)
    solvers = [solver for solver in names if solver in view.results.solvers]
    view, goal_note = select_goal(replace(view, results=view.results.among(solvers)))
    results, metric = view.results, view.metric
    fold = view.fold
    # A front in more than two objectives is not a curve in two of them.
    style = POINTS if results.further_objectives else STEPS
    fronts = {}
    means: dict[str, dict[str, list[Curve]]] = {"train": {}, "test": {}}
    for solver, folds in results.by_solver().items():
        front = folds[fold][0].front if fold in folds else []
        curve = Curve(
            [member.n_features for member in front],
            [member.scores["train"][metric] for member in front],
            style=style | {"markevery": 1},
        )
        fronts[names[solver]] = [curve]
        for part, curves in means.items():
            values = mean_by_size(folds, part, metric, chosen_on="train")
            curves[names[solver]] = [Curve(range(1, len(values) + 1), values)]
    return Panels(
        title=_finding(results, names, metric),
        panels=[
            Panel(fronts, f"Fronts of fold {fold}, first seed"),
            Panel(means["train"], "Training, mean of all folds and seeds"),
            Panel(means["test"], "Test, the same members"),
        ],
        coloured=list(fronts),
        height=1.25,
        labels=("Number of features, at most", f"{metric} (higher is better)"),
        same_x=False,  # fronts have far fewer members than there are features
        notes=[error_note(results, metric), objectives_note(results), goal_note],
    )


def _ablated_solvers(view: View) -> Mapping[str, str]:
    """Return the names of the solvers of the first ablation with two finished solvers, the base first."""
    finished = set(view.results.solvers)
    for names in view.results.ablations:
        if len(finished.intersection(names)) > 1:
            return names
    if not view.solvers:
        raise NoResultsError(
            f"the study of {view.problem_name} has no ablations; "
            "add them with moerank study … --ablate"
        )
    return {solver: solver for solver in view.solvers}


def _finding(results: Results, names: Mapping[str, str], metric: str) -> str:
    """Return which parts change the test metric."""
    base = next(iter(names))
    if base not in results.solvers or len(results.solvers) < 2:
        return f"Fronts of {' and '.join(names[solver] for solver in results.solvers)}"
    return compare_solvers(results, f"test {metric}", base).renamed(names).sentence
