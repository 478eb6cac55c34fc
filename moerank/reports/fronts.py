"""What the script of a page draws fronts from: the members of all runs, in few letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moerank.analysis.choice import by_validation
from moerank.figures.panels import family_of
from moerank.reports.report import Report
from moerank.runs.problem import Problem
from moerank.runs.result import PARTS, RunResult, ScoredRanker

__all__ = ["fronts_of", "run_lengths"]

DIGITS = 4
"""Decimals of scores, as in tables."""


def fronts_of(report: Report, problem: Problem) -> dict[str, Any]:
    """Return what all runs on a problem offer.

    Parameters
    ----------
    report : Report
    problem : Problem

    Returns
    -------
    dict
        ``metrics``, ``names`` of the features, ``further`` objectives, ``solvers``, the numbers of those ``shown`` at
        first, the one of each family that validation likes best, and ``runs``: for each the number of its solver, fold,
        seed, number of the chosen member, name of its file, and members. A member is a list of its features as
        `run_lengths`, the scores in units of 10⁻⁴, by part and metric, and its further objectives.
    """
    results = report.results.of(problem.name)
    metrics, further, solvers = results.metrics, results.further_objectives, results.solvers
    keys = {
        (cell.fold, cell.solver.label, cell.seed): cell.key
        for cell in report.study.cells()
        if cell.problem.name == problem.name
    }
    liked = by_validation(results) or solvers
    firsts = {family_of(solver): solver for solver in reversed(liked)}
    return {
        "metrics": metrics,
        "names": results[0].feature_names,
        "further": further,
        "solvers": solvers,
        "shown": sorted(solvers.index(solver) for solver in firsts.values()),
        "runs": [
            [
                solvers.index(run.solver),
                run.fold,
                run.seed,
                run.chosen,
                keys.get((run.fold, run.solver, run.seed), ""),
                [_member(run, member, metrics, further) for member in run.front],
            ]
            for run in results
        ],
    }


def run_lengths(columns: Sequence[int]) -> list[int]:
    """Return ascending columns as how many are skipped, then taken, then skipped again and so on.

    Few features take few numbers, and so do nearly all.

    Examples
    --------
    >>> run_lengths([0, 1, 2, 7]), run_lengths([3])
    ([0, 3, 4, 1], [3, 1])
    """
    lengths: list[int] = []
    after = 0
    for column in columns:
        if lengths and column == after:
            lengths[-1] += 1
        else:
            lengths += [column - after, 1]
        after = column + 1
    return lengths


def _member(run: RunResult, member: ScoredRanker, metrics: Sequence[str], further: Sequence[str]) -> list[Any]:
    scores = [member.scores[part].get(metric) for part in PARTS for metric in metrics]
    return [
        run_lengths(member.features),
        *(None if score is None else round(score * 10**DIGITS) for score in scores),
        *(float(f"{member.objectives[name]:.4g}") for name in further),
    ]
