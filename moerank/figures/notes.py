"""Titles that state findings, notes below figures, titles of objectives, and fronts that several figures share."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from moocore import is_nondominated

from moerank.arrays import Integers, Matrix
from moerank.figures.figure import View
from moerank.figures.panels import MOST_LINES
from moerank.mofsrank.objectives import known_objectives
from moerank.studies.result import Result
from moerank.studies.results import NoResultsError, Results
from moerank.verdict import FEWEST, Verdict

MOST_NAMES = 4
"""Largest number of solvers that a sentence names."""


def named(why: str, solvers: Collection[str]) -> str:
    """Return a sentence with the reason why some solvers are not drawn, and a few names or a number; "" without any.

    Examples
    --------
    >>> named("No search", ["gas", "frank"]), named("No search", "abcdefg")
    ('No search: gas, frank.', 'No search: 7 solvers.')
    """
    return f"{why}: {listed(solvers)}." if solvers else ""


def listed(solvers: Collection[str], most: int = MOST_NAMES) -> str:
    """Return a few names, or the number of more."""
    return ", ".join(solvers) if len(solvers) <= most else f"{len(solvers)} solvers"


def judged(verdict: Verdict) -> str:
    """Return in a few words what a selection costs, with "no difference is shown" where none is."""
    size = f"{verdict.n_features} of {verdict.n_allowed} features"
    where = f"on {verdict.counted}"
    if verdict.n_differing < FEWEST:
        return f"{size}, too few queries to tell a difference from all of them"
    if verdict.finding != "none":
        return f"{size}, a {verdict.finding} of {abs(verdict.difference):.3f} {verdict.metric} is shown {where}"
    if verdict.equivalent:
        return f"{size} rank like all of them within {verdict.margin:g} {where}"
    return f"{size}, no difference from all of them is shown {where}"


Ends = Mapping[str, tuple[float, float, float]]
"""Quartiles of the last value of each solver."""


def beside_first(ends: Ends, *, largest: bool) -> tuple[list[str], str]:
    """Return the first solver with those whose quartiles do not meet its own, and a sentence for ends on training data.

    Of many, those that are farthest from the first are returned. Up to `MOST_LINES` solvers are returned as they are.

    Examples
    --------
    >>> beside_first({"a": (1, 2, 3), "b": (2, 3, 4), "c": (5, 6, 7)}, largest=True)[1]
    'In training, by quartiles of runs, c is better than a; 1 other is not apart from it'
    """
    first = next(iter(ends))
    low, middle, high = ends[first]
    above = [solver for solver, (least, _, _) in ends.items() if least > high]
    below = [solver for solver, (_, _, most) in ends.items() if most < low]
    better, worse = (above, below) if largest else (below, above)
    clauses = [
        f"{listed(solvers, 2)} {'is' if len(solvers) == 1 else 'are'} {word} than {first}"
        for word, solvers in (("better", better), ("worse", worse))
        if solvers
    ]
    n_rest = len(ends) - 1 - len(above) - len(below)
    if n_rest:
        rest = f"{n_rest} other{' is' if n_rest == 1 else 's are'} not apart from it"
        clauses.append(rest if clauses else f"no search is apart from {first}")
    apart = sorted(above + below, key=lambda solver: -abs(ends[solver][1] - middle))[: MOST_LINES - 1]
    shown = list(ends) if len(ends) <= MOST_LINES else [solver for solver in ends if solver in {first, *apart}]
    return shown, f"In training, by quartiles of runs, {'; '.join(clauses)}" if clauses else f"Runs of {first}"


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
    """Return the rows of non-dominated points (n_members, n_objectives), duplicates included, sorted by the first."""
    rows = np.flatnonzero(is_nondominated(points, keep_weakly=True))
    return rows[np.argsort(points[rows, 0], kind="stable")]
