"""The problems of a study: their data, and what was published on them."""

from __future__ import annotations

import numpy as np

from moerank.reports.content import Section, Table, number, text
from moerank.reports.report import Report
from moerank.runs.problem import Problem

__all__ = ["problems"]


def problems(report: Report) -> Section:
    """Return what the data are, and the published results with their sources."""
    table = Table(
        "problems",
        "Data, metric of the objectives, and the number of features; queries are those in the training, validation "
        "and test part of the first finished fold.",
        ["problem", "data", "metric", "features", "queries"],
    )
    for problem in report.problems:
        results = report.results.of(problem.name)
        result = next(result for result in results if result.fold == min(results.folds))
        queries = " / ".join(str(len(ids)) for ids in result.queries.values())
        source = getattr(problem.data, "origin", problem.data.source)
        size = number(len(result.feature_names), 0)
        table.rows.append([text(problem.name), text(source), text(problem.metric.name), size, text(queries)])
    return Section("Problems", tables=[table, *filter(None, map(_published, report.problems))])


def _published(problem: Problem) -> Table | None:
    """Return all published results on a problem, with their sources."""
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
