"""Notes below figures, titles of objectives, and fronts that several figures share."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from moocore import is_nondominated

from moerank.arrays import Integers, Matrix
from moerank.figures.figure import View
from moerank.mofsrank.objectives import known_objectives
from moerank.studies.result import Result
from moerank.studies.results import NoResultsError, Results

__all__ = ["errors_noted", "fronts_of_fold", "named", "non_dominated", "title_of", "two_of"]


def named(why: str, solvers: Collection[str]) -> str:
    """Return a sentence with the reason why some solvers are not drawn, and their names; "" without any."""
    return f"{why}: {', '.join(solvers)}." if solvers else ""


def errors_noted(results: Results, metric: str) -> str:
    """Return a sentence on the standard errors of means over folds; "" for a single fold."""
    means = [solver for solver in results.means().values() if len(solver.folds) > 1]
    errors = [f"{solver.mean(f'test {metric}')[1]:.3f}" for solver in means]
    if not errors:
        return ""
    span = " to ".join(sorted({min(errors), max(errors)}))
    return f"Standard error over folds of the test {metric} of chosen rankers: {span}."


def fronts_of_fold(view: View) -> tuple[dict[str, Result], list[str]]:
    """Return the first run on the selected fold of each solver that offers several sizes.

    Two sentences name the solvers that did not run on the fold, and those that offer one size. Without any run this is
    a NoResultsError.
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
    """Return a sentence that names the two objectives of a figure if others were searched, too; else ""."""
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


def non_dominated(points: Matrix) -> Integers:
    """Return the rows of non-dominated points (n_members, 2), duplicates included, sorted by the first coordinate."""
    rows = np.flatnonzero(is_nondominated(points, keep_weakly=True))
    return rows[np.argsort(points[rows, 0], kind="stable")]
