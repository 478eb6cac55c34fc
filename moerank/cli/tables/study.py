"""The tables of a study: its cells, and the means of its solvers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from moerank.analysis.results import Results
from moerank.cli.tables import FittedTable, new_table
from moerank.runs.problem import Problem
from moerank.studies.cell import Cell

__all__ = ["cell_table", "study_table"]


def cell_table(states: Mapping[Cell, str]) -> FittedTable:
    """Return how many cells of each solver on each problem are finished, failed or open."""
    table = new_table(None)
    kinds = ("finished", "failed", "open")
    for head in ("problem", "solver", "cells", *kinds):
        table.add_column(head, justify="left" if head in ("problem", "solver") else "right")
    rows: dict[tuple[str, str], Counter[str]] = {}
    for cell, state in states.items():
        rows.setdefault((cell.problem.name, cell.solver.label), Counter())[state] += 1
    for (problem, solver), counts in rows.items():
        table.add_row(problem, solver, str(counts.total()), *(str(counts[kind]) for kind in kinds))
    counts = Counter(states.values())
    table.add_section()
    table.add_row("all", "", str(counts.total()), *(str(counts[kind]) for kind in kinds))
    return table


def study_table(problem: Problem, results: Results) -> FittedTable:
    """Return the means of each solver over folds and seeds, with standard errors over folds, and published means.

    Parameters
    ----------
    problem : Problem
    results : Results
        Of this problem.
    """
    table = new_table(f"{problem.name}: test means over folds and seeds ± standard error over folds")
    table.add_column("solver")
    published = {entry.solver: entry for entry in problem.published}
    for head in ("cells", "features", *results.further_objectives, *results.metrics, "seconds"):
        table.add_column(head, justify="right")
        if head in results.metrics and published:
            table.add_column("published", justify="right")
    for solver, means in results.means().items():
        cells = [str(means.n_runs), _with_error(*means.mean("n_features"), 1)]
        cells += [_with_error(*means.mean(objective), 4) for objective in results.further_objectives]
        for metric in results.metrics:
            scores = published[solver].scores if solver in published else {}
            cells += [_with_error(*means.mean(f"test {metric}"), 4)]
            cells += [f"{scores[metric]:.4f}" if metric in scores else ""] if published else []
        table.add_row(solver, *cells, _with_error(*means.mean("seconds"), 1))
    return table


def _with_error(mean: float, error: float, digits: int) -> str:
    """Return the mean over folds and its standard error, which a single fold does not have."""
    return f"{mean:.{digits}f}" if np.isnan(error) else f"{mean:.{digits}f} ± {error:.{digits}f}"
