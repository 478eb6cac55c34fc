"""The sentences below figures of a study, which name what is not drawn."""

from __future__ import annotations

from collections.abc import Collection

from moerank.analysis.results import NoResultsError, Results
from moerank.figures.study_figure import View
from moerank.runs.result import RunResult

__all__ = ["errors_noted", "fronts_of_fold", "named", "two_of"]


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


def fronts_of_fold(view: View) -> tuple[dict[str, RunResult], list[str]]:
    """Return the first run on the fold to show by each solver that offers several sizes, and two sentences on others.

    The first names the solvers that have not run there, the second those that offer one size; "" for none of them.

    Raises
    ------
    NoResultsError
        If no solver is left.
    """
    fold = view.fold_of(view.results)
    first = view.results.first_runs(fold)
    runs = {solver: run for solver, run in first.items() if len(run.front) > 1}
    if not runs:
        raise NoResultsError(f"no solver offers more than one size on fold {fold} of {view.where}")
    lacking = named("Not run", [solver for solver in view.results.solvers if solver not in first])
    sizeless = named("No front, for they offer one size", [solver for solver in first if solver not in runs])
    return runs, [lacking, sizeless]


def two_of(results: Results) -> str:
    """Return the sentence that says which objectives a figure of two shows, where there are others; else ""."""
    if not results.further_objectives:
        return ""
    return f"Searched: {', '.join(results.objectives)}. Shown: number of features and {results.metrics[0]}."
