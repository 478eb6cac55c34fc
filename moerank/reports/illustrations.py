"""The figures of a section: those that say of themselves that they belong there."""

from __future__ import annotations

from moerank.analysis.results import NoResultsError
from moerank.figures.of_study import FIGURES
from moerank.figures.study_figure import Section
from moerank.reports.content import Illustration
from moerank.reports.report import Report
from moerank.runs.problem import Problem

__all__ = ["illustrations"]


def illustrations(report: Report, section: Section, problem: Problem | None = None) -> dict[str, Illustration]:
    """Return the figures of a section in their order, by a word for files and links.

    Parameters
    ----------
    report : Report
    section : str
    problem : Problem, optional
        What they are of; without it, those of several problems.
    """
    results = report.results if problem is None else report.results.of(problem.name)
    here = {
        name: figure
        for name, figure in FIGURES.items()
        if figure.section == section and figure.of_problem == (problem is not None) and figure.reported(results)
    }
    found = {}
    for name, figure in sorted(here.items(), key=lambda item: item[1].place):
        try:
            drawn = figure.draw(results, problem)
        except NoResultsError:  # this study has nothing of the kind
            continue
        found[name if problem is None else f"{name}-{problem.name}"] = Illustration(drawn, figure.caption)
    return found
