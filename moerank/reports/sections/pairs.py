"""Which solvers are better than which: tests between all pairs of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moerank.analysis.pairs import fewest_cells, standings
from moerank.reports.content import Section, Table, number, text
from moerank.reports.report import ALPHA, Report
from moerank.runs.problem import Problem

__all__ = ["pairs"]

MOST_NAMES = 8
"""More solvers than these are not read in a cell."""


def pairs(report: Report) -> Section:
    """Return how many others each solver is better and worse than, and which: on test queries, and as a search."""
    section = Section("All pairs of solvers")
    for problem in report.problems:
        by_queries, by_hypervolume = report.query_pairs(problem), report.hypervolume_pairs(problem)
        if len(by_queries):
            section.tables.append(_of_queries(report, problem, by_queries))
        if by_hypervolume["p"].notna().any():
            section.tables.append(_of_hypervolumes(report, problem, by_hypervolume))
        elif len(by_hypervolume):
            section.paragraphs.append(_too_few(problem, by_hypervolume))
    if section.tables:
        section.paragraphs.insert(
            0,
            f"A solver is better or worse than another where the p value, adjusted by Holm's method over all tests of "
            f"a table, is at most {ALPHA}. Where it is not, nothing is shown, and least of all that two are equal. "
            "moerank report --format pairs writes every difference and p value.",
        )
    return section


def _of_queries(report: Report, problem: Problem, found: pd.DataFrame) -> Table:
    """Return the standings of all solvers on test queries."""
    results = report.results.of(problem.name)
    caption = (
        f"{problem.name}: {len(results.solvers)} solvers by {results.metric}, means over folds, after seeds, and which "
        f"of them differ. {_tests(found)}: two-sided paired t tests over the {_span(found)} test queries of all folds "
        "that both have, each query with its mean over the seeds. The queries of a fold are ranked by rankers that are "
        "trained on the same data, so that the tests speak of other queries, and not of other training data."
    )
    values = {solver: means.mean(f"test {results.metric}")[0] for solver, means in results.means().items()}
    return _standings(f"pairs-{problem.name}", caption, results.metric, found, values)


def _of_hypervolumes(report: Report, problem: Problem, found: pd.DataFrame) -> Table:
    """Return the standings of the searches by their fronts."""
    tested = found.dropna(subset="p")
    untested = len(found) - len(tested)
    left = (
        f" {untested} pairs with fewer than {fewest_cells(len(found), ALPHA)} cells are not tested." if untested else ""
    )
    searches = report.results.of(problem.name).searches
    caption = (
        f"{problem.name}: {len(searches)} searches by the hypervolume of their last fronts on the training data, means "
        f"over folds, after seeds, and which of them differ. {_tests(tested)}: two-sided signed-rank tests over the "
        f"{_span(tested)} cells, a fold and a seed each, that both have.{left} The seeds of a fold share its data, so "
        "that the tests speak of other draws of the searches on these folds, and not of other data. A larger "
        "hypervolume is a better search; whether it ranks other queries better, the table above says."
    )
    folds = report.quality(problem).groupby(["solver", "fold"])["hypervolume"].mean()
    return _standings(
        f"pairs-hypervolume-{problem.name}", caption, "hypervolume", tested, folds.groupby("solver").mean().to_dict()
    )


def _standings(name: str, caption: str, measure: str, found: pd.DataFrame, values: dict[str, float]) -> Table:
    """Return a table of the solvers, the best mean first, with whom each of them is better than."""
    table = Table(name, caption, ["solver", measure, "better", "worse", "undecided", "better than"])
    ahead = standings(found, ALPHA)
    ranked = sorted(ahead, key=lambda solver: -values[solver])
    for solver in ranked:
        counts = [number(len(ahead[solver][kind]), 0) for kind in ("better", "worse", "undecided")]
        beaten = [other for other in ranked if other in ahead[solver]["better"]]
        more = len(beaten) - MOST_NAMES
        named = ", ".join(beaten[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
        table.rows.append([text(solver), number(values[solver]), *counts, text(named)])
    return table


def _too_few(problem: Problem, found: pd.DataFrame) -> str:
    """Return why the hypervolumes of the searches on a problem are not tested."""
    needed = fewest_cells(len(found), ALPHA)
    return (
        f"{problem.name}: the hypervolumes of the searches are not tested. Their pairs, {len(found)} of them, have "
        f"{_span(found)} cells in common, a fold and a seed each; with fewer than {needed} no signed-rank test can "
        f"come down to {ALPHA}, adjusted for so many."
    )


def _tests(found: pd.DataFrame) -> str:
    """Return how many tests there are, and how many of them find a difference."""
    n_tests, shown = len(found), int(np.count_nonzero(found["holm"] <= ALPHA))
    finds = "finds" if shown == 1 else "find"
    tests = "1 test" if n_tests == 1 else f"{n_tests:,} tests, one for each pair"
    return f"{tests}, of which {shown:,} {finds} a difference"


def _span(found: pd.DataFrame) -> str:
    """Return on how many queries or cells the tests are, from the fewest to the most."""
    fewest, most = int(found["n"].min()), int(found["n"].max())
    return f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
