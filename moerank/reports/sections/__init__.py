"""The sections of a report, a file for each, and their order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from moerank.reports.content import Section
from moerank.reports.report import Progress, Report
from moerank.reports.sections.ablations import ablations
from moerank.reports.sections.features import features
from moerank.reports.sections.pairs import pairs
from moerank.reports.sections.problems import problems
from moerank.reports.sections.question import question
from moerank.reports.sections.reproduction import reproduction
from moerank.reports.sections.results import results
from moerank.reports.sections.solvers import solvers
from moerank.reports.sections.tests import tests
from moerank.reports.sections.verdict import verdict
from moerank.runs.problem import Problem

__all__ = ["sections"]

FIRST: tuple[Callable[[Report], Section], ...] = (verdict,)
OF_EACH_PROBLEM: tuple[Callable[[Report, Problem], Section], ...] = (results,)
LAST: tuple[Callable[[Report], Section], ...] = (
    *(tests, pairs, features, ablations),
    *(question, problems, solvers, reproduction),
)
"""The answer first, then what it rests on; what was asked, of what data and whom, for those who doubt it."""


def sections(report: Report, progress: Progress | None = None) -> list[Section]:
    """Return the sections that have something to say, in reading order.

    Parameters
    ----------
    report : Report
    progress : callable, optional
        Called as ``progress("sections", fraction, title)`` after each section.
    """
    makers: list[Callable[[], Section]] = [
        *(partial(make, report) for make in FIRST),
        *(partial(make, report, problem) for problem in report.problems for make in OF_EACH_PROBLEM),
        *(partial(make, report) for make in LAST),
    ]
    found = []
    for done, make in enumerate(makers, start=1):
        section = make()
        if section.paragraphs or section.tables or section.figures:
            found.append(section)
        if progress is not None:
            progress("sections", done / len(makers), section.title)
    return found
