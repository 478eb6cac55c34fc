"""Populations of boosted trees: the first trees of a forest, alone or as a step of a cascade."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from timeit import repeat
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from moerank.arrays import Array, Integers, Mask, Matrix, Vector
from moerank.data import RankingData
from moerank.rankers.lambda_mart import LambdaMART, features_of_trees, mean_forest, scores_by_trees, visits_by_trees
from moerank.rankers.model import Forest

if TYPE_CHECKING:
    from lightgbm import Booster

NO_STEP = (-1, 0)
"""Stands in place of a ranker and its number of trees."""


@dataclass(frozen=True, eq=False)
class TreePopulation:
    """Individuals that score by the first trees of a LambdaMART, and cascades of two of these.

    A cascade ranks all documents of a query by its first step, and orders the `reranked` first ones anew by its second.

    Attributes
    ----------
    rankers : tuple of LambdaMART
        Fitted on the columns in the rows of `feature_mask`.
    feature_mask : ndarray of bool, shape (n_rankers, n_features)
    first, second : ndarray of int, shape (n_individuals, 2)
        The number of a ranker, and of its trees; `second` is (−1, 0) where there is one step.
    reranked : int
    """

    coefs: ClassVar[None] = None  # there are no weights
    rankers: tuple[LambdaMART, ...]
    feature_mask: Mask
    first: Integers
    second: Integers
    reranked: int

    def __len__(self) -> int:
        return len(self.first)

    @property
    def is_cascade(self) -> Mask:
        """Whether each individual has two steps, shape (n_individuals,)."""
        return np.asarray(self.second[:, 0] >= 0)

    @property
    def used(self) -> Mask:
        """The features that some split of each individual looks at, shape (n_individuals, n_features)."""
        return self._used(self.first) | self._used(self.second)

    def steps(self) -> list[tuple[tuple[int, int], ...]]:
        """Return the numbers of features and of trees of the one or two steps of each individual."""
        both = (np.column_stack([self._used(steps).sum(axis=1), steps[:, 1]]) for steps in (self.first, self.second))
        return [tuple((size, n_trees) for size, n_trees in steps if n_trees) for steps in np.stack([*both], 1).tolist()]

    def take(self, rows: Integers) -> TreePopulation:
        """Return the individuals of these numbers; see `Population`."""
        first, second = (np.vstack([steps, NO_STEP])[rows] for steps in (self.first, self.second))
        return replace(self, first=first, second=second)

    def scores(self, X: Matrix) -> Matrix:
        """Return the scores (n_documents, n_individuals) of the rows of X; a ValueError if there is a cascade."""
        if self.is_cascade.any():
            raise ValueError("a cascade ranks the documents of a query together; score them as a RankingData")
        return self._sums(self.first, scores_by_trees, X)

    def scores_of_queries(self, data: RankingData) -> Matrix:
        """Return the scores (n_documents, n_individuals) of documents, for cascades minus the rank in the query."""
        scores = self._sums(self.first, scores_by_trees, data.X)
        second = self._sums(self.second, scores_by_trees, data.X)
        for i in np.flatnonzero(self.is_cascade):
            before = ranks(data.offsets, -scores[:, i])  # kept by later documents, and by equal second scores
            anew = before < self.reranked
            scores[:, i] = -ranks(data.offsets, before, np.where(anew, -second[:, i], 0.0), ~anew)
        return scores

    def visits(self, data: RankingData) -> Vector:
        """Return the mean number of splits that a document passes, shape (n_individuals,)."""
        second = np.where(self._ranked_anew(data), self._sums(self.second, visits_by_trees, data.X), 0.0)
        return np.asarray((self._sums(self.first, visits_by_trees, data.X) + second).mean(axis=0))

    def shares(self, data: RankingData) -> Matrix:
        """Return the share of the documents that need each feature, shape (n_individuals, n_features)."""
        second = self._ranked_anew(data).mean(axis=0)[:, None] * self._used(self.second)
        return np.where(self._used(self.first), 1.0, second)

    def microseconds(self, data: RankingData, repeats: int = 5) -> Vector:
        """Measure how long LightGBM takes to score a document in one thread, shape (n_individuals,).

        It is the least of `repeats` measurements of each step, on the documents that it looks at.
        """
        anew, seconds = self._ranked_anew(data), np.zeros(len(self))
        for steps, seen in ((self.first, np.ones_like(anew)), (self.second, anew)):
            for i, (number, n_trees) in enumerate(steps.tolist()):
                if number >= 0:
                    table = np.ascontiguousarray(data.X[:, self._columns(number)][seen[:, i]])
                    settings = {"num_iteration": n_trees, "num_threads": 1}
                    predict = partial(self.rankers[number].booster_.predict, table, **settings)
                    seconds[i] += min(repeat(predict, number=1, repeat=repeats))
        return seconds / data.n_documents * 1e6

    def forest(self, individual: int) -> Forest:
        """Return the trees of an individual, over all columns; an AttributeError for a cascade, which has two."""
        if self.is_cascade[individual]:
            raise AttributeError("a cascade has two forests")
        number, n_trees = self.first[individual].tolist()
        return mean_forest([(self.rankers[number].booster_, n_trees)]).over(self._columns(number))

    def _columns(self, number: int) -> Integers:
        return np.flatnonzero(self.feature_mask[number])[self.rankers[number].varying_]

    def _used(self, steps: Integers) -> Mask:
        used = np.zeros((len(steps), self.feature_mask.shape[1]), bool)
        for i, (number, n_trees) in enumerate(steps.tolist()):
            if number >= 0:
                used[i, self._columns(number)] = features_of_trees(self.rankers[number].booster_, n_trees)
        return used

    def _sums(self, steps: Integers, by_trees: Callable[[Booster, Matrix], Matrix], X: Matrix) -> Matrix:
        """Return what `by_trees` sums up over the trees of each step, shape (n_documents, n_steps)."""
        sums = np.zeros((len(X), len(steps)))
        for number in np.unique(steps[steps[:, 0] >= 0, 0]).tolist():
            these = np.flatnonzero(steps[:, 0] == number)
            found = by_trees(self.rankers[number].booster_, X[:, self._columns(number)])
            sums[:, these] = found[:, np.minimum(steps[these, 1], found.shape[1]) - 1]  # LightGBM may stop before
        return sums

    def _ranked_anew(self, data: RankingData) -> Mask:
        """Return which documents the second step looks at, shape (n_documents, n_individuals)."""
        ranked = np.zeros((data.n_documents, len(self)), bool)
        cascades = np.flatnonzero(self.is_cascade)
        first = self._sums(self.first[cascades], scores_by_trees, data.X)
        for i, scores in zip(cascades, first.T, strict=True):
            ranked[:, i] = ranks(data.offsets, -scores) < self.reranked
        return ranked


def ranks(offsets: Integers, *keys: Array) -> Integers:
    """Return the rank of each document in its query, from 0, by the last key first, as in `numpy.lexsort`.

    Where all keys are equal the earlier document ranks first.

    >>> ranks(np.array([0, 3, 5]), -np.array([0.1, 0.7, 0.7, 0.5, 0.2])).tolist()
    [2, 0, 1, 0, 1]
    """
    sizes = np.diff(offsets)
    order = np.lexsort((*keys, np.repeat(np.arange(len(sizes)), sizes)))
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order)) - np.repeat(offsets[:-1], sizes)
    return found
