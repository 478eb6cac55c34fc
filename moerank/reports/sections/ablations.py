"""What each part of MOFSRank is worth."""

from __future__ import annotations

from functools import partial

from moerank.analysis.comparison import compare_runs
from moerank.reports.content import Section, Table, p_value, text, with_error
from moerank.reports.illustrations import illustrations
from moerank.reports.report import Report
from moerank.runs.problem import Problem
from moerank.solvers import ablated, with_ablations
from moerank.statistics import holm

__all__ = ["ablations"]


def ablations(report: Report) -> Section:
    """Return what each part of MOFSRank is worth."""
    section = Section("Ablations")
    for problem in report.problems:
        table = _differences(report, problem)
        if table is not None:
            section.tables.append(table)
            section.illustrate.append(partial(illustrations, report, "ablations", problem))
    return section


def _differences(report: Report, problem: Problem) -> Table | None:
    """Return the differences from MOFSRank on the same folds with the same seeds; None where there is no such pair."""
    results = report.results.of(problem.name)
    full, *_ = with_ablations()
    runs = {solver: {(r.fold, r.seed) for r in results if r.solver == solver} for solver in with_ablations()}
    names = [name for name in ablated() if runs[name] & runs[full]]
    if not names:
        return None
    quality = report.quality(problem).set_index(["solver", "fold", "seed"])["hypervolume"]
    frame = results.frame.set_index(["solver", "fold", "seed"])
    measures = {
        "hypervolume": quality,
        f"test {results.metric}": frame[f"test {results.metric}"],
        "features": frame["n_features"].astype(float),
        **{name: frame[name] for name in results.further_objectives},
    }
    table = Table(
        f"ablations-{problem.name}",
        f"{problem.name}: MOFSRank without one of its parts minus MOFSRank with all, on the same folds with "
        "the same seeds: means over folds, after seeds, ± standard error; p of the paired t test over the folds, "
        "adjusted by Holm's method within a column.",
        ["without", *(head for name in measures for head in (name, "p"))],
    )
    columns = [[compare_runs(series, name, full) for name in names] for series in measures.values()]
    adjusted = [holm([test.p for test in column]) for column in columns]
    for row, name in enumerate(names):
        entries = [text(ablated()[name])]
        for measure, column, p in zip(measures, columns, adjusted, strict=True):
            digits = 1 if measure == "features" else 4
            entries += [with_error(column[row].difference, column[row].error, digits), p_value(p[row])]
        table.rows.append(entries)
    return table
