"""The results on a problem: what each solver reached, and the quality of what it offers."""

from __future__ import annotations

from functools import partial

import numpy as np

from moerank.analysis.comparison import against_reference
from moerank.analysis.results import NoResultsError, Results
from moerank.reports.content import Section, Table, mark_best, number, text, with_error
from moerank.reports.illustrations import illustrations
from moerank.reports.report import ALPHA, Report
from moerank.runs.problem import Problem
from moerank.statistics import mean_and_error

__all__ = ["results"]

UNEQUAL = "no best is marked, for some solvers lack folds that others have"


def results(report: Report, problem: Problem) -> Section:
    """Return what each solver reached on a problem, and the quality of what it offers."""
    return Section(
        f"Results: {problem.name}",
        tables=[_means(report, problem), _fronts(report, problem)],
        illustrate=[partial(illustrations, report, "results", problem)],
        explored=problem.name,
    )


def _means(report: Report, problem: Problem) -> Table:
    """Return the means of each solver, beside published ones; * for those that differ from the reference."""
    mine = report.results.of(problem.name)
    metrics, further = mine.metrics, mine.further_objectives
    published = {entry.solver: entry for entry in problem.published if entry.solver}
    columns = ["solver", "runs", "features", *further]
    for metric in metrics:
        columns += [metric, *(["published"] if published else [])]
    on_training = f" {', '.join(further)}: on the training data." if further else ""
    comparable = _have_the_same_folds(mine)
    best = "the best of a column is bold" if comparable else UNEQUAL
    table = Table(
        f"results-{problem.name}",
        f"{problem.name}: test queries, means over folds, after seeds, ± standard error; {best}. "
        f"Seconds are the processor's.{on_training}",
        [*columns, "training (s)", "tuning (s)"],
        note=f"* differs from {report.reference} on the same queries (paired t test, Holm, {ALPHA:.0%})",
    )
    significant = {metric: _significant(report, problem, metric) for metric in metrics}
    for solver, means in mine.means().items():
        entries = [text(solver), number(means.n_runs, 0), with_error(*means.mean("n_features"), digits=1)]
        entries += [with_error(*means.mean(objective)) for objective in further]
        for metric in metrics:
            entry = with_error(*means.mean(f"test {metric}"))
            entry.mark = "*" if solver in significant[metric] else ""
            entries.append(entry)
            if published:
                scores = published[solver].scores if solver in published else {}  # not of other parameters
                entries.append(number(scores.get(metric, np.nan)))
        entries += [with_error(*means.mean(f"{kind} seconds"), digits=2) for kind in ("training", "tuning")]
        table.rows.append(entries)
    for metric in metrics if comparable else ():
        column = table.columns.index(metric)
        mark_best([row[column] for row in table.rows])
    return table


def _have_the_same_folds(results: Results) -> bool:
    """Whether means over folds can be compared: those of some folds are better for all solvers."""
    return len({frozenset(folds) for folds in results.by_solver().values()}) == 1


def _significant(report: Report, problem: Problem, metric: str) -> set[str]:
    try:
        table = against_reference(report.results.of(problem.name), report.reference, metric)
    except NoResultsError:
        return set()
    return set(table.loc[table["holm"] <= ALPHA, "solver"])


def _fronts(report: Report, problem: Problem) -> Table:
    """Return the quality of what each solver offers."""
    quality = report.quality(problem)
    objectives = report.results.of(problem.name).objectives
    table = Table(
        f"fronts-{problem.name}",
        f"{problem.name}: quality of what each solver offers, on the training data. Hypervolume as a share of the "
        f"{_box(objectives)}; IGD+ to the joint front of all solvers.",
        ["solver", "hypervolume", "IGD+"],
    )
    for solver, rows in quality.groupby("solver", sort=False):
        folds = rows.groupby("fold").mean(numeric_only=True)
        values = [with_error(*mean_and_error(folds[name])) for name in ("hypervolume", "igd_plus")]
        table.rows.append([text(solver), *values])
    if _have_the_same_folds(report.results.of(problem.name)):
        mark_best([row[1] for row in table.rows])
        mark_best([row[2] for row in table.rows], largest=False)
    return table


def _box(objectives: list[str]) -> str:
    """Return the words for the box in which fronts are compared, see `front_box`."""
    known = {"features": "all features", "error": "the error 1"}
    reach = [known[name] for name in objectives if name in known]
    further = [name for name in objectives if name not in known]
    sides = [f"from the origin to {' and '.join(reach)}"] if reach else []
    sides += [f"from the least to the largest {name} of all members on the fold" for name in further]
    return f"{'rectangle' if len(objectives) == 2 else 'box'} {', '.join(sides)}"
