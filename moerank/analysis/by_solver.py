"""What the figures of a study share: which results of which solvers, and what these offer with at most k features."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from moerank.analysis.comparison import Results
from moerank.checks import unknown
from moerank.runs.result import RunResult
from moerank.statistics import mean_and_error

__all__ = [
    "NothingToDrawError",
    "Runs",
    "best_by_size",
    "errors_noted",
    "first_fold",
    "fold_scores",
    "first_metric",
    "mean_by_size",
    "mean_score",
    "named",
    "of_problem",
    "offers_sizes",
]

Array: TypeAlias = NDArray[np.float64]
Runs: TypeAlias = dict[int, list[RunResult]]
"""The results of a solver on a problem by fold, one for each seed."""


class NothingToDrawError(ValueError):
    """A study has nothing of the kind that a figure shows."""


def of_problem(results: Results, problem: str, solvers: Sequence[str] = ()) -> dict[str, Runs]:
    """Return the results of a problem by the label of the solver and the fold, one for each seed.

    Parameters
    ----------
    results : mapping of Cell to RunResult
    problem : str
    solvers : sequence of str
        Labels, in the order in which they are returned; by default all, in the order of the study.

    Raises
    ------
    NothingToDrawError
        If there is none.
    ValueError
        If one of `solvers` has none.
    """
    found: dict[str, Runs] = {}
    for cell, result in results.items():
        if cell.problem.name == problem:
            found.setdefault(cell.solver.label, {}).setdefault(cell.fold, []).append(result)
    if not found:
        raise NothingToDrawError(f"there is no finished cell of {problem} to draw")
    for solver in solvers:
        if solver not in found:
            raise ValueError(unknown("solver", solver, found))
    return {solver: found[solver] for solver in solvers} if solvers else found


def first_metric(found: Mapping[str, Runs]) -> str:
    """Return the metric of the objectives."""
    return next(iter(next(iter(found.values())).values()))[0].metrics[0]


def first_fold(found: Mapping[str, Runs]) -> int:
    """Return the first fold of which there is a result."""
    return min(min(folds) for folds in found.values())


def offers_sizes(folds: Runs) -> bool:
    """Whether a solver offers more than one number of features in some run."""
    return any(len(run.front) > 1 for runs in folds.values() for run in runs)


def named(why: str, solvers: Collection[str]) -> str:
    """Return the sentence that names solvers and says why they are not drawn; "" for none of them."""
    return f"{why}: {', '.join(solvers)}." if solvers else ""


def fold_scores(folds: Runs, part: str, metric: str) -> list[float]:
    """Return the metric of the chosen members on each fold: means over the seeds."""
    return [float(np.mean([run.best.scores[part][metric] for run in runs])) for runs in folds.values()]


def mean_score(folds: Runs, part: str, metric: str) -> float:
    """Return the mean of `fold_scores`."""
    return float(np.mean(fold_scores(folds, part, metric)))


def errors_noted(found: Mapping[str, Runs], metric: str) -> str:
    """Return the sentence that says how far means over folds may be off; "" where there is one fold."""
    means = [fold_scores(folds, "test", metric) for folds in found.values()]
    errors = [f"{mean_and_error(values)[1]:.3f}" for values in means if len(values) > 1]
    if not errors:
        return ""
    span = " to ".join(sorted({min(errors), max(errors)}))
    return f"Standard error over folds of the test {metric} of chosen rankers: {span}."


def best_by_size(result: RunResult, part: str, metric: str, chosen_on: str = "validation") -> Array:
    """Return the metric of the best that a solver offers with at most 1, 2, … features, shape (n_features,).

    The best is the one with the highest value of the objectives' metric on the part `chosen_on`, ties to fewer
    features: that is how it would be chosen. NaN where nothing so small is offered.
    """
    sizes = np.array([len(member.features) for member in result.front])
    quality = np.array([member.scores[chosen_on][result.metrics[0]] for member in result.front])
    values = np.array([member.scores[part][metric] for member in result.front])
    order = np.lexsort((sizes, -quality))  # the best first
    small = sizes[order] <= np.arange(1, len(result.feature_names) + 1)[:, None]
    return np.where(small.any(axis=1), values[order][small.argmax(axis=1)], np.nan)


def mean_by_size(folds: Runs, part: str, metric: str, chosen_on: str = "validation") -> Array:
    """Return `best_by_size` averaged over seeds, then folds; NaN where any run offers nothing so small."""
    means = [np.mean([best_by_size(run, part, metric, chosen_on) for run in runs], axis=0) for runs in folds.values()]
    return np.asarray(np.mean(means, axis=0))
