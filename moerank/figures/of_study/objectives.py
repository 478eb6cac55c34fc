"""Objectives: the fronts of several solvers on one fold in each pair of the objectives that were searched."""

from __future__ import annotations

from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from moerank.figures.figure import StudyFigure, View
from moerank.figures.notes import fronts_of_fold, named, non_dominated, pairs_of, title_of
from moerank.figures.panels import FEW_LINES, Look, Panels, by_family
from moerank.figures.style import in_style
from moerank.studies.results import NoResultsError, Results, front_points

__all__ = ["FIGURE"]

MOST_COLUMNS = 3
"""More pairs of objectives than these have no room side by side."""


def objectives_figure(view: View) -> Figure:
    """Draw what each solver offers on the training part of one fold, with its first seed: a panel for each pair.

    A staircase joins the members of a solver that no other one of it beats in the pair; all are points. Solvers that
    offer a single size there, or have not run, have no front; the note below the figure names them. More than five are
    divided by family into rows of panels, in which three pairs have room; the note names the others.

    Raises
    ------
    NoResultsError
        If no solver is left, or there is one objective.
    """
    fold, objectives = view.fold_of(view.results), view.results.objectives
    if len(objectives) < 2:
        raise NoResultsError(f"the study of {view.where} has one objective: there is no pair to draw")
    runs, without_front = fronts_of_fold(view)
    groups = by_family(list(runs), FEW_LINES)
    pairs, left_out = pairs_of(objectives), []
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


def _further(results: Results) -> bool:
    """Whether there is more to see than in the fronts of size and error."""
    return bool(results.further_objectives)


FIGURE = StudyFigure(
    objectives_figure,
    caption="What each solver offers on the training data of one fold with its first seed, in each pair of the "
    "objectives; the staircase joins what no other ranker of the solver beats in the pair.",
    section="results",
    place=6,
    takes=("fold",),
    reported=_further,
)
