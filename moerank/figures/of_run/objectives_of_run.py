"""Objectives: members of a front in each pair of more than two objectives."""

from __future__ import annotations

from matplotlib.figure import Figure

from moerank.figures.figure import RunFigure, View
from moerank.figures.of_study.objectives_of_study import objectives_figure
from moerank.studies.result import Result
from moerank.studies.results import Results


def run_objectives_figure(result: Result) -> Figure:
    """Draw a panel for each pair of objectives, as the figure of a study does for several solvers.

    A single objective is a NoResultsError.
    """
    return objectives_figure(View(Results([result]), None, (), result.fold, result.metrics[0]))


FIGURE = RunFigure(
    run_objectives_figure,
    shows=lambda result: min(len(result.objectives), len(result.front)) > 1 and bool(result.further_objectives),
)
