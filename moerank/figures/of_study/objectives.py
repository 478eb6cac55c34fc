"""Objectives: the fronts of several solvers on one fold in each pair of the objectives that were searched."""

from __future__ import annotations

from itertools import combinations
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.figures.figure import StudyFigure, View
from moerank.figures.notes import fronts_of_fold, named, non_dominated, title_of
from moerank.figures.panels import FEW_LINES, Look, Panels, by_family
from moerank.figures.style import in_style
from moerank.studies.results import NoResultsError, front_points

__all__ = ["FIGURE"]

MOST_COLUMNS = 3
"""Largest number of pairs of objectives side by side."""


def objectives_figure(view: View) -> Figure:
    """Draw the training front of each solver on one fold, with its first seed: a panel for each pair of objectives.

    A staircase joins the members of a solver that are non-dominated in the pair. The note below the figure names the
    solvers without a front. More than five solvers are divided by family into rows of panels with at most three pairs;
    the note names the other pairs.
    """
    fold, objectives = view.fold_of(view.results), view.results.objectives
    if len(objectives) < 2:
        raise NoResultsError(f"the study of {view.where} has one objective, and so no pair to draw")
    runs, without_front = fronts_of_fold(view)
    groups = by_family(list(runs), FEW_LINES)
    pairs, left_out = list(combinations(objectives, 2)), []
    words = {name: title_of(name, view.metric) for name in objectives}
    xlabel, ylabel = "", f"Objectives in training, fold {fold} (lower is better)"
    if len(pairs) == 1:
        titles = {"": pairs[0]}
        xlabel, ylabel = words[objectives[0]], f"{words[objectives[1]]}, training, fold {fold}"
    elif len(groups) == 1:
        titles = {fill(f"{words[y]} against {words[x][0].lower()}{words[x][1:]}", 44): (x, y) for x, y in pairs}
    else:
        pairs, left_out = pairs[:MOST_COLUMNS], pairs[MOST_COLUMNS:]
        titles = {fill(f"{y} by {x}".replace("_", " "), 12): (x, y) for x, y in pairs}

    def draw(axes: Axes, column: str, look: Look) -> None:
        points = front_points(runs[look.label], titles[column])
        best = points[non_dominated(points)]
        if not look.faint:
            look.plot(axes, *points.T, linestyle="none", markevery=1, markersize=2.6, label="_members")
        look.plot(axes, *best.T, drawstyle="steps-post", markevery=1)

    roomless = named("No room for", [f"{y} by {x}" for x, y in left_out])
    with in_style():
        panels = Panels(
            groups,
            list(titles),
            height=0.88 if len(groups) > 1 else 1.2 if len(pairs) > 1 else 1.9,
            xlabel=xlabel,
            ylabel=ylabel,
            same_x=False,
            notes=[*without_front, roomless],
        )
        panels.draw(draw)
    return panels.figure


FIGURE = StudyFigure(
    objectives_figure,
    caption="The front of each solver on the training data of one fold with its first seed, in each pair of the "
    "objectives; the staircase joins the rankers of a solver that are non-dominated in the pair.",
    section="results",
    place=6,
    takes=("fold",),
    reported=lambda results: bool(results.further_objectives),
)
