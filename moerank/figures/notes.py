"""Notes below figures, titles of objectives, and fronts shared by several figures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np
from moocore import is_nondominated

from moerank.arrays import Integers, Matrix
from moerank.figures.figure import View
from moerank.mofsrank.objectives import known_objectives
from moerank.studies.result import Result
from moerank.studies.results import NoResultsError, Results

__all__ = ["errors_noted", "fronts_of_fold", "named", "non_dominated", "pairs_of", "title_of", "two_of"]


def named(why: str, solvers: Collection[str]) -> str:
    """Return the sentence that names solvers and says why they are not drawn; "" for none of them."""
    return f"{why}: {', '.join(solvers)}." if solvers else ""


def errors_noted(results: Results, metric: str) -> str:
    """Return the sentence on standard errors of means over folds; "" for a single fold."""
    means = [solver for solver in results.means().values() if len(solver.folds) > 1]
    errors = [f"{solver.mean(f'test {metric}')[1]:.3f}" for solver in means]
    if not errors:
        return ""
    span = " to ".join(sorted({min(errors), max(errors)}))
    return f"Standard error over folds of the test {metric} of chosen rankers: {span}."


def fronts_of_fold(view: View) -> tuple[dict[str, Result], list[str]]:
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


def title_of(objective: str, metric: str) -> str:
    """Return the label of an objective on axes; `metric` is that of the error.

    Examples
    --------
    >>> title_of("error", "MAP"), title_of("lead_time", "MAP")
    ('1 − MAP', 'Lead time')
    """
    if objective == "error":
        return f"1 − {metric}"
    if objective in (known := known_objectives()):
        return known[objective].title
    return objective.replace("_", " ").capitalize()


def pairs_of(objectives: Sequence[str]) -> list[tuple[str, str]]:
    """Return every pair of objectives, the one that comes first first.

    Examples
    --------
    >>> pairs_of(["features", "error", "cost"])
    [('features', 'error'), ('features', 'cost'), ('error', 'cost')]
    """
    return list(combinations(objectives, 2))


def non_dominated(points: Matrix) -> Integers:
    """Return the rows of points (n_members, 2) that no other one dominates, equal ones included, by their first."""
    rows = np.flatnonzero(is_nondominated(points, keep_weakly=True))
    return rows[np.argsort(points[rows, 0], kind="stable")]
