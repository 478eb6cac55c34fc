"""Ablations: fronts of a solver with all of its parts and without one of them.

The fronts of one run with and without each part of the solver. Below them is the metric of the ranker that fits the
training data best with at most that many features, as a mean over folds and seeds.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from moerank.figures import View
from moerank.figures.panels import Look, errors_noted, panels_figure, same_goal, two_of
from moerank.statistics import LEVEL
from moerank.studies.results import NoResultsError, Results, against_reference, mean_by_size


def ablation_figure(view: View) -> Figure:
    """Draw the fronts of one run in one panel, and the metric with at most k features over all runs.

    The first panel shows all members of the fronts on the selected fold, like Figures 4 to 6 of Cheng et al. (2018).
    The others show the training and test metric of the member with at most k features that fits the training data best.
    The solvers are those of the first ablation of the study; others can be selected, the base first.
    """
    finished = view.results.solvers
    ablations = [
        names for names in view.results.ablations if len({*finished}.intersection(names)) > 1
    ]
    if not (ablations or view.solvers):
        raise NoResultsError(
            f"the study of {view.where} has no ablations; add them with moerank study … --ablate"
        )
    names = ablations[0] if ablations else {solver: solver for solver in view.solvers}
    view, apart = same_goal(
        replace(view, results=view.results.among([name for name in names if name in finished]))
    )
    shown, full = view.results, next(iter(names))
    titles = {names[solver]: folds for solver, folds in shown.by_solver().items()}
    fold = view.fold_of(shown)
    columns = {
        f"Fronts of fold {fold}, first seed": "",
        "Training, mean of all folds and seeds": "train",
    }
    columns["Test, the same members"] = "test"
    # A front in more than two objectives is not a curve in two of them.
    style = {"linestyle": "none"} if shown.further_objectives else {"drawstyle": "steps-post"}

    def draw(look: Look) -> None:
        if part := columns[look.column]:
            values = mean_by_size(titles[look.label], part, view.metric, chosen_on="train")
            look.plot(np.arange(1, len(values) + 1), values)
            return
        run = next(iter(titles[look.label].get(fold, [])), None)
        front = run.front if run else []
        reached = [member.scores["train"][view.metric] for member in front]
        look.plot([len(member.features) for member in front], reached, markevery=1, **style)

    return panels_figure(
        draw,
        list(titles),
        list(titles),
        list(columns),
        finding=_finding(shown, full, names, view.metric),
        height=1.25,
        labels=("Number of features, at most", f"{view.metric} (higher is better)"),
        same_x=False,  # fronts have far fewer members than there are features
        notes=[errors_noted(shown, view.metric), two_of(shown), apart],
    )


def _finding(shown: Results, full: str, names: Mapping[str, str], metric: str) -> str:
    """Return which parts change the test metric, by paired t tests with Holm's correction."""
    if full not in shown.solvers or len(shown.solvers) < 2:
        return f"Fronts of {' and '.join(names[solver] for solver in shown.solvers)}"
    tests = against_reference(shown, full, metric)
    changed = tests[tests["holm"] <= LEVEL].itertuples()
    changes = [f"{names[row.solver]}, {row.difference:+.3f}".replace("-", "−") for row in changed]
    if not changes:
        return f"Leaving out a part of {full}: no difference in test {metric} is detected"
    return f"Detected changes of test {metric}: {'; '.join(changes)}"
