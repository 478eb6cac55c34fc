"""Which features are chosen, and how stably."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np

from moerank.analysis.sizes import offers_sizes
from moerank.analysis.stability import feature_stability
from moerank.reports.content import Section, Table, number, text, with_error
from moerank.reports.illustrations import illustrations
from moerank.reports.report import Report
from moerank.runs.problem import Problem

__all__ = ["features"]


def features(report: Report) -> Section:
    """Return which features are chosen, and how stably."""
    section = Section("Features chosen")
    for problem in report.problems:
        table = _most_chosen(report, problem)
        if table.rows:
            section.tables.append(table)
            section.illustrate.append(partial(illustrations, report, "features", problem))
    return section


def _most_chosen(report: Report, problem: Problem) -> Table:
    """Return the features that each solver chooses most often; those that offer one size have no row."""
    results = report.results.of(problem.name)
    means = results.means()
    table = Table(
        f"features-{problem.name}",
        f"{problem.name}: features chosen most often over folds and seeds, with the share of the runs. Stability "
        "is the mean pairwise Jaccard index of the choices, then corrected for chance.",
        ["solver", "features", "stability", "corrected", "most chosen"],
    )
    for solver, folds in results.by_solver().items():
        if not offers_sizes(folds):
            continue
        runs = [run for seeds in folds.values() for run in seeds]
        chosen = [run.best.features for run in runs]
        names = runs[0].feature_names
        count = Counter(names[feature] for features in chosen for feature in features)
        often = ", ".join(f"{name} ({n / len(runs):.0%})" for name, n in count.most_common(8))
        stable = feature_stability(chosen, len(names)) if len(runs) > 1 else (np.nan, np.nan)
        size = with_error(*means[solver].mean("n_features"), digits=1)
        table.rows.append([text(solver), size, *(number(s, 2) for s in stable), text(often)])
    return table
