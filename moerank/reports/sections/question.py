"""The question of a study, and which runs it lacks."""

from __future__ import annotations

from collections import Counter

from moerank.reports.content import Section, Table, text
from moerank.reports.report import Report, enumeration

__all__ = ["question"]


def question(report: Report) -> Section:
    """Return what was asked, and which runs are missing or failed."""
    cells, failures = report.study.cells(), report.study.failures()
    n_solvers = len(report.results.solvers)
    asked = "does 1 solver" if n_solvers == 1 else f"do {n_solvers} solvers"
    paragraphs = [
        f"How well {asked} rank on {enumeration([p.name for p in report.problems])}, with how many "
        f"features, and which differences are more than chance? {len(report.results)} of {len(cells)} runs are "
        "finished. Parameters are chosen by validation data unless they are given; values are those of test "
        "queries unless said otherwise; means are over folds, after seeds, with the standard error over folds."
    ]
    finished = {(result.problem, result.fold, result.solver, result.seed) for result in report.results}
    missing = [
        cell
        for cell in cells
        if (cell.problem.name, cell.fold, cell.solver.label, cell.seed) not in finished and cell not in failures
    ]
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
