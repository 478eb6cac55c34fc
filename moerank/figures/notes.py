"""The sentences below figures of a study."""

from __future__ import annotations

from collections.abc import Collection

from moerank.analysis.results import Results
from moerank.runs.result import RunResult

__all__ = ["errors_noted", "named", "two_of"]


def named(why: str, solvers: Collection[str]) -> str:
    """Return the sentence that names solvers and says why they are not drawn; "" for none of them."""
    return f"{why}: {', '.join(solvers)}." if solvers else ""


def errors_noted(results: Results, metric: str) -> str:
    """Return the sentence that says how far means over folds may be off; "" where there is one fold."""
    means = [solver for solver in results.means().values() if len(solver.folds) > 1]
    errors = [f"{solver.mean(f'test {metric}')[1]:.3f}" for solver in means]
    if not errors:
        return ""
    span = " to ".join(sorted({min(errors), max(errors)}))
    return f"Standard error over folds of the test {metric} of chosen rankers: {span}."


def two_of(results: Results | RunResult) -> str:
    """Return the sentence that says which objectives a figure of two shows, where there are others; else ""."""
    if not results.further_objectives:
        return ""
    return f"Searched: {', '.join(results.objectives)}. Shown: number of features and {results.metrics[0]}."
