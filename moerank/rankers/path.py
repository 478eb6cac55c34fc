"""The path of a feature selection: what it would choose with at most 1, 2, … features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from moerank.data import RankingData
from moerank.rankers.adapter import RankerAdapter
from moerank.rankers.base import LinearRanker
from moerank.rankers.population import AnyRanker, FitnessBackend, LinearPopulation, Population, train_population
from moerank.rankers.rank_svm import RankSVM
from moerank.rankers.selection import Selection

__all__ = ["LargestWeightsPath", "SelectionPath", "nested_masks", "train_on_subsets"]


@dataclass(frozen=True, eq=False)
class SelectionPath:
    """For each k = 1 … n_features what a solver chooses with at most k features.

    Attributes
    ----------
    feature_mask : ndarray of bool, shape (n_features, n_features)
        Row k − 1 has at most k features. Where a solver has no more to offer the rows repeat; a row without features
        stands where it found nothing that small, and its ranker scores every document alike.
    rankers : Population, of n_features individuals
        The ranker of each row; its weights are ``rankers.coefs``, if there are any.
    """

    feature_mask: NDArray[np.bool_]
    rankers: Population

    def scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores (n_documents, n_features) of the rows of X, a column for each k."""
        return self.rankers.scores(X)


class LargestWeightsPath(Selection, LinearRanker):
    """Base of the rankers whose sparse weights minimise the squared hinge loss of preference pairs and a penalty.

    Their path are the k largest weights, as they are.
    """

    def path(self, train: RankingData) -> SelectionPath:
        """Return the rankers of the 1, 2, … largest weights in absolute value, without training them again.

        Parameters
        ----------
        train : RankingData
            What the ranker was fitted on; nothing is asked of it.
        """
        check_is_fitted(self, "coef_")
        order = np.argsort(-np.abs(self.coef_), kind="stable")[: np.count_nonzero(self.coef_)]
        masks = nested_masks(order, len(self.coef_))
        return SelectionPath(masks, LinearPopulation(np.where(masks, self.coef_, 0.0)))

    def without_selection(self) -> RankSVM:
        """Return RankSVM: the same loss of preference pairs, with a penalty that leaves no feature out."""
        return RankSVM()


def nested_masks(order: NDArray[np.int64], n_features: int) -> NDArray[np.bool_]:
    """Return the first 1, 2, … n_features of `order` as rows of bits; after its end the last row repeats."""
    place = np.full(n_features, n_features)
    place[order] = np.arange(len(order))
    return np.asarray(place[None, :] <= np.arange(n_features)[:, None])


def train_on_subsets(
    ranker: AnyRanker | FitnessBackend, train: RankingData, feature_mask: NDArray[np.bool_]
) -> Population:
    """Train any ranker, a fitness backend or not, on each row of `feature_mask` (n_individuals, n_features).

    A row that is equal to an earlier one is not trained again; a row without features scores every document alike.
    """
    backend = ranker if isinstance(ranker, FitnessBackend) else RankerAdapter(ranker)
    distinct, row = np.unique(feature_mask, axis=0, return_inverse=True)
    n_empty = np.count_nonzero(~distinct.any(axis=1))  # 0 or 1, and it sorts first
    population = train_population(backend, train, feature_mask=distinct[n_empty:])
    return population.take(row.ravel() - n_empty)
