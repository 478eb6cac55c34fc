"""What a report is about: a study, its results, and what several sections share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import pandas as pd

from moerank.analysis.fronts import front_quality
from moerank.analysis.pairs import hypervolume_pairs, query_pairs
from moerank.analysis.results import NoResultsError, Results
from moerank.runs.problem import Problem
from moerank.studies.study import Study

__all__ = ["ALPHA", "Progress", "Report", "enumeration"]

Progress: TypeAlias = Callable[[str, float, str], object]
"""Hears how far a report is: a word for the step, the share of it that is done, and what was done last."""

REFERENCES = ("ranksvm-primal", "rankrls", "fsmrank")
"""With whom solvers are compared unless the user says so: the first of these that the study has."""

ALPHA = 0.05
"""The level of the tests."""


class Report:
    """What the sections of a report speak of, whatever it is written as.

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
