"""Objectives in figures: what axes call them, and the members that matter in a pair of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from moerank.stages.objectives import OBJECTIVES

__all__ = ["non_dominated", "pairs_of", "title_of"]


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
    if objective in OBJECTIVES:
        return OBJECTIVES[objective].title
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
