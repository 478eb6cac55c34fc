"""Hypervolume of each search over its evaluations.

The hypervolume of the front of each stage during the search, as a mean over folds and seeds, with a band between the
quartiles of the runs after the differences between folds are removed.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from moerank.arrays import Matrix
from moerank.checks import check_choice
from moerank.figures import View
from moerank.figures.panels import (
    MAX_LINES,
    Curve,
    Panel,
    Panels,
    box_note,
    farthest_from_first,
    view_of_run,
)
from moerank.figures.style import STEPS
from moerank.runs.result import Result
from moerank.studies.comparison import compare_solvers, name_solvers
from moerank.studies.results import NoResultsError, Results, Runs
from moerank.studies.searches import SearchStudy

# Labels of the x axis.
COUNT_LABELS = {"evaluations": "Evaluations", "trained": "Distinct individuals (rankers trained)"}


def convergence_panels(result: Result) -> Panels:
    """Return the hypervolume of each stage's front of one run, as `hypervolume_panels` does for several solvers."""
    return hypervolume_panels(view_of_run(result))


def hypervolume_panels(view: View, *, count: str = "evaluations") -> Panels:
    """Return the hypervolume of each stage's front: the mean over folds and seeds, with a band of their quartiles.

    It is a share of the largest mean at the end of a search, and all panels have the same y axis.
    For the band, the mean of each fold is moved to that of all folds, because some folds are easier for every solver.
    A line ends where the shortest run ends. The x axis counts the individuals that a search asked for ("evaluations")
    or those that it trained ("trained"), logarithmically; the y axis begins at the poorest value of the coloured
    searches after a tenth of them. Searches with other objectives or another metric have panels of their own. A note
    names the solvers without a search. If there are many searches, only the first and those whose final front differs
    most from its own have colours. The title compares the final fronts with its own, fold by fold.
    """
    check_choice(COUNT_LABELS, count=count)
    runs = Results([run for run in view.results if run.convergence])
    if not runs:
        raise NoResultsError(f"no solver of the study of {view.problem_name} is a search")
    goals = runs.alike()
    curves = _curves_by_panel(goals, count)
    first_goal = next(iter(goals.values()))
    coloured = farthest_from_first(first_goal)
    coloured += [solver for solver in runs.solvers if solver not in first_goal.solvers]
    visible = [
        curve for lines in curves.values() for solver, curve in lines.items() if solver in coloured
    ]
    finding = ""
    if len(first_goal.folds) > 1:
        finding = compare_solvers(first_goal, "hypervolume", first_goal.solvers[0]).sentence
    stages = [stage for run in runs for stage in run.convergence]
    searchless = [solver for solver in view.results.solvers if solver not in runs.solvers]
    notes = [box_note(results[0], stages) for results in goals.values()]
    return Panels(
        title=finding or "Hypervolume of the fronts during the search",
        panels=[_zoomed_panel(title, lines, visible) for title, lines in curves.items()],
        coloured=coloured,
        height=1.1,
        labels=(COUNT_LABELS[count], "Hypervolume / largest"),
        same_x=False,
        notes=[*notes, name_solvers("No search", searchless)],
    )


def _curves_by_panel(goals: Mapping[str, Results], count: str) -> dict[str, dict[str, Matrix]]:
    """Return `_mean_curve` by panel and solver, as a share of the largest mean at the end of a search in the panel."""
    curves: dict[str, dict[str, Matrix]] = {}
    for goal, results in goals.items():
        suffix = f": {goal}" if len(goals) > 1 else ""
        for solver, folds in results.by_solver().items():
            for stage in next(iter(folds.values()))[0].convergence:
                title = stage.replace("_", " ").capitalize() + suffix
                curves.setdefault(title, {})[solver] = _mean_curve(folds, stage, count)
    for lines in curves.values():
        largest = max(mean[-1] for _, _, mean, _ in lines.values()) or 1.0
        for curve in lines.values():
            curve[1:] /= largest
    return curves


