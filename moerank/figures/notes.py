"""Words and choices that figures share: notes below them, titles of objectives, and members in front of others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from moerank.figures.figure import View
from moerank.mofsrank.objectives import known_objectives
from moerank.studies.result import Result
from moerank.studies.results import NoResultsError, Results

__all__ = ["errors_noted", "fronts_of_fold", "named", "non_dominated", "pairs_of", "title_of", "two_of"]


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
    """Return how an axis calls an objective.

    Parameters
    ----------
    objective : str
        Its name; one that is not known here is called by it.
    metric : str
        The metric of the error.

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


def non_dominated(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rows that no other one beats in two objectives, by the first of them, ascending.

    Equal ones are all there. O(n log n).

    Parameters
    ----------
    points : ndarray, shape (n_members, 2)
    """
    order = np.lexsort((points[:, 1], points[:, 0]))
    x, y = points[order].T
    before = np.searchsorted(x, x, side="left")  # how many are smaller in the first objective
    least_before = np.concatenate([[np.inf], np.minimum.accumulate(y)])[before]
    least_here = y[before]  # the first of those with the same first objective has the least second
    return np.asarray(order[(y < least_before) & (y == least_here)])
