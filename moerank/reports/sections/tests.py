"""Which differences between solvers are more than chance."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from moerank.analysis.comparison import against_reference, solver_ranks, verdicts
from moerank.analysis.results import NoResultsError
from moerank.reports.content import Entry, Section, Table, number, p_value, text, with_error
from moerank.reports.illustrations import illustrations
from moerank.reports.report import ALPHA, Report
from moerank.runs.problem import Problem
from moerank.verdict import LEVEL

__all__ = ["tests"]


def tests(report: Report) -> Section:
    """Return which differences are more than chance."""
    tables, lacking = [], []
    for problem in report.problems:
        try:
            tables.append(_against_reference(report, problem))
        except NoResultsError:
            lacking.append(problem.name)
    tables += [_verdicts(report, problem) for problem in report.problems]
    section = Section("Tests", tables=[table for table in tables if table.rows])
    if lacking:
        section.paragraphs.append(f"No run of {report.reference} is finished on {', '.join(lacking)}: no tests there.")
    metric = report.results.metric
    try:
        ranks = solver_ranks(report.results, metric)
    except NoResultsError:
        return section
    section.paragraphs.append(
        f"The solvers are ranked by {metric} on each of the {ranks.test.n_blocks} folds of "
        f"{', '.join(ranks.problems)} that all of them have. The Friedman test of whether they differ at all has "
        f"p = {ranks.test.p:.3g}; two solvers differ beyond chance if their mean ranks are at least "
        f"{ranks.test.critical_difference:.2f} apart (Nemenyi test, {ALPHA:.0%})."
    )
    section.illustrate.append(partial(illustrations, report, "tests"))
    return section


def _against_reference(report: Report, problem: Problem) -> Table:
    """Return the differences from the reference on a problem."""
    results = report.results.of(problem.name)
    table = Table(
        f"tests-{problem.name}",
        f"{problem.name}: {results.metric} of each solver minus that of {report.reference}, query by query; wins, ties "
        "and losses count queries. p is that of the paired t test; Holm's method adjusts it for the number of rows, "
        f"bold up to {ALPHA}.",
        ["solver", "difference", "wins / ties / losses", "p", "Holm"],
    )
    for row in against_reference(results, report.reference, results.metric).itertuples():
        table.rows.append(
            [
                text(row.solver),
                with_error(row.difference, row.error),
                Entry(f"{row.wins} / {row.ties} / {row.losses}", float(row.wins - row.losses)),
                p_value(row.p),
                replace(p_value(row.holm), best=row.holm <= ALPHA),
            ]
        )
    return table


def _verdicts(report: Report, problem: Problem) -> Table:
    """Return what each selection on a problem loses against the same ranker on all features."""
    results = report.results.of(problem.name)
    table = Table(
        f"verdicts-{problem.name}",
        f"{problem.name}: what selection costs. {results.metric} of the chosen features minus that of the same ranker "
        "on all features, over the test queries of all folds, with its standard error; and the number of runs in "
        f"which a paired t test detects a loss or a gain at the level {LEVEL}, or two one-sided tests show that the "
        "difference is within the margin. The same ranker is the backend of a search, the own ranker of a filter or "
        "wrapper, and RankSVM beside the embedded methods that have none; validation chose its parameters with all "
        "features.",
        ["solver", "against", "features", "difference", "queries", "runs", "loss", "gain", "equivalent"],
    )
    for row in verdicts(results).itertuples():
        counts = (row.queries, row.runs, row.loss, row.gain, row.equivalent)
        table.rows.append(
            [
                text(row.solver),
                text(row.against or "its backend"),
                number(row.n_features, 1),
                with_error(row.difference, row.error),
                *(number(count, 0) for count in counts),
            ]
        )
    return table