def _mean_curve(folds: Runs, stage: str, count: str) -> Matrix:
    """Return the counts, lower quartile, mean and upper quartile of a stage, up to the end of the shortest run."""
    histories = [run.convergence[stage] for seeds in folds.values() for run in seeds]
    length = min(len(history.evaluations) for history in histories)
    steps = np.mean([getattr(history, count)[:length] for history in histories], axis=0)
    values = np.array([history.hypervolume[:length] for history in histories])
    fold_of_run = np.repeat(list(folds), [len(seeds) for seeds in folds.values()])
    fold_means = pd.DataFrame(values).groupby(fold_of_run).transform("mean")
    mean = values.mean(axis=0)
    low, high = np.quantile(values - fold_means + mean, (0.25, 0.75), axis=0)
    return np.array([steps, low, mean, high])


def _zoomed_panel(title: str, curves: Mapping[str, Matrix], visible: Collection[Matrix]) -> Panel:
    """Return a panel with logarithmic evaluations, whose y axis begins at the poorest value after a tenth of them.

    The curves are those of `_mean_curve`; the limits are for the `visible` ones. Early values are all poor.
    """
    low = min(np.interp(steps[-1] / 10.0, steps, values) for steps, _, values, _ in visible)
    high = max(values[-1] for _, _, values, _ in visible)
    lines = {}
    for solver, (steps, lower, values, upper) in curves.items():
        lines[solver] = [Curve(steps, values, band=(lower, upper))]
    return Panel(
        lines,
        title,
        limits=(low - 0.02, high + max(0.05 * (high - low), 0.005)),
        log_axes="x",
    )


def shares_panels(study: SearchStudy, problem: str | None, count: str) -> Panels:
    """Return the hypervolume share of searches over their evaluations: median and quartiles over seeds, by problem."""
    panels = []
    for name in [problem] if problem else study.targets():
        runs = study.anytime(name, count)
        curves = {}
        for search in runs.columns.unique(level=0):
            low, median, high = np.quantile(runs[search], (0.25, 0.5, 0.75), axis=1)
            curves[search] = np.array([runs.index, low, median, high])
        panels.append(_zoomed_panel(name, curves, curves.values()))
    return _panels_of_searches(
        study,
        panels,
        title="Hypervolume share of each search",
        labels=(count.capitalize(), "Hypervolume share, median and quartiles"),
    )


def runtimes_panels(study: SearchStudy, problem: str | None, count: str) -> Panels:
    """Return the fraction of all targets and runs that each search has reached, against the number of evaluations."""
    times = study.runtimes(count=count)
    if problem is not None:
        times = times[times["problem"] == problem]
    curves = {}
    for search, runs in times.groupby("algorithm"):
        reached = np.sort(runs.loc[runs["reached"], count])
        if len(reached):
            shares = np.arange(1, len(reached) + 1) / len(runs)
            x, y = np.append(reached, times[count].max()), np.append(shares, shares[-1])
            curves[search] = [Curve(x, y, style=STEPS)]
    lowest, highest = times["target"].min(), times["target"].max()
    problems = ", ".join(times["problem"].unique())
    return _panels_of_searches(
        study,
        [Panel(curves, limits=(0.0, 1.0), log_axes="x")],
        title=f"Targets reached on {problems}: {lowest:g} to {highest:g} hypervolume share",
        labels=(count.capitalize(), "Share of targets and runs"),
    )


def _panels_of_searches(
    study: SearchStudy, panels: Sequence[Panel], title: str, labels: tuple[str, str]
) -> Panels:
    """Return the panels of all searches of a study, the first seven in colour."""
    names = list(study.algorithms)
    return Panels(
        title=title,
        panels=panels,
        coloured=names[: MAX_LINES + 1],
        height=1.1 if len(panels) > 1 else 2.0,
        labels=labels,
    )
