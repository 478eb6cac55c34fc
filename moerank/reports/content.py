"""What a report says: question, problems, solvers, results, tests, features, ablations, how to reproduce."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
import pandas as pd

from moerank.analysis.comparison import front_quality, results_frame
from moerank.reports.findings import ablations_section, features_section, results_section, tests_section
from moerank.reports.table import Section, Table, number, text
from moerank.runs.problem import Problem
from moerank.runs.problem_files import shipped_problems
from moerank.runs.result import RunResult
from moerank.solvers import solvers
from moerank.studies.cell import Cell
from moerank.studies.study import Study

__all__ = ["Progress", "Report"]

Progress = Callable[[str, float, str], object]
"""Hears how far a report is: a word for the step, the share of it that is done, and what was done last."""

REFERENCES = ("ranksvm-primal", "rankrls", "fsmrank")
"""With whom solvers are compared unless the user says so: the first of these that the study has."""


class Report:
    """The content of a report on a study, whatever it is written as.

    Parameters
    ----------
    study : Study
    reference : str, optional
        Label of the solver that the others are compared with.

    Raises
    ------
    ValueError
        If no cell is finished, or the reference is none of the solvers.
    """

    def __init__(self, study: Study, reference: str | None = None) -> None:
        self.study = study
        self.results: dict[Cell, RunResult] = study.results()
        self._quality: dict[str, pd.DataFrame] = {}
        if not self.results:
            raise ValueError(f"{study.out} has no finished cell yet; run the study first")
        labels = list(dict.fromkeys(cell.solver.label for cell in self.results))
        known = [name for name in REFERENCES if name in labels]
        self.reference = reference or (known or labels)[0]
        if self.reference not in labels:
            raise ValueError(f"the study has no results of {self.reference}; choose one of {', '.join(labels)}")

    @cached_property
    def title(self) -> str:
        """The heading of the report."""
        return f"Feature selection on {_enumeration([problem.name for problem in self.problems])}"

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The numbers of all finished cells, see `results_frame`."""
        return results_frame(self.results)

    def quality(self, problem: Problem) -> pd.DataFrame:
        """Return the quality of each front on a problem, see `front_quality`."""
        if problem.name not in self._quality:
            self._quality[problem.name] = front_quality(self.results, problem.name)
        return self._quality[problem.name]

    @cached_property
    def problems(self) -> list[Problem]:
        """The problems with at least one finished cell."""
        names = {cell.problem.name for cell in self.results}
        return [problem for problem in self.study.problems if problem.name in names]

    def sections(self, progress: Progress | None = None) -> list[Section]:
        """Return all sections in reading order.

        Parameters
        ----------
        progress : callable, optional
            Called as ``progress(step, fraction, text)`` after each section.
        """
        makers: list[Callable[[], Section]] = [
            self._question,
            self._problems,
            self._solvers,
            *(partial(results_section, self, problem) for problem in self.problems),
            partial(tests_section, self),
            partial(features_section, self),
            partial(ablations_section, self),
            self._reproduction,
        ]
        found = []
        for done, make in enumerate(makers, start=1):
            section = make()
            if section.paragraphs or section.tables or section.figures:
                found.append(section)
            if progress is not None:
                progress("sections", done / len(makers), section.title)
        return found

    def _question(self) -> Section:
        cells, failures = self.study.cells(), self.study.failures()
        n_solvers = len({cell.solver.label for cell in self.results})
        asked = "does 1 solver" if n_solvers == 1 else f"do {n_solvers} solvers"
        paragraphs = [
            f"How well {asked} rank on {_enumeration([p.name for p in self.problems])}, with how many "
            f"features, and which differences are more than chance? {len(self.results)} of {len(cells)} runs are "
            "finished. Parameters are chosen by validation data unless they are given; values are those of test "
            "queries unless said otherwise; means are over folds, after seeds, with the standard error over folds."
        ]
        missing = [cell for cell in cells if cell not in self.results and cell not in failures]
        if missing:
            count = Counter((cell.problem.name, cell.solver.label) for cell in missing)
            listed = "; ".join(f"{solver} on {problem}: {n}" for (problem, solver), n in count.items())
            paragraphs.append(
                f"Missing runs: {listed}. The means of a solver are over the folds it has, those of solvers with "
                "different folds are not comparable."
            )
        table = Table("failures", "Runs that failed.", ["run", "message"])
        table.rows.extend([text(cell.label), text(failure["error"])] for cell, failure in failures.items())
        return Section("Question", paragraphs, [table] if failures else [])

    def _problems(self) -> Section:
        table = Table(
            "problems",
            "Data, metric of the objectives, and the number of features; queries are those in the training, validation "
            "and test part of the first finished fold.",
            ["problem", "data", "metric", "features", "queries"],
        )
        for problem in self.problems:
            fold = min(cell.fold for cell in self.results if cell.problem.name == problem.name)
            result = next(r for c, r in self.results.items() if (c.problem.name, c.fold) == (problem.name, fold))
            queries = " / ".join(str(len(ids)) for ids in result.queries.values())
            source = getattr(problem.data, "origin", problem.data.source)
            size = number(len(result.feature_names), 0)
            table.rows.append([text(problem.name), text(source), text(problem.metric.name), size, text(queries)])
        return Section("Problems", tables=[table, *filter(None, map(self._published, self.problems))])

    def _published(self, problem: Problem) -> Table | None:
        """All published results on a problem, with their sources."""
        if not problem.published:
            return None
        metrics = list(dict.fromkeys(metric for entry in problem.published for metric in entry.scores))
        columns = ["method", "solver here", "features", *metrics, "source"]
        table = Table(f"published-{problem.name}", f"{problem.name}: published results.", columns)
        for entry in problem.published:
            scores = [number(entry.scores.get(metric, np.nan)) for metric in metrics]
            size = number(np.nan if entry.features is None else entry.features, 1)
            table.rows.append([text(entry.method), text(entry.solver or ""), size, *scores, text(entry.source)])
        return table

    def _solvers(self) -> Section:
        caption = "Solvers, the paper of each, and the parameters that are given to it."
        table = Table("solvers", caption, ["solver", "family", "paper", "given parameters"])
        for spec in self.study.solvers:
            row = solvers()[spec.name]
            given = ", ".join(f"{key} = {value}" for key, value in spec.parameters.items()) or "none"
            table.rows.append([text(spec.label), text(row.family), text(f"{row.paper}, {row.year}"), text(given)])
        return Section("Solvers", tables=[table])

    def _reproduction(self) -> Section:
        versions = {name: set[str]() for result in self.results.values() for name in result.versions}
        for result in self.results.values():
            for name, version in result.versions.items():
                versions[name].add(version)
        table = Table("versions", "Versions of the libraries that the results come from.", ["library", "version"])
        table.rows.extend([text(name), text(", ".join(sorted(found)))] for name, found in versions.items())
        own = [problem.name for problem in self.study.problems if problem.name not in shipped_problems()]
        files = f" Put the path of its problem file in place of {_enumeration(own)}." if own else ""
        return Section(
            "How to reproduce",
            [
                "Every run draws from a seed that is derived from the names of its problem, fold and solver and the "
                "number of its seed, so that with these versions the same command gives the same results, on any "
                f"number of processes.{files}"
            ],
            [table],
            code="\n".join(self.study.commands()),
        )


def _enumeration(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
