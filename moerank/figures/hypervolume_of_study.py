"""Hypervolume of each search over its evaluations.

The hypervolume of the front of each stage during the search, as a mean over folds and seeds, with a band between the
quartiles of the runs after the differences between folds are removed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.arrays import Matrix
from moerank.checks import check_choice
from moerank.figures import View
from moerank.figures.panels import MOST_LINES, Look, apart_from_first, boxed, named, panels_figure
from moerank.figures.style import Style, put_log_scale
from moerank.runs.result import Convergence, Result
from moerank.studies.results import NoResultsError, Results
from moerank.studies.searches import SearchStudy

# Labels of the x axis.
COUNT_LABELS = {"evaluations": "Evaluations", "trained": "Distinct individuals (rankers trained)"}


def hypervolume_figure(view: View, *, count: str = "evaluations") -> Figure:
    """Draw the hypervolume of each stage's front: the mean over folds and seeds, with a band of their quartiles.

    It is a share of the largest mean at the end of a search, and all panels have the same y axis.
    For the band, the mean of each fold is moved to that of all folds, because some folds are easier for every solver.
    A line ends where the shortest run ends. The x axis counts the individuals that a search asked for ("evaluations")
    or those that it trained ("trained"), logarithmically; the y axis begins at the poorest value of the coloured
    searches after a tenth of them. Searches with other objectives or another metric have panels of their own, and the
    first panels have the finding. A note names the solvers without a search. If there are many searches, only the first
    and those whose final front differs significantly from its own have colours. The title of a single run says what the
    second half of its evaluations added.
    """
    check_choice(COUNT_LABELS, count=count)
    runs = Results([run for run in view.results if run.convergence])
    if not runs:
        raise NoResultsError(f"no solver of the study of {view.where} is a search")
    goals = runs.alike()
    curves: dict[str, dict[str, Matrix]] = {solver: {} for solver in runs.solvers}
    stages: dict[str, str] = {}
    for goal, alike in goals.items():
        for solver, folds in alike.by_solver().items():
            histories = [(fold, run.convergence) for fold, seeds in folds.items() for run in seeds]
            for stage in histories[0][1]:
                title = stage.replace("_", " ").capitalize() + f": {goal}" * (len(goals) > 1)
                stages[title] = stage
                curves[solver][title] = _curve(
                    [(fold, history[stage]) for fold, history in histories], count
                )
    for title in stages:
        panel = [mine[title] for mine in curves.values() if title in mine]
        best = max(values[-1] for _, _, values, _ in panel) or 1.0
        for curve in panel:
            curve[1:] /= best
    first, *_ = goals.values()
    ends = {
        s: first.by_run(s, lambda run: [*run.convergence.values()][-1].hypervolume[-1])
        for s in first.solvers
    }
    shown, finding = apart_from_first(ends, largest=True)
    if len(runs) == 1:
        slowest, added = max(
            ((s, h.last_half) for s, h in runs[0].convergence.items()), key=lambda item: item[1]
        )
        most = f"at most {added:.1%} of its hypervolume to a front, in {slowest.replace('_', ' ')}"
        finding = f"The second half of the evaluations of each stage added {most}"
    coloured = [*shown, *(solver for solver in curves if solver not in ends)]
    seen = [curve[[0, 2]] for solver in coloured for curve in curves[solver].values()]

    def draw(look: Look) -> None:
        evaluations, low, mean, high = curves[look.label].get(look.column, np.empty((4, 0)))
        look.fill(evaluations, low, high)
        if len(mean) or not look.faint:  # a solver with a colour needs a line for the legend
            look.plot(evaluations, mean)

    without = named(
        "No search", [solver for solver in view.results.solvers if solver not in curves]
    )
    return panels_figure(
        draw,
        list(curves),
        coloured,
        list(stages),
        finding=finding,
        height=1.1,
        labels=(COUNT_LABELS[count], "Hypervolume / largest"),
        same_x=False,
        notes=[*(boxed(alike[0], stages.values()) for alike in goals.values()), without],
        prepare=lambda axes, _: zoom(axes, seen),
    )


def convergence_figure(result: Result) -> Figure:
    """Draw the hypervolume of each stage's front of one run, as `hypervolume_figure` does for several solvers."""
    return hypervolume_figure(View(Results([result]), None, (), result.fold, result.metrics[0]))


