"""Contents of reports: studies with their results, sections, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

REFERENCES = ("ranksvm-primal", "rankrls", "fsmrank")
"""Default references in order of preference."""

ALPHA = 0.05
"""Level of significance."""


class Report:
    """A study with its results, the solver that all others are compared with, and the metrics of the tables.

    Parameters
    ----------
    study : Study
    reference : str, optional
        Label of a solver; by default the first one of `REFERENCES`.
    metrics : sequence of str, default ()
        Metrics for the tables of results in place of those of the study, any of NDCG@1 to 10, P@1 to 10, MAP, MeanNDCG.

    Raises
    ------
    NoResultsError
        If no cell of the study is finished.
    ValueError
        For a solver or a metric without results.
    """

    def __init__(self, study: Study, reference: str | None = None, metrics: Sequence[str] = ()) -> None:
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
        self._metrics = metrics
        for problem in self.problems:
            self.metrics(problem)

    @cached_property
    def title(self) -> str:
        """The heading of the report."""
        return f"Feature selection on {enumeration([problem.name for problem in self.problems])}"

    @property
    def frame(self) -> pd.DataFrame:
        """The numbers of all finished cells."""
        return self.results.frame

    @cached_property
    def problems(self) -> list[Problem]:
        """The problems with at least one finished cell, and the results of other tools on them."""
        names = set(self.results.problems)
        return [problem for problem in self.study.problems if problem.name in names]

    @property
    def n_missing(self) -> int:
        """The number of cells that are not finished."""
        return len(self.study.cells()) - len(self.results)

    def metrics(self, problem: Problem) -> list[str]:
        """Return the metrics of the table of results on a problem."""
        mine = self.results.of(problem.name)
        return [mine.named_metric(name, mine.kept_metrics) for name in self._metrics] or mine.metrics

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
        """The tests between all pairs on all problems, with the ``problem`` and the ``measure``."""
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
    """Return names as a list in a sentence.

    Examples
    --------
    >>> enumeration(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


@dataclass
class Entry:
    """Cell of a table, with the value to sort by (None for text), and a mark of significance behind the text."""

    text: str
    value: float | None = None
    best: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """Table with a name for links, a caption of one sentence, column heads, rows, and a note on what they mean."""

    name: str
    caption: str
    columns: list[str]
    rows: list[list[Entry]] = field(default_factory=list)
    note: str = ""

    def add(self, *cells: Entry | str | int) -> None:
        """Add a row, in which texts and counts stand for entries of them."""
        entries = (Entry(cell) if isinstance(cell, str) else cell for cell in cells)
        self.rows.append([entry if isinstance(entry, Entry) else number(entry, 0) for entry in entries])

    def numeric(self) -> list[bool]:
        """Whether each column holds numbers, which are aligned to the right."""
        return [any(row[column].value is not None for row in self.rows) for column in range(len(self.columns))]


@dataclass(frozen=True)
class Illustration:
    """Figure with its caption."""

    figure: Figure
    caption: str


@dataclass
class Section:
    """Section of a report, with functions that draw its figures, commands, and the problem of an explorer of fronts."""

    title: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    illustrate: list[Callable[[], dict[str, Illustration]]] = field(default_factory=list)
    code: str = ""
    explored: str = ""

    @cached_property
    def figures(self) -> dict[str, Illustration]:
        """The figures by a name for links, drawn at the first access."""
        return {name: figure for draw in self.illustrate for name, figure in draw().items()}


def number(value: float, digits: int = 4) -> Entry:
    """Return an entry with a fixed number of decimals, which is empty for NaN."""
    return Entry("" if np.isnan(value) else f"{value:.{digits}f}", None if np.isnan(value) else float(value))


def with_error(mean: float, error: float, digits: int = 4) -> Entry:
    """Return a mean with its standard error, which is NaN for a single value."""
    plain = number(mean, digits)
    return plain if np.isnan(error) or np.isnan(mean) else Entry(f"{plain.text} ± {error:.{digits}f}", plain.value)


def p_value(p: float) -> Entry:
    """Return an entry with three decimals, or "< 0.001"."""
    return Entry("< 0.001" if p < 0.0005 else f"{p:.3f}", float(p))


def mark_best(entries: list[Entry], *, largest: bool = True) -> None:
    """Mark the best values of a column, among them all that are printed alike."""
    shown = [(entry, float(entry.text.split()[0])) for entry in entries if entry.value is not None]
    if len(shown) > 1:
        best = (max if largest else min)(value for _, value in shown)
        for entry, value in shown:
            entry.best = value == best


def illustrations(report: Report, section: Place, problem: Problem | None = None) -> dict[str, Illustration]:
    """Return the figures of a section in their order, by a name for links: those of one problem, or of all."""
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
        except NoResultsError:  # the study has no data for this figure
            continue
        found[name if problem is None else f"{name}-{problem.name}"] = Illustration(drawn, figure.caption)
    return found
