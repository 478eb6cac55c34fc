"""What a solver offers with at most so many features, and how good that is on each part of the data."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from moerank.analysis.results import Runs
from moerank.runs.result import RunResult

__all__ = ["best_by_size", "mean_by_size", "offers_sizes"]

Array: TypeAlias = NDArray[np.float64]


def offers_sizes(folds: Runs) -> bool:
    """Whether a solver offers more than one number of features in some run."""
    return any(len(run.front) > 1 for runs in folds.values() for run in runs)


def best_by_size(result: RunResult, part: str, metric: str, chosen_on: str = "validation") -> Array:
    """Return the metric of the best that a solver offers with at most 1, 2, … features, shape (n_features,).

    The best is the one with the highest value of the error's metric on the part `chosen_on`, ties to fewer features:
    that is how it would be chosen. NaN where nothing so small is offered.
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
