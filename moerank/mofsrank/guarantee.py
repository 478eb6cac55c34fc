"""A guarantee for the choice: the smallest member of a front that is shown to lose less than a margin."""

from __future__ import annotations

from itertools import takewhile
from math import ceil
from typing import NamedTuple

import numpy as np

from moerank.arrays import Integers, Matrix, Vector
from moerank.data import RankingData
from moerank.data.folds import of_queries
from moerank.statistics import e_value, mean_interval, p_above
from moerank.verdict import FEWEST_QUERIES, LEVEL

STREAM = 0x677561
"""Number of the random stream that halves the validation queries."""


class Guarantee(NamedTuple):
    """The member that fixed-sequence testing chooses.

    Attributes
    ----------
    chosen : int
        Its number; of no member with a guarantee, the number of the first one that was tested.
    shown : bool
        Whether it is shown to lose less than the margin.
    smaller : bool
        Whether a smaller member was to be tested after it.
    largest_loss : float
        The loss that it is shown to stay below, at the same confidence; 1 where nothing is shown.
    n_queries : int
        Queries that can differ among those of the tests.
    """

    chosen: int
    shown: bool
    smaller: bool
    largest_loss: float
    n_queries: int

    def sentence(self, sizes: Integers, n_allowed: int, metric: str, margin: float) -> str:
        """Return the guarantee in words, for members of these `sizes`."""
        size, queries = sizes[self.chosen], f"{self.n_queries:,} validation queries that chose nothing else"
        loss = f"lose less than {margin:g} {metric} against all of them, with 95 % confidence by {queries}"
        if self.shown:
            return f"{size} of {n_allowed} features {loss}{'; nothing smaller could be shown' * self.smaller}"
        can = f"{size} features lose less than {ceil(1000 * self.largest_loss) / 1000:g}"
        return f"No member of the front is shown to {loss}; {can if self.largest_loss < 1 else 'keep all features'}"


def halves(validation: RankingData, seed: int) -> tuple[RankingData, RankingData]:
    """Return the queries that tune and order the members, and the queries of the tests: random halves."""
    drawn = np.random.default_rng([STREAM, seed]).permutation(validation.n_queries)
    first, second = np.split(drawn, [len(drawn) // 2])
    return of_queries(validation, np.sort(first)), of_queries(validation, np.sort(second))


def order_of_tests(sizes: Integers, means: Vector) -> Integers:
    """Return the members in the order of their tests, from the best by `means` to smaller ones.

    Members that another one of at most their size equals or exceeds are left out.

    Examples
    --------
    >>> order_of_tests(np.array([1, 2, 6, 9]), np.array([0.2, 0.6, 0.5, 0.7])).tolist()
    [3, 1, 0]
    """
    by_size = np.lexsort((-means, sizes))
    best_before = np.maximum.accumulate(np.concatenate([[-np.inf], means[by_size][:-1]]))
    return by_size[means[by_size] > best_before][::-1]


def shows(differences: Vector, margin: float) -> bool:
    """Return whether the mean of all queries is shown to be above −margin, at the level of .05.

    From 30 differences on, by `p_above`; of fewer, and where all differences are equal, by an e-value, which assumes
    nothing but independent queries.
    """
    if len(differences) >= FEWEST_QUERIES and np.ptp(differences) > 0:
        return p_above(differences, -margin) < LEVEL
    return e_value(differences, -margin) > 1 / LEVEL


def largest_loss(differences: Vector) -> float:
    """Return the smallest margin, at most 1, that `shows` would accept for this one member."""
    if len(differences) >= FEWEST_QUERIES and np.ptp(differences) > 0:
        return float(min(1.0, -mean_interval(differences, 1 - 2 * LEVEL)[0]))
    return next((float(margin) for margin in np.linspace(0.001, 1.0, 1000) if shows(differences, margin)), 1.0)


def guaranteed_member(sizes: Integers, ordering: Vector, differences: Matrix, margin: float) -> Guarantee:
    """Choose the smallest member that is shown to lose less than the margin against all features.

    The members are tested in the order of `order_of_tests`, each at the level of .05, until one test fails. So the
    probability that any member with a larger loss is accepted is at most .05, without a correction for their number.

    Parameters
    ----------
    sizes : ndarray of int, shape (n_members,)
    ordering : ndarray, shape (n_members,)
        Mean metric on queries that the tests do not see.
    differences : ndarray, shape (n_queries, n_members)
        Member − all features, on the queries of the tests that can differ.
    margin : float
        Positive.

    References
    ----------
    B. Laufer-Goldshtein, A. Fisch, R. Barzilay, T. Jaakkola: Efficiently controlling multiple risks with Pareto
    testing. ICLR 2023.

    Examples
    --------
    >>> d = np.column_stack([np.full(400, loss) for loss in (-0.3, -0.01, 0.0)])
    >>> guaranteed_member(np.array([1, 2, 6]), np.array([0.2, 0.6, 0.7]), d, margin=0.05)[:3]
    (1, True, True)
    """
    order = order_of_tests(sizes, ordering)
    accepted = list(takewhile(lambda member: shows(differences[:, member], margin), order))
    chosen = int(accepted[-1] if accepted else order[0])
    loss = largest_loss(differences[:, chosen])
    return Guarantee(chosen, bool(accepted), len(accepted) < len(order), loss, len(differences))
