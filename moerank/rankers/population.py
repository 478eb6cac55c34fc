"""What a fitness backend returns, and the scores of it: a whole population of rankers, with weights or without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from moerank.kernels.scores import linear_scores

__all__ = ["FittedPopulation", "Population", "population_scores", "require_weights"]


@dataclass(frozen=True, eq=False)
class FittedPopulation:
    """Fitted rankers that have no weights, so that scores are all one can ask of them.

    Attributes
    ----------
    rankers : sequence of fitted estimators, each trained on its own columns
    feature_mask : ndarray of bool, shape (n_individuals, n_features)
        The columns of each.
    """

    rankers: tuple[Any, ...]
    feature_mask: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rankers)

    def scores(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores (n_documents, n_individuals) of the rows of X, of shape (n_documents, n_features)."""
        scores = np.empty((len(X), len(self)))
        for individual, (ranker, mask) in enumerate(zip(self.rankers, self.feature_mask, strict=True)):
            scores[:, individual] = np.ravel(ranker.predict(X[:, mask]))
        return scores


Population: TypeAlias = NDArray[np.float64] | FittedPopulation


def population_scores(population: Population, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores (n_documents, n_individuals) of what a backend's ``fit_population`` returned.

    That is an array of weights, one row an individual, or else an object with a method ``scores(X)``.
    """
    if isinstance(population, np.ndarray):
        scores: NDArray[np.float64] = linear_scores(X, population)
        return scores
    return population.scores(X)


def require_weights(population: Population, backend: object) -> NDArray[np.float64]:
    """Return the weights (n_individuals, n_features) of a population that `backend` trained.

    Raises
    ------
    ValueError
        If its rankers have none.
    """
    if not isinstance(population, np.ndarray):
        name = type(getattr(backend, "ranker", backend)).__name__
        raise ValueError(
            f"{name} has no weights (coef_): it serves feature selection, but the ensemble stage adds up weights; "
            "use ensemble=False, or a linear backend"
        )
    return population
