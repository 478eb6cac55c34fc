"""Boosting of decision stumps on preference pairs: the loop that RankBoost and FRank share."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from moerank.checks import check_at_least, check_switch
from moerank.data import RankingData
from moerank.kernels.stumps import best_stump, split_weight
from moerank.rankers.arguments import Vector
from moerank.rankers.base import Grid, Matrix, Ranker
from moerank.rankers.forest import Forest
from moerank.rankers.steady import steadied

__all__ = ["StumpBoosting"]

# Below this total the weights of the pairs lose digits: every pair is in the right order by far.
VANISHED = 1e-250


class StumpBoosting(Ranker):
    """Base of the rankers that add up stumps, each fitted to preference pairs that its predecessors weigh.

    The score of a document is s(x) = Σ_t α_t h_t(x), h_t(x) = 1 if feature f_t of x is above the threshold θ_t, else 0.
    In every round the scores so far give each pair a weight; the stump with the largest
    r = Σ D(i, j) (h(xᵢ) − h(xⱼ)) under the weights D comes next. A subclass names the kernel of its weights in
    `_weigh` and implements `_step`, the α of a stump; it may implement `_importance`.

    Attributes
    ----------
    features_ : ndarray of int, shape (n_rounds_,)
        The column of X that the stump of each round looks at.
    thresholds_, alphas_ : ndarray, shape (n_rounds_,)
        Threshold and weight of each stump.
    right_, wrong_ : ndarray, shape (n_rounds_,)
        Weight of the pairs that the stump orders rightly and wrongly, as shares of the weight of all pairs.
    n_rounds_ : int
        Rounds there were: fewer than asked for if no stump orders more weight rightly than wrongly.
    forest_ : Forest
        The trees whose leaves add up to the score, as a `Model` stores them.
    """

    _size = "n_rounds"
    _by_thresholds = True
    _weigh: ClassVar[Callable[..., float]]

    def __init__(self, n_rounds: int = 300, n_thresholds: int | None = 10, reversed_stumps: bool = False) -> None:
        self.n_rounds = n_rounds
        self.n_thresholds = n_thresholds
        self.reversed_stumps = reversed_stumps

    def default_grid(self, train: RankingData) -> Grid:
        """Return every number of rounds up to `n_rounds`: validation data choose it, as for LETOR.

        `tune` compares the means of ten rounds on each side, not single rounds; see `steadied`.
        """
        return [{"n_rounds": size} for size in range(1, self.n_rounds + 1)]

    def _steadied(self, values: Vector) -> Vector:
        return steadied(values)

    def _step(self, right: float, wrong: float, least: float) -> float:
        """Return α of a stump that orders these shares of the weight rightly and wrongly.

        `least` is the average share of one pair; an empty set counts as much, so that α is finite.
        """
        raise TypeError(f"{type(self).__name__} does not implement _step")

    def _importance(self, train: RankingData) -> Matrix:
        """Return what the weights of the pairs of each better document (n_documents,) are multiplied by."""
        return np.ones(train.n_documents)

    def _fit(self, train: RankingData, validation: RankingData | None) -> None:
        train = train.with_features(self.varying_)
        bins, n_thresholds, thresholds = _bins(train, self.n_thresholds)
        importance = self._importance(train)
        groups = train.pairs.first, train.pairs.winner, train.pairs.worse
        weights, scores, potentials = np.empty(len(train.pairs)), *np.zeros((2, train.n_documents))
        stumps = []
        for _ in range(self.n_rounds):
            total = self._weigh(*groups, scores, importance, weights, potentials)
            if total < VANISHED:
                break
            feature, b, r = best_stump(bins, n_thresholds, potentials, total, self.reversed_stumps)
            if r == 0.0:
                break
            above = bins[feature] > b
            right, wrong = split_weight(*groups, weights, above)
            alpha = self._step(right / total, wrong / total, 1.0 / len(train.pairs))
            scores[above] += alpha
            stumps.append((feature, thresholds[feature, b], alpha, right / total, wrong / total))
        self._set_stumps(np.array(stumps).reshape(-1, 5))

    @property
    def _remedy(self) -> str:
        if self.reversed_stumps:
            return super()._remedy
        return "reversed_stumps=True takes stumps that prefer small values of a feature, too"

    def _set_stumps(self, stumps: Matrix) -> None:
        columns = stumps.T
        self.n_rounds_ = len(stumps)
        self.features_ = np.flatnonzero(self.varying_)[columns[0].astype(np.int64)]
        self.thresholds_, self.alphas_, self.right_, self.wrong_ = columns[1:].copy()
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[self.features_] = True

    def _scores(self, X: Matrix) -> Matrix:
        scores = np.zeros(len(X))
        for feature, threshold, alpha in zip(self.features_, self.thresholds_, self.alphas_, strict=True):
            scores += alpha * (X[:, feature] > threshold)
        return scores

    @property
    def forest_(self) -> Forest:
        """The stumps as trees of two leaves, 0 and α."""
        rounds = range(self.n_rounds_)
        return Forest(
            columns=tuple(self.features_.tolist()),
            thresholds=tuple(self.thresholds_.tolist()),
            left=tuple(-1 - 2 * t for t in rounds),
            right=tuple(-2 - 2 * t for t in rounds),
            leaves=tuple(value for alpha in self.alphas_.tolist() for value in (0.0, alpha)),
            roots=tuple(rounds),
        )

    def _scores_by_size(self, train: RankingData, X: Matrix) -> Matrix:
        steps = self.alphas_ * (X[:, self.features_] > self.thresholds_)
        return np.cumsum(steps, axis=1) if self.n_rounds_ else np.zeros((len(X), 1))

    def _check_parameters(self) -> None:
        check_at_least(1, n_rounds=self.n_rounds)
        check_at_least(1, or_none=True, n_thresholds=self.n_thresholds)
        check_switch(reversed_stumps=self.reversed_stumps)


def _bins(
    train: RankingData, n_thresholds: int | None
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
    """Return what `best_stump` wants of the features, and the thresholds (n_features, largest number), remembered.

    They are the bins (n_features, n_documents), the number of thresholds below each value, and the numbers of
    thresholds (n_features,). With `n_thresholds` the thresholds of a feature divide its range into as many equal parts,
    from its minimum on; with None they are its distinct values but for the largest, which no value is above. Rows of
    fewer thresholds are filled up with infinity.
    """

    def compute() -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
        if n_thresholds is None:
            lists = [np.unique(column)[:-1] for column in train.X64.T]
        else:
            parts = np.arange(n_thresholds) / n_thresholds
            lists = [
                low + extent * parts
                for low, extent in zip(train.X64.min(axis=0), np.ptp(train.X64, axis=0), strict=True)
            ]
        thresholds = np.full((len(lists), max(map(len, lists))), np.inf)
        bins = np.empty((len(lists), train.n_documents), np.int32)
        for f, values in enumerate(lists):
            thresholds[f, : len(values)] = values
            bins[f] = np.searchsorted(values, train.X64[:, f], side="left")
        return bins, np.array([len(values) for values in lists]), thresholds

    return train.remember(("stumps", n_thresholds), compute)
