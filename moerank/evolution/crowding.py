"""Fronts, crowding and tournaments on arrays: the selection of NSGA-II, which the other searches build on."""

from __future__ import annotations

from typing import NamedTuple

import moocore
import numpy as np
from numpy.typing import NDArray

__all__ = ["Selected", "crowding_distances", "front_numbers", "select_by_crowding", "standings", "tournament"]

Integers = NDArray[np.int64]
Values = NDArray[np.float64]


class Selected(NamedTuple):
    """Who survives, and how each of them stands.

    Attributes
    ----------
    kept : ndarray of int64, shape (n_kept,)
        Rows of the survivors, ascending.
    standing : ndarray of int64, shape (n_kept,)
        The smaller the better; see `standings`.
    """

    kept: Integers
    standing: Integers


def front_numbers(F: Values) -> Integers:
    """Return the number of each point's non-dominated front, from 0 on; equal points share theirs.

    Parameters
    ----------
    F : ndarray, shape (n, n_objectives)
        Objectives, all minimised.

    Examples
    --------
    >>> front_numbers(np.array([[1.0, 3], [2, 2], [2, 3], [3, 3]])).tolist()
    [0, 0, 1, 2]
    """
    numbers: Integers = np.asarray(moocore.pareto_rank(F), np.int64)
    return numbers


def crowding_distances(F: Values, front: Integers) -> Values:
    """Return the crowding distance of each point within its own front.

    The sum over the objectives of the gap between a point's two neighbours, as a share of the span of its front; a
    point at an end is infinitely far, and an objective that does not vary within a front adds nothing in between.

    Parameters
    ----------
    F : ndarray, shape (n, n_objectives)
    front : ndarray of int64, shape (n,)
        From `front_numbers`.

    Notes
    -----
    O(n_objectives n log n), all fronts in one sort. K. Deb et al., IEEE Trans. Evol. Comput. 6(2), 2002, III-B.

    Examples
    --------
    >>> crowding_distances(np.array([[0.0, 4], [1, 1], [2, 0], [4, 4]]), np.array([0, 0, 0, 1])).tolist()
    [inf, 2.0, inf, inf]
    """
    distance = np.zeros(len(F))
    for values in F.T:
        order = np.lexsort((values, front))
        value, number = values[order], front[order]
        first = np.append(True, number[1:] != number[:-1])[: len(F)]
        last = np.append(first[1:], True)[: len(F)]
        span = (value[last] - value[first])[np.cumsum(first) - 1]
        gap = np.full(len(F), np.inf)
        inner = np.flatnonzero(~(first | last))
        gap[inner] = value[inner + 1] - value[inner - 1]
        gap[inner] /= np.where(span[inner] > 0, span[inner], 1.0)
        distance[order] += gap
    return distance


def standings(front: Integers, crowding: Values) -> Integers:
    """Return how each point stands, from 0 on: by front, then by crowding distance; equals share a number.

    Examples
    --------
    >>> standings(np.array([1, 0, 0, 0]), np.array([9.0, 0.5, 2.0, 2.0])).tolist()
    [2, 1, 0, 0]
    """
    order = np.lexsort((-crowding, front))
    front, crowding = front[order], crowding[order]
    standing = np.empty(len(order), np.int64)
    standing[order] = np.cumsum(np.append(False, (front[1:] != front[:-1]) | (crowding[1:] != crowding[:-1])))[
        : len(order)
    ]
    return standing


def select_by_crowding(F: Values, n: int) -> Selected:
    """Return the `n` points of the first fronts; of the last of these fronts those that are farthest from others.

    Parameters
    ----------
    F : ndarray, shape (n_points, n_objectives)
    n : int
        If there are fewer points, all of them survive.

    Examples
    --------
    >>> F = np.array([[0.0, 4], [1, 2], [2, 1.5], [4, 0], [4, 4]])
    >>> select_by_crowding(F, 3)
    Selected(kept=array([0, 2, 3]), standing=array([0, 1, 0]))
    """
    front = front_numbers(F)
    standing = standings(front, crowding_distances(F, front))
    kept = np.sort(np.argsort(standing, kind="stable")[:n])
    return Selected(kept, standing[kept])


def tournament(standing: NDArray[np.number], n: int, random_state: np.random.Generator) -> Integers:
    """Return the winners of `n` tournaments of two: the smaller standing wins, of equals the one drawn first.

    Examples
    --------
    >>> tournament(np.array([2, 1, 0]), 8, np.random.default_rng(2)).tolist()
    [2, 1, 2, 2, 2, 2, 2, 0]
    """
    first, second = random_state.integers(len(standing), size=(2, n))
    winners: Integers = np.where(standing[second] < standing[first], second, first)
    return winners
