"""Objectives: members of a front in each pair of more than two objectives."""

from __future__ import annotations

from matplotlib.figure import Figure

from moerank.figures.figure import RunFigure, View
from moerank.figures.of_study.objectives_of_study import objectives_figure as of_study
from moerank.studies.result import Result
from moerank.studies.results import Results


def objectives_figure(result: Result) -> Figure:
    """Draw a panel for each pair of objectives, as the figure of a study does for several solvers.

    A single objective is a NoResultsError.
    """
    return of_study(View(Results([result]), None, (), result.fold, result.metrics[0]))


FIGURE = RunFigure(
    objectives_figure,
    shows=lambda result: min(len(result.objectives), len(result.front)) > 1 and bool(result.further_objectives),
)
