"""Contents of reports: a study with its results, sections, tables and figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from moerank.figures.figure import Section as Place
from moerank.figures.of_study import FIGURES
from moerank.studies.comparison import hypervolume_pairs, query_pairs
from moerank.studies.problem import Problem
from moerank.studies.results import NoResultsError, Results, front_quality
from moerank.studies.study import Study

__all__ = [
    "ALPHA",
    "Report",
    "enumeration",
    "Entry",
    "Illustration",
    "Section",
    "Table",
    "mark_best",
    "number",
    "p_value",
    "text",
    "with_error",
    "illustrations",
]

REFERENCES = ("ranksvm-primal", "rankrls", "fsmrank")
"""Default references, in the order of preference."""

ALPHA = 0.05
"""The level of the tests."""


class Report:
    """A study and its results, from which sections are made.

    Parameters
    ----------
    study : Study
    reference : str, optional
        Label of the solver that the others are compared with.

    Attributes
    ----------
    study : Study
    results : Results
    reference : str

    Raises
    ------
    NoResultsError
        If no cell is finished.
    ValueError
        If the reference is none of the solvers.
    """

    def __init__(self, study: Study, reference: str | None = None) -> None:
        self.study = study
        self.results = Results(study.results())
        self._quality: dict[str, pd.DataFrame] = {}
        if not self.results:
            raise NoResultsError(f"{study.out} has no finished cell yet; run the study first")
        labels = self.results.solvers
        known = [name for name in REFERENCES if name in labels]
        self.reference = reference or (known or labels)[0]
        if self.reference not in labels:
            raise ValueError(f"the study has no results of {self.reference}; choose one of {', '.join(labels)}")

    @cached_property
    def title(self) -> str:
        """The heading of the report."""
        return f"Feature selection on {enumeration([problem.name for problem in self.problems])}"

    @property
    def frame(self) -> pd.DataFrame:
        """The numbers of all finished cells, see `results_frame`."""
        return self.results.frame

    @cached_property
    def problems(self) -> list[Problem]:
        """The problems with at least one finished cell."""
        names = set(self.results.problems)
        return [problem for problem in self.study.problems if problem.name in names]

    @property
    def n_missing(self) -> int:
        """How many cells are not finished."""
        return len(self.study.cells()) - len(self.results)

    def quality(self, problem: Problem) -> pd.DataFrame:
        """Return the quality of each front on a problem, see `front_quality`."""
        if problem.name not in self._quality:
            self._quality[problem.name] = front_quality(self.results.of(problem.name))
        return self._quality[problem.name]

    def query_pairs(self, problem: Problem) -> pd.DataFrame:
        """Return the tests between all pairs of solvers on the test queries of a problem, see `query_pairs`."""
        results = self.results.of(problem.name)
        return query_pairs(results, results.metric)

    def hypervolume_pairs(self, problem: Problem) -> pd.DataFrame:
        """Return the tests between all pairs of searches by their fronts on a problem, see `hypervolume_pairs`."""
        return hypervolume_pairs(self.quality(problem), self.results.of(problem.name).searches, ALPHA)

    @property
    def pairs(self) -> pd.DataFrame:
        """The tests between all pairs on all problems, with the ``problem`` and what is compared, the ``measure``."""
        frames = []
        for problem in self.problems:
            metric = self.results.of(problem.name).metric
            found = {metric: self.query_pairs(problem), "hypervolume": self.hypervolume_pairs(problem)}
            for measure, frame in found.items():
                frame.insert(0, "problem", problem.name)
                frame.insert(1, "measure", measure)
                frames.append(frame)
        return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)


def enumeration(names: list[str]) -> str:
    """Return names as a sentence lists them.

    Examples
    --------
    >>> enumeration(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


@dataclass
class Entry:
    """One cell of a table.

    Attributes
    ----------
    text : str
    value : float, optional
        What the column is sorted by; None for text.
    best : bool
        Whether it is the best of its column.
    mark : str
        A sign of significance behind the text.
    """

    text: str
    value: float | None = None
    best: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """Rows under column heads.

    Attributes
    ----------
    name : str
        A word for files and links.
    caption : str
        A sentence that says what is shown.
    columns : list of str
    rows : list of list of Entry
    note : str
        What the marks mean.
    """

    name: str
    caption: str
    columns: list[str]
    rows: list[list[Entry]] = field(default_factory=list)
    note: str = ""

    def numeric(self) -> list[bool]:
        """Whether each column holds numbers, which stand to the right."""
        return [any(row[column].value is not None for row in self.rows) for column in range(len(self.columns))]

    def marked(self) -> bool:
        """Whether any entry has a mark, which `note` explains."""
        return any(entry.mark for row in self.rows for entry in row)


@dataclass(frozen=True)
class Illustration:
    """A figure, and the sentence that says what it shows."""

    figure: Figure
    caption: str


@dataclass
class Section:
    """A part of a report.

    Attributes
    ----------
    title : str
    paragraphs : list of str
    tables : list of Table
    illustrate : list of callable
        Draw `figures`, once a format asks for them: tables are written without.
    code : str
        Commands, set apart.
    explored : str
        The problem whose fronts a page lets readers explore here; "" for none.
    """

    title: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    illustrate: list[Callable[[], dict[str, Illustration]]] = field(default_factory=list)
    code: str = ""
    explored: str = ""

    @cached_property
    def figures(self) -> dict[str, Illustration]:
        """The figures by a word for files and links; they are drawn when they are first asked for."""
        return {name: figure for draw in self.illustrate for name, figure in draw().items()}


def text(value: object) -> Entry:
    """Return an entry that is sorted as text."""
    return Entry(str(value))


def number(value: float, digits: int = 4) -> Entry:
    """Return an entry with a fixed number of decimals, empty for NaN."""
    return Entry("" if np.isnan(value) else f"{value:.{digits}f}", None if np.isnan(value) else float(value))


def with_error(mean: float, error: float, digits: int = 4) -> Entry:
    """Return a mean with its standard error; a mean of one value has none."""
    plain = number(mean, digits)
    return plain if np.isnan(error) or np.isnan(mean) else Entry(f"{plain.text} ± {error:.{digits}f}", plain.value)


def p_value(p: float) -> Entry:
    """Return an entry with three decimals; a p value is never printed as nothing."""
    return Entry("< 0.001" if p < 0.0005 else f"{p:.3f}", float(p))


def mark_best(entries: list[Entry], *, largest: bool = True) -> None:
    """Mark the best values of a column, as they are printed: what looks equal is equally good."""
    shown = [(entry, float(entry.text.split()[0])) for entry in entries if entry.value is not None]
    if len(shown) > 1:
        best = (max if largest else min)(value for _, value in shown)
        for entry, value in shown:
            entry.best = value == best


def illustrations(report: Report, section: Place, problem: Problem | None = None) -> dict[str, Illustration]:
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