def _curve(histories: Sequence[tuple[int, Convergence]], count: str) -> Matrix:
    """Return the counts `count`, lower quartile, mean and upper quartile; `histories` are runs with their folds."""
    length = min(len(history.evaluations) for _, history in histories)
    steps = np.mean([getattr(history, count)[:length] for _, history in histories], axis=0)
    values = np.array([history.hypervolume[:length] for _, history in histories])
    folds = np.array([fold for fold, _ in histories])
    mean = values.mean(axis=0)
    levels = np.array([values[folds == fold].mean(axis=0) for fold in folds])
    low, high = np.quantile(values - levels + mean, (0.25, 0.75), axis=0)
    return np.array([steps, low, mean, high])


def zoom(axes: Axes, curves: Sequence[Matrix]) -> None:
    """Make evaluations logarithmic, and begin the y axis at the poorest value after a tenth of them.

    Each curve has evaluations and values, shape (2, n_steps); early values are all poor.
    """
    put_log_scale(axes, np.concatenate([steps for steps, _ in curves]).tolist())
    low = min(np.interp(steps[-1] / 10.0, steps, values) for steps, values in curves)
    high = max(values[-1] for _, values in curves)
    axes.set_ylim(low - 0.02, high + max(0.05 * (high - low), 0.005))


def shares_figure(study: SearchStudy, problem: str | None, count: str) -> Figure:
    """Draw the hypervolume share of searches over their evaluations: median and quartiles of the seeds, by problem."""
    curves = {
        name: study.anytime(name, count) for name in ([problem] if problem else study.targets())
    }

    def prepare(axes: Axes, column: str) -> None:
        medians = curves[column].T.groupby(level=0).median()
        zoom(axes, [np.array([medians.columns, values]) for values in medians.to_numpy()])

    def draw(look: Look) -> None:
        if look.label in (runs := curves[look.column]):
            low, median, high = np.quantile(runs[look.label], (0.25, 0.5, 0.75), axis=1)
            look.fill(runs.index, low, high)
            look.plot(runs.index, median)

    labels, height = (
        (count.capitalize(), "Hypervolume share, median and quartiles"),
        1.1 if len(curves) > 1 else 2,
    )
    shown: Style = {
        "columns": list(curves),
        "finding": study.finding(),
        "labels": labels,
        "height": height,
    }
    return _of_searches(study, draw, prepare=prepare, **shown)


def runtimes_figure(study: SearchStudy, problem: str | None, count: str) -> Figure:
    """Draw the share of all targets and runs that each search has reached after so many evaluations."""
    times = study.runtimes(count=count)
    times = times if problem is None else times[times["problem"] == problem]

    def draw(look: Look) -> None:
        mine = times[times["algorithm"] == look.label]
        if len(reached := np.sort(mine.loc[mine["reached"], count])):
            shares = np.arange(1, len(reached) + 1) / len(mine)
            ends = np.append(reached, times[count].max()), np.append(shares, shares[-1])
            look.plot(*ends, drawstyle="steps-post")

    def prepare(axes: Axes, _: str) -> None:
        put_log_scale(axes, times[count].tolist())
        axes.set_ylim(0.0, 1.0)

    lowest, highest = times["target"].min(), times["target"].max()
    finding = f"Targets reached on {', '.join(times['problem'].unique())}: {lowest:g} to {highest:g} hypervolume share"
    labels = count.capitalize(), "Share of targets and runs"
    return _of_searches(study, draw, prepare=prepare, finding=finding, labels=labels, height=2)


def _of_searches(study: SearchStudy, draw: Callable[[Look], None], **shown: Any) -> Figure:
    """Return a figure of all searches of a study, the first seven in colour; `shown` goes to `panels_figure`."""
    names = list(study.algorithms)
    return panels_figure(draw, names, names[: MOST_LINES + 1], **shown)
